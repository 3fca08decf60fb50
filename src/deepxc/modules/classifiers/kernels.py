"""The compiled loop that scores given labels: a gather of their vectors, never an array of texts x labels."""

from __future__ import annotations

import numpy as np
from numba import types

from deepxc.labels.kernels.compiled import F32_ROWS, compiled, given

_IDS = given(types.int64, 2)


@compiled(types.void(F32_ROWS, F32_ROWS, _IDS, types.float32[:, ::1]), lanes=True)
def gather_scores(features, vectors, ids, out):
    """`out[i, j] = features[i] . vectors[ids[i, j]]`, -inf where the id is -1.

    Four labels at a time: their vectors come from far apart in memory, and four reads on the way at once wait as long
    as one.
    """
    dim = features.shape[1]
    chosen = np.empty(ids.shape[1], np.int64)
    places = np.empty(ids.shape[1], np.int64)
    for i in range(len(ids)):
        x = features[i]
        n = 0
        for j in range(ids.shape[1]):
            if ids[i, j] < 0:
                out[i, j] = -np.inf
            else:
                chosen[n], places[n] = ids[i, j], j
                n += 1
        at = 0
        while at + 4 <= n:
            a, b = vectors[chosen[at]], vectors[chosen[at + 1]]
            c, d = vectors[chosen[at + 2]], vectors[chosen[at + 3]]
            s = t = u = v = np.float32(0)
            for q in range(dim):
                s += x[q] * a[q]
                t += x[q] * b[q]
                u += x[q] * c[q]
                v += x[q] * d[q]
            out[i, places[at]], out[i, places[at + 1]] = s, t
            out[i, places[at + 2]], out[i, places[at + 3]] = u, v
            at += 4
        while at < n:
            a = vectors[chosen[at]]
            s = np.float32(0)
            for q in range(dim):
                s += x[q] * a[q]
            out[i, places[at]] = s
            at += 1

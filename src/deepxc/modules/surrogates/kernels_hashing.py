"""The compiled loops of `hashing`."""

from __future__ import annotations

import numpy as np
from numba import njit

from deepxc.search.kernels_postings import keep_best


@njit(cache=True, nogil=True)
def decode_rows(scores, table, source, start, end, ids, best):
    """The best labels of texts start..end; `ids` and `best` hold those rows alone.

    `table[i, l]` is a bucket of label l, whose scores stand in `scores[source[i]]`.
    """
    n_labels = table.shape[1]
    totals = np.empty(n_labels, np.float32)
    everyone = np.arange(n_labels)
    share = np.float32(1.0 / len(source))
    for row in range(start, end):
        totals[:] = 0
        for i in range(len(source)):
            own = scores[source[i], row]
            buckets = table[i]
            for label in range(n_labels):
                totals[label] += own[buckets[label]]
        totals *= share
        keep_best(totals, everyone, n_labels, ids[row - start], best[row - start])


@njit(cache=True, nogil=True)
def decode_given(scores, table, source, ids, out):
    """The mean bucket score of each given label."""
    share = np.float32(1.0 / len(source))
    for row in range(len(ids)):
        for j in range(ids.shape[1]):
            label = ids[row, j]
            if label < 0:
                out[row, j] = -np.inf
                continue
            total = np.float32(0)
            for i in range(len(source)):
                total += scores[source[i], row, table[i, label]]
            out[row, j] = total * share

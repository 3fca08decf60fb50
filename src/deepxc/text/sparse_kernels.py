"""Compiled loops over sparse rows. Imported only where they run, for the compiler is slow to load.

Each loop leaves the interpreter lock alone, so plain threads can share the rows out; none of them depends on how many
threads there are. Every loop has one signature, compiled once and then cached on disk.
"""

from __future__ import annotations

import numba as nb
import numpy as np

_INDEX = nb.types.Array(nb.int32, 1, "C", readonly=True)
_BOUND = nb.types.Array(nb.int64, 1, "C", readonly=True)
_VALUE = nb.types.Array(nb.float32, 1, "C", readonly=True)
_DENSE = nb.types.Array(nb.float32, 2, "C", readonly=True)
_RESULT = nb.types.Array(nb.float32, 2, "C")


@nb.njit(nb.void(_BOUND, _INDEX, _VALUE, _DENSE, _RESULT, nb.int64, nb.int64), cache=True, nogil=True)
def product_rows(bounds, indices, values, vectors, out, start, stop):
    """Write rows `start … stop-1` of `sparse @ vectors` into `out`, added up in the order scipy adds them."""
    dim = vectors.shape[1]
    for row in range(start, stop):
        target = out[row]
        for j in range(dim):
            target[j] = np.float32(0)
        for at in range(bounds[row], bounds[row + 1]):
            value = values[at]
            source = vectors[indices[at]]
            for j in range(dim):
                target[j] += value * source[j]


@nb.njit(nb.void(_BOUND, _INDEX, _VALUE, _DENSE, _RESULT), cache=True, nogil=True, fastmath={"contract"})
def gram_times(bounds, indices, values, right, out):
    """Add `sparse.T @ (sparse @ right)` to `out`, row by row, so that the inner product is never stored."""
    width = right.shape[1]
    row_sum = np.empty(width, dtype=np.float32)
    for row in range(len(bounds) - 1):
        for j in range(width):
            row_sum[j] = np.float32(0)
        for at in range(bounds[row], bounds[row + 1]):
            value = values[at]
            source = right[indices[at]]
            for j in range(width):
                row_sum[j] += value * source[j]
        for at in range(bounds[row], bounds[row + 1]):
            value = values[at]
            target = out[indices[at]]
            for j in range(width):
                target[j] += value * row_sum[j]

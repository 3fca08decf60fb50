"""The compiled loops of `tables`: sums of weighted rows, and the same sums backwards.

The callers give indptr and order as int64, indices and rows as int32, everything else as float32: one version is
compiled of each loop, and kept on disk.
"""

from __future__ import annotations

from numba import njit, prange


@njit(cache=True, nogil=True, fastmath={"contract"})
def bag_of_one(indices, values, weight, out):
    """The sum of one text's rows, as `bag_forward` adds them up, without the cost of calling threads together."""
    out[:] = 0
    for p in range(len(indices)):
        value = values[p]
        source = weight[indices[p]]
        for j in range(len(out)):
            out[j] += value * source[j]


@njit(cache=True, nogil=True, parallel=True, fastmath={"contract"})
def bag_forward(indptr, indices, values, weight, out):
    """`out[i] = sum of values[p] * weight[indices[p]]` over the entries p of row i."""
    for i in prange(len(indptr) - 1):
        row = out[i]
        row[:] = 0
        for p in range(indptr[i], indptr[i + 1]):
            value = values[p]
            source = weight[indices[p]]
            for j in range(len(row)):
                row[j] += value * source[j]


@njit(cache=True, nogil=True, parallel=True, fastmath={"contract"})
def bag_backward(bounds, rows, values, gradient, out):
    """`out[t] = sum of values[q] * gradient[rows[q]]` over the entries q of the t-th distinct token.

    The entries are sorted by token; `bounds[t]` to `bounds[t + 1]` belong to token t.
    """
    for t in prange(len(bounds) - 1):
        total = out[t]
        total[:] = 0
        for q in range(bounds[t], bounds[t + 1]):
            value = values[q]
            source = gradient[rows[q]]
            for j in range(len(total)):
                total[j] += value * source[j]


@njit(cache=True, nogil=True, parallel=True)
def add_chosen(first, second, from_first, from_second, out):
    """`out[i] = first[from_first[i]] + second[from_second[i]]`; a place of -1 adds nothing, and one is there."""
    for i in prange(len(out)):
        a, b = from_first[i], from_second[i]
        if b < 0:
            out[i] = first[a]
        elif a < 0:
            out[i] = second[b]
        else:
            for j in range(out.shape[1]):
                out[i, j] = first[a, j] + second[b, j]

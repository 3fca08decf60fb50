"""The compiled inner loop of `posting_lists`."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _sift_down(scores, ids, size):
    """Restore the heap whose root is the worst answer: lowest score, then largest id."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            return
        other = child + 1
        if other < size and (
            scores[other] < scores[child] or (scores[other] == scores[child] and ids[other] > ids[child])
        ):
            child = other
        if scores[i] < scores[child] or (scores[i] == scores[child] and ids[i] > ids[child]):
            return
        scores[i], scores[child] = scores[child], scores[i]
        ids[i], ids[child] = ids[child], ids[i]
        i = child


@njit(cache=True, nogil=True)
def keep_best(totals, touched, n_touched, ids, scores):
    """The best of the touched totals into `ids` and `scores`, best first, ties to the smaller id; pads the rest."""
    k = len(ids)
    ids[:] = -1
    scores[:] = -np.inf
    if k == 0:
        return
    # Padding ids compare as the largest, so that any real answer beats them.
    ids[:] = np.iinfo(np.int64).max
    for j in range(n_touched):
        row = touched[j]
        score = totals[row]
        if score > scores[0] or (score == scores[0] and row < ids[0]):
            scores[0] = score
            ids[0] = row
            _sift_down(scores, ids, k)
    for size in range(k - 1, 0, -1):  # heap sort: the worst goes to the end
        scores[0], scores[size] = scores[size], scores[0]
        ids[0], ids[size] = ids[size], ids[0]
        _sift_down(scores, ids, size)
    for j in range(k):
        if scores[j] == -np.inf:
            ids[j] = -1


@njit(cache=True, nogil=True)
def search_postings(indptr, indices, data, bounds, rows, values, budget, totals, seen, touched, ids, scores):
    """Accumulate the postings of each query's tokens, rarest first, and keep the best rows.

    `totals` and `seen` come in as zeros, one place a row, and are left as zeros.
    """
    for q in range(len(indptr) - 1):
        start, stop = indptr[q], indptr[q + 1]
        tokens = indices[start:stop]
        order = np.argsort(bounds[tokens + 1] - bounds[tokens], kind="mergesort")
        n_touched = 0
        read = 0
        for j in order:
            token = tokens[j]
            first, last = bounds[token], bounds[token + 1]
            if read > 0 and read + last - first > budget:
                break
            read += last - first
            weight = data[start + j]
            for p in range(first, last):
                row = rows[p]
                if not seen[row]:
                    seen[row] = True
                    touched[n_touched] = row
                    n_touched += 1
                totals[row] += weight * values[p]
        keep_best(totals, touched, n_touched, ids[q], scores[q])
        for j in range(n_touched):
            totals[touched[j]] = 0
            seen[touched[j]] = False

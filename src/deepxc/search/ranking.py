"""Puts answers in the one order every index promises: score descending, then id ascending."""

from __future__ import annotations

import numpy as np


def empty_answer(n_queries: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids of -1 and scores of -inf, shape (n_queries, k)."""
    return np.full((n_queries, k), -1, np.int64), np.full((n_queries, k), -np.inf, np.float32)


def rank_candidates(ids: np.ndarray, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k best of each row's candidates, which come sorted by score already; unfilled places (-1) come last.

    Candidates past k count only where the k-th ties with the next. Sorting again is paid for only where equal scores
    stand in the wrong order of their ids.
    """
    if ids.shape[1] > k and not (scores[:, k - 1] == scores[:, k]).any():
        ids, scores = ids[:, :k], scores[:, :k]
    ties = scores[:, 1:] == scores[:, :-1]
    if ties.any():
        swapped = ties & (ids[:, 1:] < ids[:, :-1]) & (ids[:, 1:] >= 0)
        rows = np.flatnonzero(swapped.any(axis=1))
        last = np.where(ids[rows] < 0, np.iinfo(np.int64).max, ids[rows])
        order = np.lexsort((last, -scores[rows]), axis=1)
        ids, scores = ids.copy(), scores.copy()
        ids[rows] = np.take_along_axis(ids[rows], order, axis=1)
        scores[rows] = np.take_along_axis(scores[rows], order, axis=1)
    if ids.shape[1] >= k:
        return np.ascontiguousarray(ids[:, :k]), np.ascontiguousarray(scores[:, :k])
    filled_ids, filled_scores = empty_answer(len(ids), k)
    filled_ids[:, : ids.shape[1]] = ids
    filled_scores[:, : ids.shape[1]] = scores
    return filled_ids, filled_scores


def rank_ragged(
    rows: np.ndarray, ids: np.ndarray, scores: np.ndarray, n_queries: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The k best of each row from a flat list of (row, id, score) in any order."""
    order = np.lexsort((ids, -scores, rows))
    rows, ids, scores = rows[order], ids[order], scores[order]
    starts = np.searchsorted(rows, np.arange(n_queries))
    place = np.arange(len(rows)) - starts[rows]
    best_ids, best_scores = empty_answer(n_queries, k)
    keep = place < k
    best_ids[rows[keep], place[keep]] = ids[keep]
    best_scores[rows[keep], place[keep]] = scores[keep]
    return best_ids, best_scores


def answer_zero_queries(ids: np.ndarray, scores: np.ndarray, rows: np.ndarray, size: int) -> None:
    """Give queries of zeros the answer that holds for them: every score is 0, so the smallest ids."""
    if not len(rows):
        return
    found = min(ids.shape[1], size)
    ids[rows, :found] = np.arange(found)
    scores[rows, :found] = 0
    ids[rows, found:] = -1
    scores[rows, found:] = -np.inf

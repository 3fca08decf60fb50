"""What a re-ranker needs beyond another encoder and another `OneVsAll`: its negatives, and its say in the answer.

A re-ranker is trained on each text's positives and on the labels that the first model wrongly gives it (DeepXML,
section 4); at prediction it scores the shortlist once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepxc.errors import DataError, UserError
from deepxc.modules.shortlists.row_blocks import LabelRows, drop_positives

if TYPE_CHECKING:
    from scipy import sparse


def confusions(predicted: np.ndarray, Y: sparse.csr_matrix, k: int | None = None, *, threads: int = 1) -> np.ndarray:
    """The labels predicted for each train row that it does not have, best first.

    Args:
        predicted: Label ids of each row, best first, -1 for none.
        Y: Labels of the rows.
        k: Most labels a row; all by default.
        threads: At most so many.

    Returns:
        Ids (int32), rows x k, -1 after a row's last: negatives, in the form that shortlisters give them.
    """
    return drop_positives(predicted, LabelRows.of(Y), predicted.shape[1] if k is None else k, threads)


def reranked(
    ids: np.ndarray, first: np.ndarray, second: np.ndarray, weight: float, k: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The shortlist in the order of `weight x second + (1 - weight) x first`, ties to the smaller id.

    Args:
        ids: Shortlisted labels, n x m, -1 for none.
        first: Scores of the first model, in the same places.
        second: Scores of the re-ranker.
        weight: Of the re-ranker, from 0 to 1.
        k: Labels wanted; all by default.

    Returns:
        Ids (int64) and scores (float32), best first; id -1 with score -inf where there is none.
    """
    if not ids.shape == first.shape == second.shape:
        raise DataError(f"ids of shape {ids.shape} with scores of {first.shape} and {second.shape}")
    if not 0 <= weight <= 1:
        raise UserError(f"weight {weight}", where="weight", remedy="Give a number from 0 to 1")
    empty = ids < 0
    scores = np.full(ids.shape, -np.inf, np.float32)
    scores[~empty] = weight * second[~empty] + (1 - weight) * first[~empty]
    last = np.where(empty, np.iinfo(np.int64).max, ids)
    order = np.lexsort((last, -scores), axis=1)[:, :k]
    return np.take_along_axis(ids, order, 1).astype(np.int64), np.take_along_axis(scores, order, 1)

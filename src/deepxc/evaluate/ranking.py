"""From any form of predictions to ranked label ids, with filter pairs taken out before the cut at k.

The order is always the same: score descending, then label id ascending. Only what a prediction stores is ranked: a
label that is not stored is never an answer, not even where stored scores are negative, and a stored zero is a score
like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse

from deepxc.errors import UserError
from deepxc.predict.topk import TopK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

Sparse: TypeAlias = "sparse.csr_matrix | sparse.csr_array"
Predictions: TypeAlias = "TopK | Sparse | ArrayLike"

_BLOCK = 1 << 22  # stored scores ranked at a time: bounds the memory of padding rows to one width


def pair_keys(pairs: ArrayLike | None, shape: tuple[int, int], *, where: str = "filter_pairs") -> np.ndarray:
    """Filter pairs as sorted, distinct keys `row * labels + label`.

    Args:
        pairs: (row, label) pairs, shape (m, 2); None and an empty array mean no pairs, one flat pair is accepted.
        shape: Rows and labels that the pairs may name.
        where: What the pairs are called in an error.

    Raises:
        UserError: The pairs are not integers, have another shape, or point past the rows or labels.
    """
    if pairs is None:
        return np.empty(0, np.int64)
    array = np.asarray(pairs)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.shape == (2,):  # a file of one line is often read flat
        array = array[None]
    if array.ndim != 2 or array.shape[1] != 2 or not np.issubdtype(array.dtype, np.integer):
        raise UserError(
            f"{array.dtype} array of shape {array.shape} holds no (row, label) pairs",
            where=where,
            remedy="Give integers of shape (m, 2)",
        )
    array = array.astype(np.int64, copy=False)
    outside = ((array < 0) | (array >= np.array(shape))).any(axis=1)
    if outside.any():
        row, label = array[outside][0].tolist()
        raise UserError(
            f"pair (row {row}, label {label}) lies outside {shape[0]} rows x {shape[1]} labels",
            where=where,
            remedy="Count rows and labels from 0, and use the pairs of the same split",
        )
    return np.unique(array[:, 0] * shape[1] + array[:, 1])


def needed_k(k: int, filter_pairs: ArrayLike | None = None) -> int:
    """How many labels to predict per text so that k remain once the filter pairs are taken out.

    Filter pairs must leave *before* the cut at k, or filtered texts are judged on fewer answers than the others.
    """
    if filter_pairs is None or np.size(filter_pairs) == 0:
        return k
    pairs = np.unique(np.asarray(filter_pairs).reshape(-1, 2), axis=0)
    return k + int(np.unique(pairs[:, 0], return_counts=True)[1].max())


def without_pairs(matrix: sparse.csr_matrix, keys: np.ndarray) -> sparse.csr_matrix:
    """The matrix without the stored entries that `keys` name; its columns must ascend within each row."""
    stored = _entry_keys(matrix)
    place = np.searchsorted(stored, keys)
    found = place[place < len(stored)]
    found = found[stored[found] == keys[place < len(stored)]]
    if not len(found):
        return matrix
    keep = np.ones(len(stored), bool)
    keep[found] = False
    indptr = np.r_[0, np.cumsum(keep)][matrix.indptr]
    return sparse.csr_matrix((matrix.data[keep], matrix.indices[keep], indptr), shape=matrix.shape)


def is_stored(matrix: sparse.csr_matrix, ids: np.ndarray) -> np.ndarray:
    """For each id (n, k) whether its row of the matrix stores it; the matrix' columns must ascend within each row."""
    stored = _entry_keys(matrix)
    if not len(stored):
        return np.zeros(ids.shape, bool)
    wanted = ids + np.arange(len(ids), dtype=np.int64)[:, None] * matrix.shape[1]
    place = np.searchsorted(stored, wanted.ravel()).reshape(ids.shape)
    np.minimum(place, len(stored) - 1, out=place)
    return (stored[place] == wanted) & (ids >= 0)


def ranked_ids(
    predictions: Predictions, shape: tuple[int, int], k: int, *, filter_pairs: ArrayLike | None = None
) -> np.ndarray:
    """The k best label ids of each row, best first, -1 where a row has fewer answers.

    Args:
        predictions: A `TopK`; or sparse scores; or an integer array of ids, best first, with -1 as padding.
        shape: Rows and labels of the truth.
        k: How many to keep.
        filter_pairs: (row, label) pairs that are no answers; those ranked below them move up.

    Returns:
        int64 array of shape (rows, k).

    Raises:
        UserError: The predictions have another shape than the truth, name a label twice or one that does not exist,
            hold NaN, are not ranked, or were cut before the filter pairs were taken out.
    """
    keys = pair_keys(filter_pairs, shape)
    if isinstance(predictions, TopK):
        if len(predictions.labels) != shape[1]:
            raise UserError(
                f"predictions know {len(predictions.labels)} labels but the truth has {shape[1]}",
                where="predictions",
                remedy="Use the truth of the data set that the model was trained on",
            )
        _check_scores(predictions)
        return _from_ids(predictions.ids, shape, k, keys)
    if isinstance(predictions, (sparse.sparray, sparse.spmatrix)):
        return _from_scores(sparse.csr_matrix(predictions), shape, k, keys)
    return _from_ids(predictions, shape, k, keys)


def best_stored(scores: sparse.csr_matrix, k: int) -> np.ndarray:
    """Ids (n, k) of the k best stored entries of each row, ties to the smaller id; columns must ascend in each row."""
    ids = np.full((scores.shape[0], k), -1, np.int64)
    for rows, width in _rows_of_like_width(np.diff(scores.indptr)):
        slot = np.arange(width)
        stored = slot < np.diff(scores.indptr)[rows, None]
        place = np.minimum(scores.indptr[rows, None] + slot, len(scores.data) - 1)
        loss = np.where(stored, -scores.data[place], np.inf)
        columns = np.where(stored, scores.indices[place], -1)
        loss, columns = _prune(loss, columns, k)
        order = np.argsort(loss, axis=1, kind="stable")[:, :k]
        ids[rows[:, None], np.arange(order.shape[1])] = np.take_along_axis(columns, order, axis=1)
    return ids


def _entry_keys(matrix: sparse.csr_matrix) -> np.ndarray:
    """`row * columns + column` of every stored entry."""
    starts = np.arange(matrix.shape[0], dtype=np.int64) * matrix.shape[1]
    return np.repeat(starts, np.diff(matrix.indptr)) + matrix.indices


def _rows_of_like_width(counts: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Blocks of rows whose entry counts lie within a factor of two, with the width to pad them to."""
    order = np.argsort(counts, kind="stable")
    order = order[np.searchsorted(counts[order], 1) :]
    start = 0
    while start < len(order):
        narrowest = int(counts[order[start]])
        like = int(np.searchsorted(counts[order], 2 * narrowest, side="right"))
        stop = min(like, start + max(1, _BLOCK // (2 * narrowest)))
        yield np.sort(order[start:stop]), int(counts[order[stop - 1]])
        start = stop


def _prune(loss: np.ndarray, columns: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Drop what cannot be among the k smallest losses, so that wide rows need no full sort; ties at the edge stay."""
    if loss.shape[1] <= 4 * k:
        return loss, columns
    edge = np.partition(loss, k - 1, axis=1)[:, k - 1 : k]
    row, column = np.nonzero(loss <= edge)
    counts = np.bincount(row, minlength=len(loss))
    width = int(counts.max())
    if 2 * width > loss.shape[1]:
        return loss, columns
    slot = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    fewer_losses = np.full((len(loss), width), np.inf, loss.dtype)
    fewer_columns = np.full((len(loss), width), -1, columns.dtype)
    fewer_losses[row, slot] = loss[row, column]
    fewer_columns[row, slot] = columns[row, column]
    return fewer_losses, fewer_columns


def _from_scores(scores: sparse.csr_matrix, shape: tuple[int, int], k: int, keys: np.ndarray) -> np.ndarray:
    _check_shape((scores.shape[0], scores.shape[1]), shape)
    if not scores.has_canonical_format:
        scores = scores.copy()
        scores.sort_indices()
        _check_distinct(_entry_keys(scores), shape[1])
    if not np.issubdtype(scores.dtype, np.floating):
        scores = scores.astype(np.float64)
    if np.isnan(scores.data).any():
        place = int(np.flatnonzero(np.isnan(scores.data))[0])
        row = int(np.searchsorted(scores.indptr, place, side="right")) - 1
        raise UserError(f"row {row} holds a score that is not a number", where="predictions")
    if len(keys):
        scores = without_pairs(scores, keys)
    return best_stored(scores, k)


def _from_ids(predictions: ArrayLike, shape: tuple[int, int], k: int, keys: np.ndarray) -> np.ndarray:
    ids = _as_ids(predictions)
    if len(ids) != shape[0]:
        _check_shape((len(ids), shape[1]), shape)
    outside = (ids < -1) | (ids >= shape[1])
    if outside.any():
        row, rank = np.argwhere(outside)[0].tolist()
        raise UserError(
            f"row {row} names label {ids[row, rank]}, but the truth has {shape[1]} labels",
            where="predictions",
            remedy="Count labels from 0 and use -1 for missing answers",
        )
    if len(keys):
        ids = _ids_without_pairs(ids, shape, k, keys)
    ids = _closed_up(ids)[:, :k]
    ordered = np.sort(ids, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        row, rank = np.argwhere(twice)[0].tolist()
        _raise_twice(row, int(ordered[row, rank]))
    if ids.shape[1] == k:
        return ids
    return np.pad(ids, ((0, 0), (0, k - ids.shape[1])), constant_values=-1)


def _as_ids(predictions: ArrayLike) -> np.ndarray:
    try:
        ids = np.asarray(predictions)
    except ValueError:
        ids = np.empty(0, object)
    if ids.ndim != 2 or not np.issubdtype(ids.dtype, np.integer):
        raise UserError(
            f"{type(predictions).__name__} of {ids.dtype} in {ids.ndim} dimensions is not a table of label ids",
            where="predictions",
            remedy="Give a TopK, sparse scores, or an integer array of ids (rows x k) padded with -1",
        )
    return ids.astype(np.int64, copy=False)


def _ids_without_pairs(ids: np.ndarray, shape: tuple[int, int], k: int, keys: np.ndarray) -> np.ndarray:
    """The ids with those of filter pairs set to -1; refuses rows that were cut too early for that."""
    rows = np.unique(keys // shape[1])
    own = ids[rows]
    wanted = own + rows[:, None] * shape[1]
    place = np.minimum(np.searchsorted(keys, wanted.ravel()), len(keys) - 1).reshape(own.shape)
    filtered = (keys[place] == wanted) & (own >= 0)
    full = (own >= 0).all(axis=1) & (ids.shape[1] < shape[1])
    left = ids.shape[1] - filtered.sum(axis=1)
    short = full & (left < min(k, ids.shape[1]))
    if short.any():
        row, remaining = int(rows[short][0]), int(left[short][0])
        raise UserError(
            f"row {row} was cut at {ids.shape[1]} answers, of which filter pairs leave {remaining}",
            where="predictions",
            remedy="Predict needed_k(k, filter_pairs) labels a text, or lower ks",
        )
    ids = ids.copy()
    ids[rows] = np.where(filtered, -1, own)
    return ids


def _closed_up(ids: np.ndarray) -> np.ndarray:
    """The ids with answers moved over gaps, order kept."""
    gaps = ((ids[:, :-1] < 0) & (ids[:, 1:] >= 0)).any(axis=1)
    if not gaps.any():
        return ids
    ids = ids.copy()
    own = ids[gaps]
    ids[gaps] = np.take_along_axis(own, np.argsort(own < 0, axis=1, kind="stable"), axis=1)
    return ids


def _check_shape(found: tuple[int, int], wanted: tuple[int, int]) -> None:
    if tuple(found) != tuple(wanted):
        raise UserError(
            f"predictions are {found[0]} rows x {found[1]} labels but the truth is {wanted[0]} x {wanted[1]}",
            where="predictions",
            remedy="Give predictions and truth of the same texts and labels, in the same order",
        )


def _check_scores(top: TopK) -> None:
    """Refuse scores that do not belong to a ranking."""
    if top.scores.shape != top.ids.shape:
        raise UserError(f"scores are {top.scores.shape} but ids are {top.ids.shape}", where="predictions")
    answered = top.ids >= 0
    wrong = np.isnan(top.scores) & answered
    if top.ids.shape[1] > 1:
        wrong[:, 1:] |= (top.scores[:, 1:] > top.scores[:, :-1]) & answered[:, 1:] & answered[:, :-1]
    if wrong.any():
        row, rank = np.argwhere(wrong)[0].tolist()
        raise UserError(
            f"row {row} is not ranked: the score at rank {rank + 1} is {top.scores[row, rank]}",
            where="predictions",
            remedy="Give scores in descending order, without NaN",
        )


def _check_distinct(ordered: np.ndarray, columns: int) -> None:
    """Refuse an entry that is stored twice; `ordered` are sorted entry keys."""
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(twice):
        row, label = divmod(int(ordered[twice[0]]), columns)
        _raise_twice(row, label)


def _raise_twice(row: int, label: int) -> None:
    raise UserError(f"row {row} names label {label} twice", where="predictions", remedy="Name each label once a row")

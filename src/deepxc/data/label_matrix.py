"""The label matrix Y in one canonical form, whatever it was read from; faults are told by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from deepxc.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from scipy import sparse


def label_matrix(
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray | None,
    width: int,
    at: Callable[[int], str],
    *,
    repeated: Literal["error", "merge"] = "error",
) -> sparse.csr_matrix:
    """Y as CSR float32: ids ascending in each row, none twice, no zeros.

    Args:
        indptr: Start of each row in `indices`, as in CSR.
        indices: Label ids.
        weights: Weight of each label, or None where all are 1. A weight of 0 means that the label is not there.
        width: Number of labels.
        at: Where a row came from, for messages.
        repeated: What a label that stands twice in a row is: a fault, or the same label once more, in which case
            the larger weight holds.

    Raises:
        DataError: A label id out of range, a weight that is negative or not finite, or a repeated label.
    """
    from scipy import sparse

    indptr, indices = np.asarray(indptr, np.int64), np.asarray(indices)
    with np.errstate(over="ignore"):  # what float32 cannot hold is told below
        data = np.ones(len(indices), np.float32) if weights is None else np.asarray(weights, np.float32)
    _check_range(indptr, indices, width, at)
    if weights is not None:
        _check_weights(indptr, data, np.asarray(weights), at)
        if not data.all():
            indptr, indices, data = _keep(indptr, indices, data, data != 0)
    indptr, indices, data = _ordered(indptr, indices, data, width, at, repeated)
    kind = np.int32 if max(len(indices), width) < np.iinfo(np.int32).max else np.int64
    Y = sparse.csr_matrix(
        (data, indices.astype(kind, copy=False), indptr.astype(kind, copy=False)), shape=(len(indptr) - 1, width)
    )
    Y.has_sorted_indices = True
    Y.has_canonical_format = True
    return Y


def row_of(indptr: np.ndarray, position: int) -> int:
    """Row that holds the entry at a position."""
    return int(np.searchsorted(indptr, position, side="right")) - 1


def _check_range(indptr: np.ndarray, indices: np.ndarray, width: int, at: Callable[[int], str]) -> None:
    if not len(indices) or (indices.min() >= 0 and indices.max() < width):
        return
    first = int(np.flatnonzero((indices < 0) | (indices >= width))[0])
    label = int(indices[first])
    what = f"label id {label} is negative" if label < 0 else f"label id {label} is past the last of {width} labels"
    raise DataError(what, where=at(row_of(indptr, first)), remedy="Count label ids from 0 and list every label")


def _check_weights(indptr: np.ndarray, data: np.ndarray, weights: np.ndarray, at: Callable[[int], str]) -> None:
    if not len(data) or (data.min() >= 0 and np.isfinite(data.max())):
        return
    first = int(np.flatnonzero(~(np.isfinite(data) & (data >= 0)))[0])
    raise DataError(
        f"label weight {weights[first]:g} is not a number from 0 up",
        where=at(row_of(indptr, first)),
        remedy="Give every label a finite weight of at least 0",
    )


def _ordered(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    width: int,
    at: Callable[[int], str],
    repeated: Literal["error", "merge"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Entries sorted by (row, label), each pair once."""
    key = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr)) * max(width, 1) + indices
    if not len(key) or (key[1:] > key[:-1]).all():
        return indptr, indices, data
    order = np.lexsort((-data, key))  # of equal pairs the heaviest comes first and stays
    key, indices, data = key[order], indices[order], data[order]
    twice = np.zeros(len(key), bool)
    twice[1:] = key[1:] == key[:-1]
    if not twice.any():
        return indptr, indices, data
    if repeated == "error":
        first = int(np.flatnonzero(twice)[0])
        raise DataError(
            f"label id {int(indices[first])} stands twice in one row",
            where=at(row_of(indptr, first)),
            remedy="List every label once a row",
        )
    return _keep(indptr, indices, data, ~twice)


def _keep(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, kept: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The entries marked in `kept`."""
    before = np.concatenate(([0], np.cumsum(kept)))
    return before[indptr], indices[kept], data[kept]

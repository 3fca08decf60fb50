"""Seeded validation splits in which every label stays known to train.

The rule. Rows are sorted by their rarest label, rarest labels first, in random order where that is the same; walking
along that line, rows are numbered by a low-discrepancy sequence, so that the rows with the lowest numbers are spread
evenly over labels of every frequency. For each label, the row with the highest number is kept in train. Validation is
the rows with the lowest numbers that are not kept. A label with n train texts thus has close to its fair share of
them in validation, never all of them, and a label with a single one none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from deepxc.data.dataset import Dataset, Split
from deepxc.errors import UserError

if TYPE_CHECKING:
    from scipy import sparse

_GOLDEN = (np.sqrt(5) - 1) / 2  # its multiples, modulo 1, are spread as evenly as any


def split_dataset(data: Dataset | Split, validation: float = 0.1, seed: int = 0) -> tuple[Split, Split]:
    """Train and validation splits of a data set's train split, or of any split.

    Rows keep their order and their filter pairs; label frequencies are counted anew over the smaller train split.

    Args:
        data: A split, or a data set whose train split is meant.
        validation: Share of the rows between 0 and 1, or a whole number of rows from 1 up.
        seed: Decides which rows.

    Raises:
        UserError: `validation` leaves one side without rows.
    """
    split = data.train if isinstance(data, Dataset) else data
    chosen = validation_rows(split.Y, _size(len(split), validation), seed)
    held = np.zeros(len(split), bool)
    held[chosen] = True
    train, other = split.take(np.flatnonzero(~held)), split.take(np.flatnonzero(held))
    labels = split.labels.counted(train.Y)
    return replace(train, labels=labels), replace(other, labels=labels)


def with_validation(dataset: Dataset, validation: float = 0.1, seed: int = 0) -> Dataset:
    """The data set with a part of its train split as validation split; see `split_dataset`."""
    if dataset.validation is not None:
        raise UserError(
            f"data set {dataset.name} has a validation split already",
            where="validation",
            remedy="Use that one, or split dataset.train",
        )
    train, held = split_dataset(dataset, validation, seed)
    test = None if dataset.test is None else replace(dataset.test, labels=train.labels)
    return Dataset(dataset.name, train.labels, train, test, held)


def validation_rows(Y: sparse.csr_matrix, size: int, seed: int = 0) -> np.ndarray:
    """The rows that the rule gives to validation, ascending.

    Where fewer rows are free than `size`, rows that are kept for labels follow, those kept for the fewest labels
    first: only then can a label lose all its train texts.

    Args:
        Y: Label matrix.
        size: How many rows.
        seed: Decides which.
    """
    place = _places(Y, np.random.default_rng(seed))
    row = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    last = np.full(Y.shape[1], -1, np.int64)
    np.maximum.at(last, Y.indices, place[row])
    by_place = np.argsort(place)
    kept_for = np.bincount(by_place[last[last >= 0]], minlength=Y.shape[0])
    return np.sort(np.lexsort((place, kept_for))[:size])


def _places(Y: sparse.csr_matrix, rng: np.random.Generator) -> np.ndarray:
    """The number of each row, from 0: any run of rows from 0 up is spread evenly over the labels."""
    rows, labels = Y.shape
    rarity = np.empty(labels, np.int64)
    rarity[np.argsort(np.bincount(Y.indices, minlength=labels), kind="stable")] = np.arange(labels)
    rarest = np.full(rows, labels, np.int64)  # rows without labels stand together at the end
    labelled = np.flatnonzero(np.diff(Y.indptr))
    if len(labelled):
        rarest[labelled] = np.minimum.reduceat(rarity[Y.indices], Y.indptr[labelled])
    line = np.lexsort((rng.random(rows), rarest))
    place = np.empty(rows, np.int64)
    place[line[np.argsort((np.arange(rows) * _GOLDEN + rng.random()) % 1.0, kind="stable")]] = np.arange(rows)
    return place


def _size(rows: int, validation: float) -> int:
    """How many rows a share or a number asks for."""
    if isinstance(validation, (int, np.integer)):
        size = int(validation)
    elif 0 < validation < 1:
        size = max(1, round(rows * validation))
    else:
        size = 0
    if not 0 < size < rows:
        raise UserError(
            f"{validation} of {rows} rows leaves train or validation empty",
            where="validation",
            remedy="Give a share between 0 and 1, or a whole number of rows below the size of train",
        )
    return size

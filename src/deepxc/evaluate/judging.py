"""Predictions held against the truth once, for every metric and report to read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from deepxc.errors import UserError
from deepxc.evaluate.ranking import is_stored, pair_keys, ranked_ids, without_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from deepxc.evaluate.ranking import Predictions, Sparse


@dataclass(frozen=True, eq=False)
class Judged:
    """The k best answers of each text and which of them are true.

    Attributes:
        ids: Label ids, best first, -1 where there are fewer answers; int64, shape (n, k).
        hits: Whether each answer is a true label; bool, shape (n, k).
        truth: True labels as a matrix of ones, columns ascending.
        positives: True labels per text, shape (n,).
    """

    ids: np.ndarray
    hits: np.ndarray
    truth: sparse.csr_matrix
    positives: np.ndarray

    @property
    def n_labels(self) -> int:
        """Labels in the space, predicted or not."""
        return self.truth.shape[1]

    def truth_fingerprint(self) -> str:
        """Equal for equal truths, so that two runs are compared on the same ground only."""
        digest = hashlib.blake2b(repr(self.truth.shape).encode(), digest_size=16)
        digest.update(self.truth.indptr.astype("<i8").tobytes())
        digest.update(self.truth.indices.astype("<i8").tobytes())
        return digest.hexdigest()


def judge(
    predictions: Predictions,
    Y: Sparse,
    k: int,
    *,
    filter_pairs: ArrayLike | None = None,
    filter_truth: bool = False,
) -> Judged:
    """Rank the predictions, cut them at k and look each answer up in the truth.

    Args:
        predictions: A `TopK`, sparse scores, or an integer array of ids padded with -1.
        Y: Sparse truth; a label is true where its weight is not 0.
        k: Answers per text.
        filter_pairs: (row, label) pairs that are no answers.
        filter_truth: Take the filter pairs out of the truth as well.
    """
    truth = binary_truth(Y)
    ids = ranked_ids(predictions, truth.shape, k, filter_pairs=filter_pairs)
    if filter_truth:
        truth = without_pairs(truth, pair_keys(filter_pairs, truth.shape))
    return Judged(ids, is_stored(truth, ids), truth, np.diff(truth.indptr).astype(np.int64))


def binary_truth(Y: Sparse) -> sparse.csr_matrix:
    """The truth as ones at the true labels: weights are dropped, explicit zeros are no labels.

    Raises:
        UserError: `Y` is not a sparse matrix, has no rows, or holds weights that are negative or not numbers.
    """
    if not sparse.issparse(Y):
        raise UserError(
            f"{type(Y).__name__} is not a sparse matrix", where="Y", remedy="Give scipy.sparse.csr_matrix(Y)"
        )
    truth = sparse.csr_matrix(Y)
    if 0 in truth.shape:
        raise UserError(
            f"the truth is {truth.shape[0]} rows x {truth.shape[1]} labels, so there is nothing to measure",
            where="Y",
            remedy="Give at least one text and one label",
        )
    if truth.dtype != bool and not (truth.data >= 0).all():
        place = int(np.flatnonzero(~(truth.data >= 0))[0])
        row = int(np.searchsorted(truth.indptr, place, side="right")) - 1
        raise UserError(
            f"row {row} gives label {truth.indices[place]} the weight {truth.data[place]}",
            where="Y",
            remedy="Give weights of 0 or more",
        )
    if not truth.has_canonical_format or not truth.data.all():
        truth = truth.copy()
        truth.sum_duplicates()
        truth.eliminate_zeros()
    ones = np.ones(truth.nnz, np.float32)
    return sparse.csr_matrix((ones, truth.indices, truth.indptr), shape=truth.shape)


def checked_ks(ks: Iterable[int]) -> tuple[int, ...]:
    """The cut-offs, ascending and distinct.

    Raises:
        UserError: There are none, or one is not a whole number above 0.
    """
    listed = list(ks)
    if not listed or any(int(k) != k or k < 1 for k in listed):
        raise UserError(
            f"{listed} are no cut-offs", where="ks", remedy="Give whole numbers from 1 up, such as (1, 3, 5)"
        )
    return tuple(sorted({int(k) for k in listed}))

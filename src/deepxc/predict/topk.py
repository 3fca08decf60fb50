"""The answer of every system: for each text its best labels, best first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepxc.data.label_space import LabelSpace


@dataclass(frozen=True, eq=False)
class TopK:
    """Label ids and scores, best first; ties go to the smaller label id.

    A row with fewer than k answers ends in id -1 with score -inf.

    Attributes:
        ids: Label rows, int64, shape (n, k).
        scores: Their scores, float32, shape (n, k).
        labels: The label space the ids point into.
    """

    ids: np.ndarray
    scores: np.ndarray
    labels: LabelSpace

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[np.ndarray]:
        """Unpacks as `ids, scores = top`."""
        return iter((self.ids, self.scores))

    @property
    def k(self) -> int:
        """How many answers a row has room for."""
        return self.ids.shape[1]

    @property
    def names(self) -> list[list[str]]:
        """The labels' readable names, row by row, without the padding."""
        return self._look_up(self.labels.names)

    @property
    def label_ids(self) -> list[list[str]]:
        """The labels' external ids, row by row, without the padding."""
        return self._look_up(self.labels.ids)

    def _look_up(self, table: Sequence[str]) -> list[list[str]]:
        return [[table[i] for i in row if i >= 0] for row in self.ids.tolist()]

    def to_csr(self) -> sparse.csr_matrix:
        """Scores as a sparse n x L matrix; columns ascend within a row."""
        filled = self.ids >= 0
        indptr = np.r_[0, np.cumsum(filled.sum(axis=1))]
        scores = sparse.csr_matrix(
            (self.scores[filled], self.ids[filled], indptr), shape=(len(self.ids), len(self.labels))
        )
        scores.sort_indices()
        return scores

    @classmethod
    def from_csr(cls, scores: sparse.csr_matrix, k: int, labels: LabelSpace) -> TopK:
        """The k best stored entries of each row: score descending, then label id ascending."""
        n = scores.shape[0]
        counts = np.diff(scores.indptr)
        rows = np.repeat(np.arange(n), counts)
        order = np.lexsort((scores.indices, -scores.data, rows))
        rank = np.arange(len(order)) - np.repeat(scores.indptr[:-1], counts)
        keep = rank < k
        ids = np.full((n, k), -1, np.int64)
        values = np.full((n, k), -np.inf, np.float32)
        ids[rows[keep], rank[keep]] = scores.indices[order][keep]
        values[rows[keep], rank[keep]] = scores.data[order][keep]
        return cls(ids, values, labels)

"""Clusters of labels as a way to the labels: which cluster holds each label, and which labels each cluster holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from deepxc.errors import UserError
from deepxc.modules.surrogates.binary import ones, renumbered

if TYPE_CHECKING:
    from scipy import sparse


class LabelGroups:
    """Labels by cluster, as a padded table: a text's best clusters become its candidates in one lookup.

    Args:
        clusters: The cluster of each label, -1 where it is in none.
        count: How many clusters there are.
    """

    def __init__(self, clusters: np.ndarray, count: int) -> None:
        clusters = np.asarray(clusters, np.int32)
        if len(clusters) and (clusters.max() >= count or clusters.min() < -1):
            raise UserError(f"clusters up to {clusters.max()} where there are {count}", where="clusters")
        self.clusters, self.count = clusters, count
        labels = np.argsort(clusters, kind="stable")[np.count_nonzero(clusters < 0) :]
        sizes = np.bincount(clusters[labels], minlength=count)
        place = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self.table = np.full((count, max(1, int(sizes.max(initial=0)))), -1, np.int32)
        self.table[clusters[labels], place] = labels

    def __len__(self) -> int:
        return self.count

    @property
    def largest(self) -> int:
        """Labels of the largest cluster."""
        return self.table.shape[1]

    def targets(self, Y: sparse.csr_matrix) -> sparse.csr_matrix:
        """The clusters that each text's labels are in, as a matrix of ones, texts x clusters."""
        return renumbered(ones(Y), self.clusters, self.count)

    def candidates(self, best: np.ndarray) -> np.ndarray:
        """The labels of each text's clusters: from (n, k) clusters to (n, k * largest) labels, -1 where fewer."""
        return self.table[best].reshape(len(best), -1)

    def with_labels(self, clusters: np.ndarray) -> Self:
        """The same groups with further labels behind the known ones, in the clusters given."""
        return type(self)(np.concatenate((self.clusters, clusters)), self.count)


def best_columns(scores: np.ndarray, k: int) -> np.ndarray:
    """The k columns of the highest scores in each row, in no particular order."""
    if k >= scores.shape[1]:
        return np.tile(np.arange(scores.shape[1]), (len(scores), 1))
    return np.argpartition(scores, -k, axis=1)[:, -k:]

"""Labels of the nearest train texts: what the dense and the sparse search of texts share."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from deepxc.modules.shortlists.row_blocks import LabelRows, over_rows
from deepxc.modules.shortlists.saving import ARRAYS, Description, not_fitted
from deepxc.modules.shortlists.searching import SearchingShortlister
from deepxc.persist.tensors import read_tensors, write_tensors
from deepxc.search.choose import load_index
from deepxc.search.vectors import check_count

if TYPE_CHECKING:
    from scipy import sparse

    from deepxc.modules.shortlists.views import Features

_INDEX = "index"


class NeighbourShortlister(SearchingShortlister):
    """A label's score is the summed similarity of the found texts that have it, divided by the row's best sum."""

    n_neighbours: int
    _labels: LabelRows | None = None

    @abstractmethod
    def nearest(self, features: Features, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The nearest train texts of each row (ids, -1 where fewer; similarities), nearest first."""

    @abstractmethod
    def _saved_index(self) -> object:
        """The fitted index, which can `save` itself."""

    @abstractmethod
    def _take_index(self, index: object) -> None:
        """Use an index that was opened from disk."""

    def _learn_labels(self, Y: sparse.csr_matrix, n_texts: int) -> None:
        rows = LabelRows.of(Y)
        rows.check(n_texts)
        # A copy of its own: the labels are read at every query, whatever the caller does with Y.
        self._labels = LabelRows(rows.indptr.copy(), rows.labels.copy(), rows.n_labels)
        self.n_labels = rows.n_labels

    @property
    def labels(self) -> LabelRows:
        """The train texts' labels."""
        if self._labels is None:
            raise not_fitted(self)
        return self._labels

    def shortlist(self, features: Features, k: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The k labels that the nearest texts speak for most, scores from 1 down."""
        k = check_count(k, "k")
        found, similarities = self.nearest(features, threads)
        return votes(found, similarities, self.labels, k, threads)

    def write(self, folder: Path) -> None:
        """Save into an existing, empty folder."""
        rows = self.labels
        write_tensors(Path(folder) / ARRAYS, {"indptr": rows.indptr, "labels": rows.labels})
        (Path(folder) / _INDEX).mkdir()
        self._saved_index().save(Path(folder) / _INDEX)  # pyrefly: ignore[missing-attribute]
        self._describe(folder)

    @classmethod
    def read_from(cls, folder: Path) -> Self:
        """Open what was saved."""
        description = Description.read(folder, cls.kind)
        found: Self = description.make(cls, folder)
        arrays = read_tensors(Path(folder) / ARRAYS, mmap=False)
        found.n_labels = description.n_labels
        found._labels = LabelRows(arrays["indptr"], arrays["labels"], description.n_labels)
        found._take_index(load_index(Path(folder) / _INDEX))
        return found


def votes(
    found: np.ndarray, similarities: np.ndarray, labels: LabelRows, k: int, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The k labels with most similarity among the found texts, and their shares of the row's best.

    Args:
        found: Texts, -1 after the last, shape (n, m).
        similarities: How near each is; what is below 0 counts as 0.
        labels: Labels of all texts.
        k: Labels wanted.
        threads: At most so many.
    """
    from deepxc.modules.shortlists.kernels import vote

    found, similarities = np.ascontiguousarray(found, np.int64), np.ascontiguousarray(similarities, np.float32)
    ids, scores = np.empty((len(found), k), np.int64), np.empty((len(found), k), np.float32)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        vote(found[part], similarities[part], labels.indptr, labels.labels, labels.n_labels, ids[part], scores[part])

    over_rows(len(found), threads, work)
    return ids, scores

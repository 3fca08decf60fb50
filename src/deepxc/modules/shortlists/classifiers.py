"""Labels whose classifier scores a text highest, by search: for prediction once the classifiers are trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from deepxc.errors import DataError
from deepxc.labels.centroids import label_centroids
from deepxc.modules.shortlists.owned_vectors import OwnedVectors
from deepxc.modules.shortlists.saving import Description, not_fitted
from deepxc.modules.shortlists.searching import SearchingShortlister
from deepxc.modules.shortlists.views import dense
from deepxc.search.vectors import check_count

if TYPE_CHECKING:
    from scipy import sparse

    from deepxc.modules.shortlists.views import Features
    from deepxc.search.protocol import Kind


class ClassifierSearch(SearchingShortlister):
    """Labels by the inner product of features and classifier vector, plus the classifier's bias if there is one.

    Until `index_classifiers` has been called, label centroids stand in for the classifiers, which start from them.

    Args:
        index: Kind of index, chosen by size by default.
    """

    kind: ClassVar[str] = "classifiers"

    def __init__(self, *, index: Kind | None = None) -> None:
        self.index: Kind | None = index
        self._vectors: OwnedVectors | None = None
        self._has_bias = False

    def _settings(self) -> dict[str, Any]:
        return {"index": self.index}

    def fit(self, features: Features, Y: sparse.csr_matrix, seed: int, threads: int) -> None:
        """Index the labels' centroids, as stand-ins."""
        vectors = np.asarray(label_centroids(Y, dense(features), threads=threads))
        self.index_classifiers(vectors, seed=seed, threads=threads)

    def index_classifiers(
        self, vectors: np.ndarray, bias: np.ndarray | None = None, *, seed: int = 0, threads: int | None = None
    ) -> None:
        """Index one vector a label, and what is added to its scores."""
        table = np.asarray(vectors, np.float32)
        if table.ndim != 2 or (bias is not None and len(bias) != len(table)):
            raise DataError(f"classifier vectors of shape {table.shape}, {None if bias is None else len(bias)} biases")
        self._has_bias = bias is not None
        if bias is not None:
            table = np.column_stack((table, np.asarray(bias, np.float32)))
        self.n_labels = len(table)
        self._vectors = OwnedVectors.build(
            table,
            np.arange(len(table)),
            len(table),
            metric="inner_product",
            kind=self.index,
            seed=seed,
            threads=threads,
        )

    @property
    def vectors(self) -> OwnedVectors:
        """The index, a vector a label."""
        if self._vectors is None:
            raise not_fitted(self)
        return self._vectors

    def add(self, vectors: np.ndarray, labels: np.ndarray, bias: np.ndarray | None = None) -> None:
        """Add classifiers of labels; the labels are found at once."""
        table = np.asarray(vectors, np.float32)
        if self._has_bias:
            table = np.column_stack((table, np.zeros(len(table), np.float32) if bias is None else bias))
        self.vectors.add(table, labels)
        self.n_labels = self.vectors.n_labels

    def shortlist(self, features: Features, k: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The k labels with the highest scores, and those scores."""
        rows = dense(features)
        if self._has_bias:
            rows = np.column_stack((rows, np.ones(len(rows), np.float32)))
        return self.vectors.search(rows, check_count(k, "k"), threads)

    def write(self, folder: Path) -> None:
        """Save into an existing, empty folder."""
        self.vectors.write(Path(folder))
        Description(self.kind, self._settings() | {"has_bias": self._has_bias}, self.n_labels).write(folder)

    @classmethod
    def read_from(cls, folder: Path) -> ClassifierSearch:
        """Open what was saved."""
        description = Description.read(folder, cls.kind)
        has_bias = bool(description.settings.pop("has_bias", False))
        found: ClassifierSearch = description.make(cls, folder)
        found.n_labels = description.n_labels
        found._has_bias = has_bias
        found._vectors = OwnedVectors.read_from(Path(folder), "inner_product")
        return found

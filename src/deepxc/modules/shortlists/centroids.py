"""Labels whose centroid is near: one structure of Astec's two, and the whole of Slice's negative sampler."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from deepxc.labels.centroids import label_centroids
from deepxc.labels.head_centroids import head_centroids
from deepxc.modules.shortlists.owned_vectors import OwnedVectors
from deepxc.modules.shortlists.saving import Description, not_fitted
from deepxc.modules.shortlists.searching import SearchingShortlister
from deepxc.modules.shortlists.views import dense
from deepxc.search.vectors import check_count

if TYPE_CHECKING:
    from scipy import sparse

    from deepxc.modules.shortlists.views import Features
    from deepxc.search.protocol import Kind


class Centroids(SearchingShortlister):
    """Nearest label centroids by cosine similarity, the mean of a label's texts scaled to length 1.

    Frequent labels have k-means centres of their texts beside the mean, and score by the nearest (DeepXML, A.4).
    Labels without train texts are never shortlisted.

    Args:
        head_threshold: Labels with at least this many train texts get centres; None: none does, as in Slice. The
            published code sets 7,500.
        n_centres: Centres of such a label.
        index: Kind of index, chosen by size by default.
    """

    kind: ClassVar[str] = "centroids"

    def __init__(self, *, head_threshold: int | None = 7500, n_centres: int = 300, index: Kind | None = None) -> None:
        self.head_threshold = head_threshold
        self.n_centres = n_centres
        self.index: Kind | None = index
        self._vectors: OwnedVectors | None = None

    def _settings(self) -> dict[str, Any]:
        return {"head_threshold": self.head_threshold, "n_centres": self.n_centres, "index": self.index}

    def fit(self, features: Features, Y: sparse.csr_matrix, seed: int, threads: int) -> None:
        """Index the centroids of the train rows' labels."""
        rows = dense(features)
        n_labels = self.n_labels = Y.shape[1]
        vectors = np.asarray(label_centroids(Y, rows, threads=threads))
        owners = np.flatnonzero(np.bincount(Y.indices[Y.data != 0], minlength=n_labels))
        vectors = vectors[owners] if len(owners) < n_labels else vectors
        if self.head_threshold is not None:
            heads = head_centroids(
                Y, rows, threshold=self.head_threshold, n_centres=self.n_centres, seed=seed, threads=threads
            )
            vectors = np.concatenate((vectors, np.asarray(heads.vectors)))
            owners = np.concatenate((owners, heads.labels))
        self._vectors = OwnedVectors.build(vectors, owners, n_labels, kind=self.index, seed=seed, threads=threads)

    @property
    def vectors(self) -> OwnedVectors:
        """The index and whose vectors it holds."""
        if self._vectors is None:
            raise not_fitted(self)
        return self._vectors

    def add(self, vectors: np.ndarray, labels: np.ndarray) -> None:
        """Add vectors of labels (mean features of a few examples, say); the labels are found at once."""
        self.vectors.add(vectors, labels)
        self.n_labels = self.vectors.n_labels

    def shortlist(self, features: Features, k: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The k labels with the nearest centroids and their cosine similarities."""
        return self.vectors.search(dense(features), check_count(k, "k"), threads)

    def write(self, folder: Path) -> None:
        """Save into an existing, empty folder."""
        self.vectors.write(Path(folder))
        self._describe(folder)

    @classmethod
    def read_from(cls, folder: Path) -> Centroids:
        """Open what was saved."""
        description = Description.read(folder, cls.kind)
        found: Centroids = description.make(cls, folder)
        found.n_labels = description.n_labels
        found._vectors = OwnedVectors.read_from(Path(folder), "cosine")
        return found

"""Clusters of labels as the easier task of module I (DeepXML, section 4 and A.2): which clusters has a text?"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from deepxc.errors import UserError
from deepxc.labels.centroids import label_centroids
from deepxc.labels.clusters import balanced_clusters
from deepxc.labels.walks import label_graph, smooth
from deepxc.labels.weighted_sums import unit_rows, weighted_sums
from deepxc.modules.surrogates.binary import ones, renumbered
from deepxc.modules.surrogates.sizes import surrogate_size

if TYPE_CHECKING:
    from deepxc.data.dataset import Split

logger = logging.getLogger(__name__)

MOST_BYTES = 1 << 29
"""Sparse smoothed centroids above this size are clustered in fewer dimensions."""
_DIMS = 512
_SIGNS = 8  # non-zeros of each token in the projection


class Clustering(NamedTuple):
    """The cluster of each label, -1 for labels without train texts, and how many clusters there are."""

    clusters: np.ndarray
    count: int


class LabelClusters:
    """Balanced clusters of label centroids that random walks over the label graph have smoothed.

    Args:
        n_clusters: Number of clusters. By default the largest power of two that leaves four labels to a cluster, at
            most 2^16. Never more than there are labels with train texts.
        walk: Smooth the centroids.
        steps: Visits a walk.
        restart: Probability of a step from the walk's own label.
        top_k: Neighbours kept a label.
        threads: None for every core.
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        walk: bool = True,
        steps: int = 50,
        restart: float = 0.2,
        top_k: int = 10,
        threads: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.walk = walk
        self.steps = steps
        self.restart = restart
        self.top_k = top_k
        self.threads = threads

    def targets(self, split: Split, features: sparse.csr_matrix | np.ndarray, seed: int) -> sparse.csr_matrix:
        """The clusters of each text: those that hold at least one of its labels."""
        clusters, count = self.cluster(split.Y, features, seed)
        return renumbered(ones(split.Y), clusters, count)

    def cluster(
        self,
        Y: sparse.csr_matrix,
        features: sparse.csr_matrix | np.ndarray,
        seed: int,
        unseen: sparse.csr_matrix | np.ndarray | None = None,
    ) -> Clustering:
        """The cluster of each label.

        Args:
            Y: Label matrix of the train rows.
            features: Their features, sparse or dense.
            seed: Same seed, same clusters, whatever the number of threads.
            unseen: Features of every label (of its text, say), which stand for those without train texts; those that
                have none here either are in no cluster.
        """
        if self.n_clusters is not None and self.n_clusters < 1:
            raise UserError(f"{self.n_clusters} clusters", where="n_clusters", remedy="Give 1 or more, or None")
        Y = ones(Y)
        seen = np.bincount(Y.indices, minlength=Y.shape[1]) > 0
        used = np.flatnonzero(seen if unseen is None else seen | _not_empty(unseen))
        clusters = np.full(Y.shape[1], -1, np.int32)
        if not seen.any():
            raise UserError("no train row has a label", where="Y", remedy="Give labelled rows")
        wanted = surrogate_size(len(used)) if self.n_clusters is None else self.n_clusters
        count = min(wanted, len(used))
        logger.info("surrogate task: %d clusters of %d labels (asked for: %s)", count, len(used), self.n_clusters)
        places = np.full(Y.shape[1], -1, np.int32)
        places[used] = np.arange(len(used))
        centroids = self._centroids(renumbered(Y, places, len(used)), features, seed)
        if unseen is not None:
            centroids = _filled(centroids, unseen, used, seen)
        clusters[used] = balanced_clusters(centroids, count, seed=seed, threads=self.threads)
        return Clustering(clusters, count)

    def _centroids(
        self, Y: sparse.csr_matrix, features: sparse.csr_matrix | np.ndarray, seed: int
    ) -> sparse.csr_matrix | np.ndarray:
        centroids = label_centroids(Y, features, threads=self.threads)
        if not self.walk:
            return centroids
        graph = label_graph(
            Y, steps=self.steps, restart=self.restart, top_k=self.top_k, seed=seed, threads=self.threads
        )
        if not isinstance(centroids, np.ndarray):
            bound = 8 * int(np.diff(centroids.indptr)[graph.indices].sum())
            if bound > MOST_BYTES:
                logger.info("smoothed centroids could take %d MiB: clustered in %d dimensions", bound >> 20, _DIMS)
                centroids = project(centroids, seed, self.threads)
        return smooth(centroids, graph, threads=self.threads)


def _not_empty(vectors: sparse.csr_matrix | np.ndarray) -> np.ndarray:
    """Which rows are not all zero."""
    if isinstance(vectors, np.ndarray):
        return np.asarray((vectors != 0).any(axis=1))
    return np.diff(vectors.indptr) > 0


def _filled(
    centroids: sparse.csr_matrix | np.ndarray,
    vectors: sparse.csr_matrix | np.ndarray,
    used: np.ndarray,
    seen: np.ndarray,
) -> sparse.csr_matrix | np.ndarray:
    """The centroids, with the vectors of labels without train texts in their places."""
    empty = np.flatnonzero(~seen[used])
    if not len(empty):
        return centroids
    if isinstance(centroids, np.ndarray):
        centroids[empty] = vectors[used[empty]]
        return centroids
    places = (np.ones(len(empty), np.float32), (empty, used[empty]))
    chosen = sparse.csr_matrix(places, shape=(len(used), len(seen)))
    return sparse.csr_matrix(centroids + chosen @ sparse.csr_matrix(vectors, dtype=np.float32))


def project(vectors: sparse.csr_matrix, seed: int, threads: int | None = None) -> np.ndarray:
    """Sparse rows in 512 dimensions, their angles about kept: each column adds to 8 dimensions, with random signs."""
    rng = np.random.default_rng(seed)
    columns = vectors.shape[1]
    # One place in each of eight equal stripes: distinct without drawing again.
    stripe = _DIMS // _SIGNS
    places = rng.integers(stripe, size=(columns, _SIGNS), dtype=np.int32) + stripe * np.arange(_SIGNS, dtype=np.int32)
    signs = rng.integers(2, size=columns * _SIGNS, dtype=np.int8).astype(np.float32) * 2 - 1
    bounds = np.arange(columns + 1, dtype=np.int64) * _SIGNS
    matrix = sparse.csr_matrix((signs, places.ravel(), bounds), shape=(columns, _DIMS))
    projected = weighted_sums(vectors, matrix, threads).toarray()
    unit_rows(projected, threads)
    return projected

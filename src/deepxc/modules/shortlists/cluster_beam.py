"""DECAF's shortlister: balanced clusters of labels, a classifier a cluster, and the labels of the best few (section 3).

With many small clusters a short beam holds nearly all of a text's labels; how short is read off the train rows once
the classifiers stand still.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from deepxc.errors import DataError, UserError
from deepxc.labels.centroids import label_centroids
from deepxc.modules.shortlists.owned_vectors import OwnedVectors
from deepxc.modules.shortlists.row_blocks import LabelRows, over_rows
from deepxc.modules.shortlists.saving import ARRAYS, Description, not_fitted
from deepxc.modules.shortlists.searching import SearchingShortlister
from deepxc.modules.shortlists.views import dense
from deepxc.modules.surrogates.binary import ones, renumbered
from deepxc.modules.surrogates.label_clusters import LabelClusters
from deepxc.persist.tensors import read_tensors, write_tensors
from deepxc.search.vectors import check_count

if TYPE_CHECKING:
    from deepxc.modules.shortlists.views import Features
    from deepxc.search.protocol import Kind

logger = logging.getLogger(__name__)

_CELLS = 1 << 23  # scores of clusters held at once while ranks are counted
_MOST_ROWS = 50_000  # train rows that the beam is read off


class ClusterBeam(SearchingShortlister):
    """The labels of the clusters that score highest; a label's score is its cluster's.

    Until `take_classifiers` has been called, the directions of the clusters' texts stand in for trained classifiers.

    Args:
        n_clusters: Number of clusters; by default it goes by the number of labels (see `surrogate_size`).
        beam: Clusters that are looked into; 0: as few as hold `recall` of the train rows' labels.
        recall: That share.
        index: Kind of index over the clusters' classifiers, chosen by size by default.
    """

    kind: ClassVar[str] = "clusters"

    def __init__(
        self, *, n_clusters: int | None = None, beam: int = 0, recall: float = 0.85, index: Kind | None = None
    ) -> None:
        self.n_clusters = n_clusters
        self.beam = beam
        self.recall = recall
        self.index: Kind | None = index
        self._clusters: np.ndarray | None = None
        self._vectors: OwnedVectors | None = None

    def _settings(self) -> dict[str, Any]:
        return {"n_clusters": self.n_clusters, "beam": self.beam, "recall": self.recall, "index": self.index}

    def fit(self, features: Features, Y: sparse.csr_matrix, seed: int, threads: int) -> None:
        """Cluster the labels by the centroids of their texts, and let those of the clusters stand for classifiers."""
        rows = dense(features)
        found = LabelClusters(self.n_clusters, walk=False, threads=threads).cluster(Y, rows, seed)
        self.take_clusters(found.clusters, found.count)
        targets = renumbered(ones(Y), found.clusters, found.count)
        self.take_classifiers(np.asarray(label_centroids(targets, rows, threads=threads)), seed=seed, threads=threads)
        self.choose_beam(rows, Y, threads=threads)

    def take_clusters(self, clusters: np.ndarray, count: int) -> None:
        """Take the cluster of each label, -1 for labels in none."""
        self._clusters = np.array(clusters, np.int32)
        self.n_labels, self._count = len(clusters), count
        inside = np.flatnonzero(self._clusters >= 0)
        order = inside[np.argsort(self._clusters[inside], kind="stable")]
        sizes = np.bincount(self._clusters[inside], minlength=count)
        self._members = LabelRows(np.concatenate(([0], np.cumsum(sizes))), order.astype(np.int32), self.n_labels)

    def take_classifiers(
        self, vectors: np.ndarray, bias: np.ndarray | None = None, *, seed: int = 0, threads: int | None = None
    ) -> None:
        """Take one vector a cluster, and what is added to its scores."""
        if self._clusters is None or len(vectors) != self._count:
            raise DataError(
                f"{len(vectors)} classifiers of clusters", where="vectors", remedy="Give the clusters first"
            )
        table = np.column_stack((vectors, np.zeros(len(vectors)) if bias is None else bias)).astype(np.float32)
        self._table = table
        everyone = np.arange(len(table))
        self._vectors = OwnedVectors.build(
            table, everyone, len(table), metric="inner_product", kind=self.index, seed=seed, threads=threads
        )

    def choose_beam(self, features: np.ndarray, Y: sparse.csr_matrix, *, threads: int = 1) -> None:
        """Unless a beam was set: as few clusters as hold the wanted share of the train rows' labels."""
        if self.beam:
            return
        if not 0 < self.recall <= 1:
            raise UserError(f"recall {self.recall}", where="recall", remedy="Give a number above 0, at most 1")
        reached = self.recalls(features, Y, threads=threads)
        self.beam = min(int(np.searchsorted(reached, self.recall)) + 1, len(reached))
        logger.info("beam of %d of %d clusters: recall %.3f", self.beam, len(reached), reached[self.beam - 1])

    def recalls(self, features: np.ndarray, Y: sparse.csr_matrix, *, threads: int = 1) -> np.ndarray:
        """The share of the rows' labels in the best 1, 2, ... clusters of each; of some rows, where there are many."""
        clusters, table = self.clusters, self._table
        if len(features) > _MOST_ROWS:
            some = np.linspace(0, len(features) - 1, _MOST_ROWS).astype(np.int64)
            features, Y = features[some], sparse.csr_matrix(Y[some])
        ranks: list[np.ndarray] = []
        step = max(1, _CELLS // len(table))
        for start in range(0, len(features), step):
            part = ones(sparse.csr_matrix(Y[start : start + step]))
            scores = _with_one(features[start : start + step]) @ table.T
            own = clusters[part.indices]
            row = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
            ranks.append(_ranks(scores, row[own >= 0], own[own >= 0], threads))
            ranks.append(np.full(int((own < 0).sum()), len(table)))
        counts = np.bincount(np.concatenate([*ranks, np.empty(0, np.int64)]), minlength=len(table) + 1)
        return np.cumsum(counts[:-1]) / max(1, counts.sum())

    @property
    def clusters(self) -> np.ndarray:
        """The cluster of each label, -1 for none."""
        if self._clusters is None or self._vectors is None:
            raise not_fitted(self)
        return self._clusters

    @property
    def size(self) -> int:
        """Most labels that a beam can hold."""
        _ = self.clusters
        return min(self.beam * int(np.diff(self._members.indptr).max(initial=1)), self.n_labels)

    def shortlist(self, features: Features, k: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """At most k labels of the best clusters, with their clusters' scores."""
        from deepxc.modules.shortlists.kernels import open_clusters

        _ = self.clusters
        assert self._vectors is not None
        k, rows = check_count(k, "k"), _with_one(dense(features))
        found, scores = self._vectors.search(rows, min(max(self.beam, 1), self._count), threads)
        ids, out = np.empty((len(rows), k), np.int64), np.empty((len(rows), k), np.float32)

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            open_clusters(found[part], scores[part], self._members.indptr, self._members.labels, ids[part], out[part])

        over_rows(len(rows), threads, work)
        return ids, out

    def add(self, vectors: np.ndarray, labels: np.ndarray) -> None:
        """Put further labels into the clusters that score highest for features like theirs."""
        assert self._vectors is not None
        best = self._vectors.search(_with_one(np.asarray(vectors, np.float32)), 1)[0][:, 0]
        wider = np.full(max(self.n_labels, int(np.max(labels)) + 1), -1, np.int32)
        wider[: self.n_labels] = self.clusters
        wider[labels] = best
        self.take_clusters(wider, self._count)

    def write(self, folder: Path) -> None:
        """Save into an existing, empty folder."""
        _ = self.clusters
        assert self._vectors is not None
        write_tensors(Path(folder) / ARRAYS, {"clusters": self.clusters, "classifiers": self._table})
        self._vectors.write(Path(folder))
        self._describe(folder)

    @classmethod
    def read_from(cls, folder: Path) -> ClusterBeam:
        """Open what was saved."""
        description = Description.read(folder, cls.kind)
        found: ClusterBeam = description.make(cls, folder)
        arrays = read_tensors(Path(folder) / ARRAYS, mmap=False)
        found.take_clusters(arrays["clusters"], len(arrays["classifiers"]))
        found._table = arrays["classifiers"]
        found._vectors = OwnedVectors.read_from(Path(folder), "inner_product")
        return found


def _with_one(features: np.ndarray) -> np.ndarray:
    """The features with a 1 behind them that meets the bias."""
    rows = np.ones((len(features), features.shape[1] + 1), np.float32)
    rows[:, :-1] = features
    return rows


def _ranks(scores: np.ndarray, rows: np.ndarray, columns: np.ndarray, threads: int) -> np.ndarray:
    """How many cells of its row score higher than each of the given cells."""
    from deepxc.modules.shortlists.kernels import count_higher

    rows, columns = np.asarray(rows, np.int64), np.asarray(columns, np.int64)
    out = np.empty(len(rows), np.int64)
    over_rows(len(rows), threads, lambda a, b: count_higher(scores, rows[a:b], columns[a:b], out[a:b]))
    return out

"""An index in which every vector stands for a label: several vectors may stand for one, and more can be added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepxc.errors import DataError
from deepxc.modules.shortlists.row_blocks import over_rows
from deepxc.persist.tensors import read_tensors, write_tensors
from deepxc.search.choose import build_index, kind_for, load_index

if TYPE_CHECKING:
    from pathlib import Path

    from deepxc.search.protocol import Kind, Metric, VectorIndex

_INDEX, _ARRAYS = "index", "owners.safetensors"
_SLACK = 32  # vectors searched beyond twice the wanted number, where labels have several

_QUICK_SCAN: dict[str, Any] = {"rescore": 3.0, "store": "float32"}


class OwnedVectors:
    """Finds labels by their best vector.

    Args:
        index: Over the vectors it was built from; None where there were none.
        owners: The label of each of its vectors.
        n_labels: Labels there are, one above the largest that may own a vector.
        metric: The similarity.
        added: Vectors added since, searched exactly, and the label of each.
    """

    def __init__(
        self,
        index: VectorIndex | None,
        owners: np.ndarray,
        n_labels: int,
        metric: Metric,
        added: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        self.index = index
        self.owners = np.ascontiguousarray(owners, np.int64)
        self.n_labels = n_labels
        self.metric: Metric = metric
        self.several = len(np.unique(self.owners)) < len(self.owners)
        self.added = added
        self._late: VectorIndex | None = None if added is None else build_index(added[0], metric, kind="exact")

    @classmethod
    def build(
        cls,
        vectors: np.ndarray,
        owners: np.ndarray,
        n_labels: int,
        *,
        metric: Metric = "cosine",
        kind: Kind | None = None,
        quick: bool = False,
        seed: int = 0,
        threads: int | None = None,
    ) -> OwnedVectors:
        """Index vectors, one a row, each with the label that it stands for.

        `quick` scores fewer candidates, from vectors in full precision: half the time of a scan for twice the memory.
        """
        index = None
        if len(vectors):
            kind = kind or kind_for(len(vectors))
            settings = _QUICK_SCAN if quick and kind == "scan" else {}
            index = build_index(vectors, metric, kind=kind, seed=seed, threads=threads, **settings)
        return cls(index, owners, n_labels, metric)

    def add(self, vectors: np.ndarray, owners: np.ndarray) -> None:
        """Add vectors of labels, new ones or known ones; they are found from the next search on."""
        vectors, owners = np.asarray(vectors, np.float32), np.asarray(owners, np.int64)
        if vectors.ndim != 2 or len(vectors) != len(owners):
            raise DataError(f"vectors of shape {vectors.shape} for {len(owners)} labels")
        if not len(owners):
            return
        before = [] if self.added is None else [self.added]
        parts, names = zip(*before, (vectors, owners), strict=True)
        self.added = np.concatenate(parts), np.concatenate(names)
        self._late = build_index(self.added[0], self.metric, kind="exact")
        self.n_labels = max(self.n_labels, int(owners.max()) + 1)

    def vectors(self) -> np.ndarray | None:
        """Each label's vector as it was given, where the index keeps it so and no label has several."""
        built = None if self.index is None or self.several else self.index.vectors()
        if built is None:
            return None
        vectors = np.zeros((self.n_labels, built.shape[1]), np.float32)
        vectors[self.owners] = built
        if self.added is not None:
            vectors[self.added[1]] = self.added[0]
        return vectors

    def search(self, queries: np.ndarray, k: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The k best labels of each query (ids, scores), best first, each by its best vector."""
        ids, scores = self._search_built(queries, k, threads)
        if self._late is None or self.added is None:
            return ids, scores
        places, late_scores = self._late.search(queries, min(len(self._late), 2 * k + _SLACK), threads=threads)
        late = np.where(places < 0, -1, self.added[1][places])
        ids, scores = np.concatenate((ids, late), axis=1), np.concatenate((scores, late_scores), axis=1)
        last = np.where(ids < 0, np.iinfo(np.int64).max, ids)
        order = np.lexsort((last, -scores), axis=1)
        everyone = np.arange(self.n_labels)
        return self._distinct(
            np.take_along_axis(ids, order, 1), np.take_along_axis(scores, order, 1), everyone, k, threads
        )[:2]

    def _search_built(self, queries: np.ndarray, k: int, threads: int) -> tuple[np.ndarray, np.ndarray]:
        if self.index is None:
            return np.full((len(queries), k), -1, np.int64), np.full((len(queries), k), -np.inf, np.float32)
        if not self.several:
            places, scores = self.index.search(queries, k, threads=threads)
            return np.where(places < 0, -1, self.owners[places]), scores
        width = min(len(self.index), 2 * k + _SLACK)
        while True:  # a label with hundreds of vectors can fill a list alone: look further until k labels are there
            places, scores = self.index.search(queries, width, threads=threads)
            ids, best, fewest = self._distinct(places, scores, self.owners, k, threads)
            if fewest >= k or width == len(self.index):
                return ids, best
            width = min(len(self.index), 4 * width)

    def _distinct(
        self, places: np.ndarray, scores: np.ndarray, owners: np.ndarray, k: int, threads: int
    ) -> tuple[np.ndarray, np.ndarray, int]:
        from deepxc.modules.shortlists.kernels import best_per_label

        places, scores = np.ascontiguousarray(places), np.ascontiguousarray(scores)
        ids, best = np.empty((len(places), k), np.int64), np.empty((len(places), k), np.float32)
        fewest: list[int] = []

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            fewest.append(best_per_label(places[part], scores[part], owners, self.n_labels, ids[part], best[part]))

        over_rows(len(places), threads, work)
        return ids, best, min(fewest, default=k)

    def write(self, folder: Path) -> None:
        """Save into an existing folder."""
        arrays = {"owners": self.owners, "n_labels": np.array([self.n_labels], np.int64)}
        if self.added is not None:
            arrays |= {"added.vectors": self.added[0], "added.owners": self.added[1]}
        write_tensors(folder / _ARRAYS, arrays)
        if self.index is not None:
            (folder / _INDEX).mkdir()
            self.index.save(folder / _INDEX)

    @classmethod
    def read_from(cls, folder: Path, metric: Metric) -> OwnedVectors:
        """Open what was saved; the vectors stay on disk until they are read."""
        arrays = read_tensors(folder / _ARRAYS, mmap=False)
        index = load_index(folder / _INDEX) if (folder / _INDEX).is_dir() else None
        added = (arrays["added.vectors"], arrays["added.owners"]) if "added.owners" in arrays else None
        return cls(index, arrays["owners"], int(arrays["n_labels"][0]), metric, added)

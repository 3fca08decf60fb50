"""What the approximate indexes share: a FAISS structure that proposes candidates, and a store that scores them.

The structure is small and rough (4-bit codes, a graph over bytes); the store holds every vector in 16 or 32 bits. A
search takes a few times k candidates from the structure, scores them from the store and keeps the k best.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

import faiss
import numpy as np

from deepxc.errors import UserError
from deepxc.search.index_folder import IndexDescription, damaged
from deepxc.search.ranking import answer_zero_queries, empty_answer, rank_candidates
from deepxc.search.stores import Store, make_store
from deepxc.search.thread_limits import faiss_threads
from deepxc.search.vectors import check_count, prepare_queries, prepare_vectors
from deepxc.threads import thread_count

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from deepxc.search.protocol import Kind, Metric

_FILE = "index.faiss"
_MORE_CANDIDATES = 60  # on top of a multiple of k: a small k needs proportionally more
TRAINABLE = 1024  # with fewer vectors codes cannot be learnt, and scanning the store itself is as quick


class FaissIndex(ABC):
    """An approximate index: `_structure` of a subclass proposes, the store decides.

    Args:
        refined: FAISS index that holds structure and store, or None without vectors.
        metric: The similarity.
        dim: Length of a vector.
        settings: What `build` was given, by name; saved with the index.
    """

    kind: ClassVar[Kind]

    def __init__(self, refined: Any, metric: Metric, dim: int, settings: dict[str, Any]) -> None:  # noqa: ANN401 - a FAISS index or None
        self.metric = metric
        self.settings = settings
        self._dim = dim
        self._refined = refined
        self._is_store_alone = not isinstance(refined, faiss.IndexRefine)
        self.apply_settings()

    @classmethod
    def _build(
        cls, vectors: ArrayLike, metric: Metric, seed: int, threads: int | None, settings: dict[str, Any]
    ) -> Self:
        prepared = prepare_vectors(vectors, metric)
        size, dim = prepared.shape
        settings = {**settings, "seed": seed}
        cls._check_settings(settings, dim)
        threads = thread_count(threads)
        with faiss_threads(threads):
            refined = None
            if size:
                refined = make_store(prepared, settings["store"])
                if size >= TRAINABLE:
                    structure = cls._structure(prepared, settings, threads)
                    refined = own_parts(faiss.IndexRefine(structure, refined), structure, refined)
        return cls(refined, metric, dim, settings)

    @classmethod
    def _check_settings(cls, settings: dict[str, Any], dim: int) -> None:  # noqa: ARG003 - for subclasses
        """Refuse settings that make no index."""
        if settings["store"] not in get_args(Store):
            raise UserError(
                f"unknown store {settings['store']!r}", where="store", remedy=f"Use one of {get_args(Store)}"
            )
        if not settings["rescore"] >= 1:
            raise UserError(f"rescore is {settings['rescore']}", where="rescore", remedy="Give a number of 1 or more")

    @classmethod
    @abstractmethod
    def _structure(cls, vectors: np.ndarray, settings: dict[str, Any], threads: int) -> faiss.Index:
        """The trained structure over the vectors; may fill in settings that it chose itself."""

    def apply_settings(self) -> None:  # noqa: B027 - a scan has nothing to set
        """Set how widely the structure looks; called after building, loading, and by whoever changes `settings`."""

    @property
    def _proposer(self) -> Any:  # noqa: ANN401 - FAISS's stubs know no subclasses
        """The structure in its own class, or None where the store stands alone."""
        if self._is_store_alone or self._refined is None:
            return None
        return faiss.downcast_index(self._refined.base_index)

    def __len__(self) -> int:
        return 0 if self._refined is None else self._refined.ntotal

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    def search(self, queries: ArrayLike, k: int, *, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The k best (ids, scores) of each query; see `VectorIndex.search`."""
        k, threads = check_count(k, "k"), check_count(threads, "threads")
        single = np.ndim(queries) == 1
        rows, zeros = prepare_queries(queries, self._dim, self.metric)
        if self._refined is None or not len(rows):
            ids, scores = empty_answer(len(rows), k)
        else:
            with faiss_threads(threads):
                scores, ids = self._refined.search(rows, self._candidates(k))
                if not self._is_store_alone:
                    ids, scores = self._fill_short_rows(rows, ids, scores, min(k, len(self)))
            ids, scores = rank_candidates(ids, scores, k)
            answer_zero_queries(ids, scores, zeros, len(self))
        return (ids[0], scores[0]) if single else (ids, scores)

    def vectors(self) -> np.ndarray | None:
        """The vectors that were indexed, where the store keeps them as they were."""
        if self.settings["store"] != "float32" or self.metric == "cosine":
            return None
        if self._refined is None:
            return np.empty((0, self._dim), np.float32)
        store = self._refined if self._is_store_alone else faiss.downcast_index(self._refined.refine_index)
        return store.reconstruct_n(0, len(self))

    def _candidates(self, k: int) -> int:
        """How many vectors are scored from the store."""
        return min(len(self), max(int(np.ceil(k * self.settings["rescore"])), k + _MORE_CANDIDATES))

    def _fill_short_rows(
        self, rows: np.ndarray, ids: np.ndarray, scores: np.ndarray, wanted: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Search the whole store for the queries whose candidates were fewer than what was asked for."""
        short = np.flatnonzero(ids[:, wanted - 1] < 0)
        if len(short):
            store = faiss.downcast_index(self._refined.refine_index)
            scores[short], ids[short] = store.search(rows[short], ids.shape[1])
        return ids, scores

    def save(self, folder: Path) -> None:
        """Write the index into an existing, empty folder."""
        if self._refined is not None:
            faiss.write_index(self._refined, str(Path(folder) / _FILE))
        IndexDescription(self.kind, self.metric, self._dim, len(self), self.settings).write(Path(folder))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Open a saved index; the store stays on disk and is read as it is needed."""
        description = IndexDescription.read(Path(folder))
        path = Path(folder) / _FILE
        if description.kind != cls.kind:
            raise damaged(path, f"kind {description.kind}, expected {cls.kind}")
        refined = None
        if description.size:
            try:
                refined = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
            except RuntimeError as error:
                raise damaged(path, str(error).strip().splitlines()[-1]) from error
            if (refined.ntotal, refined.d) != (description.size, description.dim):
                raise damaged(path, f"holds {refined.ntotal} vectors of {refined.d}")
        try:
            cls._check_settings(description.settings, description.dim)
            return cls(refined, description.metric, description.dim, description.settings)
        except (KeyError, TypeError, UserError) as error:
            raise damaged(path, f"settings: {error}") from error


def own_parts(outer: Any, *inner: Any) -> Any:  # noqa: ANN401 - FAISS's classes are untyped
    """Hand the inner indexes to the outer one, which frees them and writes them to disk with itself."""
    for part in inner:
        part.this.disown()
    if isinstance(outer, faiss.IndexRefine):
        outer.own_fields = outer.own_refine_index = True
    elif isinstance(outer, (faiss.IndexPreTransform, faiss.IndexIVF)):
        outer.own_fields = True
    return outer

"""Exact search: every vector is scored. The oracle that the approximate indexes are measured against."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from deepxc.search.index_folder import IndexDescription, damaged
from deepxc.search.ranking import answer_zero_queries, empty_answer, rank_ragged
from deepxc.search.thread_limits import single_threaded_blas
from deepxc.search.vectors import check_count, prepare_queries, prepare_vectors

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from deepxc.search.protocol import Kind, Metric

_QUERIES_AT_ONCE = 128
_VECTORS_AT_ONCE = 8192  # with the queries above: a block of 4 MiB scores
_GATHERED_FLOATS = 1 << 20  # vectors copied out together to be scored anew: 4 MiB
_FILE = "vectors.npy"


class ExactIndex:
    """Scores all vectors block by block and keeps the k best.

    A matrix product rounds differently with the shape of its blocks. So it only picks the candidates, with a margin
    as wide as rounding can be off; each is then scored anew by the same sum whatever stands beside it. Equal vectors
    therefore get equal scores, and a query alone gets the answer it gets in a batch.
    """

    kind: Kind = "exact"

    def __init__(self, vectors: np.ndarray, metric: Metric, longest: float) -> None:
        self.metric = metric
        self._vectors = vectors
        self._longest = longest  # length of the longest vector, which bounds the rounding

    @classmethod
    def build(
        cls,
        vectors: ArrayLike,
        *,
        metric: Metric = "cosine",
        seed: int = 0,  # noqa: ARG003 - nothing is drawn here
        threads: int | None = None,  # noqa: ARG003 - there is nothing to build
    ) -> Self:
        """Index vectors, one a row.

        With the inner product, a float32 C-ordered array is kept as it is, not copied: leave it unchanged.
        """
        prepared = prepare_vectors(vectors, metric)
        return cls(prepared, metric, _longest_row(prepared))

    def __len__(self) -> int:
        return len(self._vectors)

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._vectors.shape[1]

    def vectors(self) -> np.ndarray | None:
        """The vectors that were indexed, where they are kept as they were."""
        return None if self.metric == "cosine" else np.asarray(self._vectors)

    def search(self, queries: ArrayLike, k: int, *, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The k best (ids, scores) of each query; see `VectorIndex.search`."""
        k, threads = check_count(k, "k"), check_count(threads, "threads")
        single = np.ndim(queries) == 1
        rows, zeros = prepare_queries(queries, self.dim, self.metric)
        ids, scores = empty_answer(len(rows), k)
        starts = range(0, len(rows), _QUERIES_AT_ONCE)

        def fill(start: int) -> None:
            block = slice(start, start + _QUERIES_AT_ONCE)
            ids[block], scores[block] = self._search_block(rows[block], k)

        if len(self):
            with single_threaded_blas():
                if threads > 1 and len(starts) > 1:
                    with ThreadPoolExecutor(threads) as pool:
                        list(pool.map(fill, starts))
                else:
                    for start in starts:
                        fill(start)
        answer_zero_queries(ids, scores, zeros, len(self))
        return (ids[0], scores[0]) if single else (ids, scores)

    def _search_block(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        rows, ids = self._candidates(queries, k)
        return rank_ragged(rows, ids, self._scores(queries, rows, ids), len(queries), k)

    def _candidates(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(row, id) pairs that hold each query's k best for certain, and few others."""
        lengths = np.sqrt(np.einsum("ij,ij->i", queries, queries, dtype=np.float64))
        margin = (4 * self.dim * np.finfo(np.float32).eps * self._longest * lengths).astype(np.float32)
        rows, ids, scores = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
        floor = np.full(len(queries), -np.inf, np.float32)
        floor[lengths == 0] = np.inf  # queries of zeros are answered elsewhere; here all would tie
        for start in range(0, len(self), _VECTORS_AT_ONCE):
            block = queries @ self._vectors[start : start + _VECTORS_AT_ONCE].T
            if block.shape[1] > k and start == 0:
                floor = np.maximum(floor, np.partition(block, -k, axis=1)[:, -k] - margin)
            at_rows, at_ids = np.nonzero(block >= floor[:, None])
            rows, ids = np.r_[rows, at_rows], np.r_[ids, at_ids + start]
            scores = np.r_[scores, block[at_rows, at_ids]]
            if start + _VECTORS_AT_ONCE < len(self) or len(self) > k:
                rows, ids, scores, floor = _raise_floor(rows, ids, scores, floor, margin, k)
        return rows, ids

    def _scores(self, queries: np.ndarray, rows: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Inner product of each (row, id) pair, summed in an order that depends on nothing but the length."""
        scores = np.empty(len(rows), np.float32)
        step = max(1, _GATHERED_FLOATS // self.dim)
        for start in range(0, len(rows), step):
            pairs = slice(start, start + step)
            np.einsum("ij,ij->i", queries[rows[pairs]], self._vectors[ids[pairs]], out=scores[pairs])
        return scores

    def save(self, folder: Path) -> None:
        """Write the index into an existing, empty folder."""
        np.save(Path(folder) / _FILE, self._vectors, allow_pickle=False)
        IndexDescription(self.kind, self.metric, self.dim, len(self), {"longest": self._longest}).write(Path(folder))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Open a saved index; the vectors stay on disk and are read as they are needed."""
        description = IndexDescription.read(Path(folder))
        path = Path(folder) / _FILE
        try:
            vectors = np.load(path, mmap_mode="r" if description.size else None, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise damaged(path, str(error)) from error
        if vectors.shape != (description.size, description.dim) or vectors.dtype != np.float32:
            raise damaged(path, f"holds {vectors.dtype} of shape {vectors.shape}")
        longest = description.settings.get("longest")
        if not isinstance(longest, (int, float)):
            raise damaged(path, "longest is missing from its settings")
        return cls(vectors, description.metric, float(longest))


def _longest_row(vectors: np.ndarray) -> float:
    """Length of the longest vector."""
    if not len(vectors):
        return 0.0
    return float(np.sqrt(np.einsum("ij,ij->i", vectors, vectors).max()))


def _raise_floor(
    rows: np.ndarray, ids: np.ndarray, scores: np.ndarray, floor: np.ndarray, margin: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Drop the pairs that cannot be among their row's k best any more; returns what stays and each row's floor."""
    order = np.lexsort((-scores, rows))
    rows, ids, scores = rows[order], ids[order], scores[order]
    starts = np.searchsorted(rows, np.arange(len(floor) + 1))
    full = np.flatnonzero(np.diff(starts) >= k)
    floor = floor.copy()
    floor[full] = np.maximum(floor[full], scores[starts[full] + k - 1] - margin[full])
    keep = scores >= floor[rows]
    return rows[keep], ids[keep], scores[keep], floor

"""What every vector index can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

Metric = Literal["cosine", "inner_product"]
Kind = Literal["exact", "scan", "lists", "graph", "postings"]


@runtime_checkable
class VectorIndex(Protocol):
    """Finds the vectors most similar to a query.

    Implementations are built by a classmethod `build(vectors, metric=..., seed=..., threads=...)` and opened again by
    `load(folder)`. The same vectors, seed and settings give the same index, whatever the number of threads. Searches
    may run at the same time from several Python threads.
    """

    kind: Kind
    metric: Metric

    def __len__(self) -> int: ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    def search(self, queries: np.ndarray, k: int, *, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The k best (ids int64, scores float32) of each query, best first, ties to the smaller id.

        A single vector (1-d) gives 1-d answers. Rows short of k end in id -1 with score -inf. A query of zeros is
        equally far from everything, so it gets the smallest ids with score 0.
        """
        ...

    def vectors(self) -> np.ndarray | None:
        """The vectors that were indexed, where they are kept as they were."""
        ...

    def save(self, folder: Path) -> None:
        """Write the index into an existing, empty folder."""
        ...

"""A graph of near neighbours, walked from vector to vector: good where neighbourhoods are narrow.

Slow to build on large sets; there it reads the fewest vectors of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import faiss

from deepxc.search.faiss_index import FaissIndex
from deepxc.search.vectors import check_count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from deepxc.search.protocol import Kind, Metric
    from deepxc.search.stores import Store


class GraphIndex(FaissIndex):
    """FAISS HNSW over vectors of one byte a dimension; the best `rescore` times k are scored from the store.

    FAISS builds the same graph on any number of threads from version 1.15 on.
    """

    kind: ClassVar[Kind] = "graph"

    @classmethod
    def build(
        cls,
        vectors: ArrayLike,
        *,
        metric: Metric = "cosine",
        seed: int = 0,
        threads: int | None = None,
        neighbours: int = 32,
        build_width: int = 60,
        width: int = 128,
        rescore: float = 1.2,
        store: Store = "float16",
    ) -> Self:
        """Index vectors, one a row.

        Args:
            vectors: One vector a row.
            metric: The similarity.
            seed: Of the levels that the vectors are drawn to.
            threads: At most so many; all cores by default.
            neighbours: Edges of a vector.
            build_width: How many near vectors are kept in sight while an edge is looked for.
            width: The same while a query is answered; at least the number of candidates.
            rescore: How many times k candidates are scored from the store.
            store: Precision of the store.
        """
        settings = {
            "neighbours": neighbours,
            "build_width": build_width,
            "width": width,
            "rescore": rescore,
            "store": store,
        }
        return cls._build(vectors, metric, seed, threads, settings)

    @classmethod
    def _check_settings(cls, settings: dict[str, Any], dim: int) -> None:
        super()._check_settings(settings, dim)
        for name in ("neighbours", "build_width", "width"):
            check_count(settings[name], name)

    @classmethod
    def _structure(
        cls,
        vectors: np.ndarray,
        settings: dict[str, Any],
        threads: int,  # noqa: ARG003 - FAISS was told already
    ) -> faiss.Index:
        bytes_of = faiss.ScalarQuantizer.QT_8bit
        # FAISS's stubs know one constructor of several, and not the generator.
        make: Any = faiss.IndexHNSWSQ
        graph = make(vectors.shape[1], bytes_of, settings["neighbours"], faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = settings["build_width"]
        generator: Any = faiss.RandomGenerator  # pyrefly: ignore
        graph.hnsw.rng = generator(settings["seed"] % (2**31 - 1))
        graph.train(vectors)
        graph.add(vectors)
        return graph

    def apply_settings(self) -> None:
        """Set how widely the structure looks."""
        if self._proposer is not None:
            self._proposer.hnsw.efSearch = self.settings["width"]

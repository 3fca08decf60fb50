"""Labels of the nearest train texts in the encoder's space: the other structure of Astec's two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from deepxc.modules.shortlists.neighbours import NeighbourShortlister
from deepxc.modules.shortlists.saving import not_fitted
from deepxc.modules.shortlists.views import dense
from deepxc.search.choose import build_index
from deepxc.search.vectors import check_count

if TYPE_CHECKING:
    import numpy as np
    from scipy import sparse

    from deepxc.modules.shortlists.views import Features
    from deepxc.search.protocol import Kind, VectorIndex


class Texts(NeighbourShortlister):
    """Labels of the train texts nearest by cosine similarity of their features.

    Args:
        n_neighbours: Texts found for a row; the published code searches 100.
        index: Kind of index, chosen by size by default.
    """

    kind: ClassVar[str] = "texts"

    def __init__(self, n_neighbours: int = 100, *, index: Kind | None = None) -> None:
        self.n_neighbours = n_neighbours
        self.index: Kind | None = index
        self._index: VectorIndex | None = None

    def _settings(self) -> dict[str, Any]:
        return {"n_neighbours": self.n_neighbours, "index": self.index}

    def fit(self, features: Features, Y: sparse.csr_matrix, seed: int, threads: int) -> None:
        """Index the train rows."""
        check_count(self.n_neighbours, "n_neighbours")
        rows = dense(features)
        self._learn_labels(Y, len(rows))
        self._index = build_index(rows, "cosine", kind=self.index or "auto", seed=seed, threads=threads)

    def nearest(self, features: Features, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The nearest train texts of each row (ids, -1 where fewer; cosine similarities), nearest first."""
        return self._saved_index().search(dense(features), self.n_neighbours, threads=threads)

    def _saved_index(self) -> VectorIndex:
        if self._index is None:
            raise not_fitted(self)
        return self._index

    def _take_index(self, index: Any) -> None:  # noqa: ANN401 - of any kind
        self._index = index

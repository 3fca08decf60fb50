"""Labels of the train texts that share the most telling tokens: for short texts much quicker than a dense search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from scipy import sparse

from deepxc.labels.weighted_sums import unit_rows
from deepxc.modules.shortlists.neighbours import NeighbourShortlister
from deepxc.modules.shortlists.saving import not_fitted
from deepxc.modules.shortlists.views import tokens
from deepxc.search.posting_lists import DEFAULT_BUDGET, PostingLists
from deepxc.search.vectors import check_count

if TYPE_CHECKING:
    import numpy as np

    from deepxc.modules.shortlists.views import Features


class TokenTexts(NeighbourShortlister):
    """Labels of the train texts nearest by cosine similarity of sparse token weights (TF-IDF, say).

    Args:
        n_neighbours: Texts found for a row.
        budget: Postings read for a row before its commonest tokens are left out; 0: all are read.
    """

    kind: ClassVar[str] = "token_texts"

    def __init__(self, n_neighbours: int = 100, *, budget: int = DEFAULT_BUDGET) -> None:
        self.n_neighbours = n_neighbours
        self.budget = budget
        self._index: PostingLists | None = None

    def _settings(self) -> dict[str, Any]:
        return {"n_neighbours": self.n_neighbours, "budget": self.budget}

    def fit(self, features: Features, Y: sparse.csr_matrix, seed: int, threads: int) -> None:  # noqa: ARG002
        """Build the posting lists of the train rows."""
        check_count(self.n_neighbours, "n_neighbours")
        rows = _unit(tokens(features), threads)
        self._learn_labels(Y, rows.shape[0])
        self._index = PostingLists(rows, budget=self.budget)

    def nearest(self, features: Features, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The nearest train texts of each row (ids, -1 where fewer; cosine similarities), nearest first."""
        return self._saved_index().search(_unit(tokens(features), 1), self.n_neighbours, threads=threads)

    def _saved_index(self) -> PostingLists:
        if self._index is None:
            raise not_fitted(self)
        return self._index

    def _take_index(self, index: Any) -> None:  # noqa: ANN401 - `load_index` returns any kind
        self._index = index


def _unit(rows: sparse.csr_matrix, threads: int) -> sparse.csr_matrix:
    """A copy with rows of length 1."""
    copy = sparse.csr_matrix((rows.data.copy(), rows.indices, rows.indptr), shape=rows.shape)
    unit_rows(copy, threads)
    return copy

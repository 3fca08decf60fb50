"""Labels from a tree over the features: the shortlists of Parabel, for comparison with others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from deepxc.modules.classifiers.tree import LabelTree
from deepxc.modules.shortlists.saving import Description, not_fitted
from deepxc.modules.shortlists.searching import SearchingShortlister
from deepxc.modules.shortlists.views import view

if TYPE_CHECKING:
    from scipy import sparse

    from deepxc.modules.shortlists.views import Features


class TreeBeam(SearchingShortlister):
    """The labels that a forest of label trees ranks first, scored by the logit of their probability.

    Args:
        settings: Hyper-parameters of the trees; see `LabelTree`.
    """

    kind: ClassVar[str] = "label_tree"

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - passed on
        self.settings = settings
        self._tree: LabelTree | None = None

    def _settings(self) -> dict[str, Any]:
        return self.settings

    def fit(self, features: Features, Y: sparse.csr_matrix, seed: int, threads: int) -> None:  # noqa: ARG002 - has none
        """Train the trees."""
        self.n_labels = Y.shape[1]
        self._tree = LabelTree(**self.settings).fit(view(features, "dense"), Y, threads=threads)

    def shortlist(self, features: Features, k: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:  # noqa: ARG002
        """The k most probable labels; the library answers on one thread."""
        if self._tree is None:
            raise not_fitted(self)
        ids, shares = self._tree.shortlist(view(features, "dense"), k)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = np.clip(shares, 1e-7, 1 - 1e-7)
            scores = np.log(inside) - np.log1p(-inside)
        return ids, np.where(ids < 0, -np.inf, scores).astype(np.float32)

    def write(self, folder: Path) -> None:
        """Save into an existing, empty folder."""
        if self._tree is None:
            raise not_fitted(self)
        self._tree.write(Path(folder))
        self._describe(folder)

    @classmethod
    def read_from(cls, folder: Path) -> TreeBeam:
        """Open what was saved."""
        description = Description.read(folder, cls.kind)
        found: TreeBeam = description.make(cls, folder)
        found.n_labels = description.n_labels
        found._tree = LabelTree.read_from(Path(folder))
        return found

"""What shortlisters that search an index share: negatives are the shortlist without a row's own labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from deepxc.modules.shortlists.row_blocks import ROWS, LabelRows, drop_positives
from deepxc.modules.shortlists.saving import Description
from deepxc.modules.shortlists.views import row_count, take
from deepxc.search.vectors import check_count

if TYPE_CHECKING:
    from pathlib import Path

    from scipy import sparse

    from deepxc.modules.shortlists.views import Features


class SearchingShortlister(ABC):
    """A shortlister whose negatives are what it finds for a train row, without the labels that the row has.

    Subclasses say what their settings are and how to search.
    """

    kind: ClassVar[str]
    proposes: bool = True
    n_labels: int = 0

    @abstractmethod
    def shortlist(self, features: Features, k: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """At most k labels of each row, best first."""

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """What `__init__` was given, by name."""

    def negatives(
        self,
        features: Features,
        Y: sparse.csr_matrix,
        k: int,
        threads: int = 1,
        draw: int = 0,  # noqa: ARG002 - nothing is random here
    ) -> np.ndarray:
        """The best k labels of each row that it does not have; best first."""
        k = check_count(k, "k")
        rows = LabelRows.of(Y)
        n = row_count(features)
        rows.check(n)
        longer = min(k + rows.most(), max(rows.n_labels, 1))
        out = np.empty((n, k), np.int32)
        for start in range(0, n, ROWS):
            stop = min(start + ROWS, n)
            ids, _ = self.shortlist(take(features, start, stop), longer, threads)
            part = LabelRows(rows.between(start, stop), rows.labels, rows.n_labels)
            out[start:stop] = drop_positives(ids, part, k, threads)
        return out

    def _describe(self, folder: Path) -> None:
        Description(self.kind, self._settings(), self.n_labels).write(folder)

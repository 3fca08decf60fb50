"""What the samplers of random negatives share: they look at no features, and so propose nothing to predict from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from deepxc.modules.shortlists.row_blocks import LabelRows
from deepxc.modules.shortlists.saving import Description
from deepxc.modules.shortlists.views import row_count
from deepxc.search.vectors import check_count

if TYPE_CHECKING:
    from pathlib import Path

    from scipy import sparse

    from deepxc.modules.shortlists.views import Features


class Sampler(ABC):
    """Negatives drawn without a look at the text.

    Args:
        size: Most negatives a row, however many are asked for; None: as many as are asked for.
    """

    kind: ClassVar[str]
    proposes: bool = False
    n_labels: int = 0

    def __init__(self, size: int | None = None) -> None:
        self.size = size
        self.seed = 0

    def fit(self, features: Features, Y: sparse.csr_matrix, seed: int, threads: int) -> None:  # noqa: ARG002
        """Note the number of labels and the seed."""
        if self.size is not None:
            check_count(self.size, "size")
        self.n_labels = Y.shape[1]
        self.seed = seed

    def shortlist(self, features: Features, k: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:  # noqa: ARG002
        """Nothing: every place is empty."""
        shape = (row_count(features), check_count(k, "k"))
        return np.full(shape, -1, np.int64), np.full(shape, -np.inf, np.float32)

    def negatives(
        self, features: Features, Y: sparse.csr_matrix, k: int, threads: int = 1, draw: int = 0
    ) -> np.ndarray:
        """At most k random labels of each row that it does not have; others in each draw."""
        k = check_count(k, "k") if self.size is None else min(check_count(k, "k"), self.size)
        rows = LabelRows.of(Y)
        rows.check(row_count(features))
        return self._draw(rows, k, draw_key(self.seed, draw), threads)

    @abstractmethod
    def _draw(self, rows: LabelRows, k: int, key: np.uint64, threads: int) -> np.ndarray: ...

    def _settings(self) -> dict[str, Any]:
        return {"size": self.size}

    def write(self, folder: Path) -> None:
        """Save into an existing, empty folder."""
        Description(self.kind, self._settings() | {"seed": self.seed}, self.n_labels).write(folder)

    @classmethod
    def read_from(cls, folder: Path) -> Self:
        """Open what was saved."""
        description = Description.read(folder, cls.kind)
        seed = int(description.settings.pop("seed", 0))
        found: Self = description.make(cls, folder)
        found.n_labels, found.seed = description.n_labels, seed
        return found


def draw_key(seed: int, draw: int) -> np.uint64:
    """The key that a draw's random streams come from."""
    return np.uint64(np.random.default_rng([seed, draw]).integers(1 << 63))

"""Negatives drawn by label frequency, flattened, as word2vec draws its noise words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from deepxc.errors import UserError
from deepxc.modules.shortlists.row_blocks import over_rows
from deepxc.modules.shortlists.sampling import Sampler
from deepxc.modules.shortlists.saving import ARRAYS, not_fitted
from deepxc.persist.tensors import read_tensors, write_tensors

if TYPE_CHECKING:
    from scipy import sparse

    from deepxc.modules.shortlists.row_blocks import LabelRows
    from deepxc.modules.shortlists.views import Features

_TRIES = 20  # for each negative wanted: where few labels carry all the weight, a row may end with fewer


class Unigram(Sampler):
    """A label's chance goes with its frequency to a power; labels without train texts are not drawn.

    Args:
        size: Most negatives a row; None: as many as are asked for.
        power: 0.75 in word2vec; 0 draws evenly from the labels with texts.
    """

    kind: ClassVar[str] = "unigram"

    def __init__(self, size: int | None = None, *, power: float = 0.75) -> None:
        super().__init__(size)
        self.power = power
        self._reach: np.ndarray | None = None

    def _settings(self) -> dict[str, Any]:
        return {"size": self.size, "power": self.power}

    def fit(self, features: Features, Y: sparse.csr_matrix, seed: int, threads: int) -> None:
        """Count the labels."""
        super().fit(features, Y, seed, threads)
        counts = np.bincount(Y.indices[Y.data != 0], minlength=Y.shape[1]).astype(np.float64)
        if not counts.any():
            raise UserError("no train row has a label", where="Y", remedy="Give labelled rows")
        self._reach = np.cumsum(np.where(counts > 0, np.maximum(counts, 1) ** self.power, 0.0))

    def _draw(self, rows: LabelRows, k: int, key: np.uint64, threads: int) -> np.ndarray:
        from deepxc.modules.shortlists.kernels import draw_weighted

        reach = self._reach
        if reach is None:
            raise not_fitted(self)
        out = np.empty((len(rows), k), np.int32)

        def work(first: int, last: int) -> None:
            draw_weighted(first, rows.between(first, last), rows.labels, reach, key, _TRIES * k, out[first:last])

        over_rows(len(out), threads, work)
        return out

    def write(self, folder: Path) -> None:
        """Save into an existing, empty folder."""
        if self._reach is None:
            raise not_fitted(self)
        write_tensors(Path(folder) / ARRAYS, {"reach": self._reach})
        super().write(folder)

    @classmethod
    def read_from(cls, folder: Path) -> Self:
        """Open what was saved."""
        found = super().read_from(folder)
        found._reach = read_tensors(Path(folder) / ARRAYS, mmap=False)["reach"]  # noqa: SLF001 - its own class
        return found

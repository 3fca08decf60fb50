"""Dense features that the user brings: of a sentence encoder, a CDSSM, a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from deepxc.errors import UserError
from deepxc.modules.encoders.stored import StoredEncoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy import sparse

    from deepxc.data.dataset import Split


@dataclass(frozen=True, eq=False)
class DenseInputs:
    """Rows of features.

    Attributes:
        rows: (n, width), of any float type and wherever they lie: a memory map will do.
    """

    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The given rows, float32."""
        return np.ascontiguousarray(self.rows[rows], dtype=np.float32)


class DenseFeatures(StoredEncoder):
    """Hands features on as they are, or through one linear layer that trains.

    Args:
        dim: Width of the linear layer; None leaves it out, and the features' own width is the encoder's.
        activation: What follows the linear layer.
        seed: Seed of the linear layer.
    """

    kind = "dense"
    _empty_first = False  # its place is remembered by a buffer that is not saved

    _place: torch.Tensor

    def __init__(self, dim: int | None = None, *, activation: Literal["relu", "none"] = "none", seed: int = 0) -> None:
        super().__init__()
        if activation not in ("relu", "none"):
            raise UserError(f"{activation!r} is neither 'relu' nor 'none'", where="activation")
        self._linear_dim, self.activation, self.seed = dim, activation, seed
        self.dim = dim or 0

    def settings(self) -> dict[str, int | str | None]:
        """The constructor's arguments."""
        return {"dim": self._linear_dim, "activation": self.activation, "seed": self.seed}

    def build(self, width: int) -> None:  # pyrefly: ignore[bad-override]
        """Make the linear layer, if there is one."""
        self.dim = self._linear_dim or width
        self.linear = torch.nn.Linear(width, self.dim) if self._linear_dim else torch.nn.Identity()
        self.register_buffer("_place", torch.zeros(1), persistent=False)

    def learn(self, split: Split) -> DenseInputs:
        """Note the width of the features, which must be `split.X`."""
        rows = _matrix(split.X if split.X is not None else split.texts)
        self.size(width=rows.shape[1])
        return DenseInputs(rows)

    def read(self, inputs: Sequence[str] | sparse.csr_matrix | np.ndarray) -> DenseInputs:
        """Take new rows of the same width."""
        rows, width = _matrix(inputs), self.checked().sizes["width"]
        if rows.shape[1] != width:
            raise UserError(f"{rows.shape[1]} features a row where {width} were learned", where="X")
        return DenseInputs(rows)

    def forward(self, batch: np.ndarray) -> torch.Tensor:
        """Features, (rows, dim)."""
        features = self.linear(torch.from_numpy(batch).to(self._place))
        return torch.relu(features) if self.activation == "relu" else features


def _matrix(inputs: object) -> np.ndarray:
    if not isinstance(inputs, np.ndarray) or inputs.ndim != 2 or inputs.dtype.kind not in "fiu":
        raise UserError(
            "no dense features", where="X", remedy="Give a NumPy array with a row a text; sparse features suit TokenBag"
        )
    return inputs

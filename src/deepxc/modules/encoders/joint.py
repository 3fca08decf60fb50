"""Several encoders of the same rows, their features side by side."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch

from deepxc.errors import UserError
from deepxc.modules.encoders.stored import ABOUT, FORMAT, StoredEncoder, read_about

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from scipy import sparse

    from deepxc.data.dataset import Split
    from deepxc.modules.protocols import Inputs


@dataclass(frozen=True, eq=False)
class JointInputs:
    """The same rows as each encoder reads them."""

    parts: list[Inputs]

    def __len__(self) -> int:
        return len(self.parts[0])

    def take(self, rows: np.ndarray) -> list[Any]:
        """The given rows, as a batch for each encoder."""
        return [part.take(rows) for part in self.parts]


class Joint(StoredEncoder):
    """Each encoder's features, times a number of its own that brings their lengths together.

    Args:
        parts: The encoders; what is trained on them is theirs.
        factors: What each one's features are multiplied with; 1 by default.
    """

    kind = "joint"

    def __init__(self, parts: Sequence[StoredEncoder], factors: Sequence[float] | None = None) -> None:
        super().__init__()
        self.factors = [1.0] * len(parts) if factors is None else list(factors)
        if not parts or len(self.factors) != len(parts):
            raise UserError(
                f"{len(self.factors)} factors for {len(parts)} encoders", where="factors", remedy="Give one for each"
            )
        self.parts = torch.nn.ModuleList(parts)
        self._count()

    def learn(self, split: Split) -> JointInputs:
        """Let each encoder learn."""
        inputs = JointInputs([part.learn(split) for part in self._encoders()])
        self._count()
        return inputs

    def read(self, inputs: Sequence[str] | sparse.csr_matrix | np.ndarray) -> JointInputs:
        """Read new rows with each encoder."""
        return JointInputs([part.read(inputs) for part in self._encoders()])

    def forward(self, batch: list[Any]) -> torch.Tensor:
        """Features, (rows, dim)."""
        features = [part(own) * factor for part, own, factor in zip(self.parts, batch, self.factors, strict=True)]
        return torch.cat(features, dim=1)

    def columns_of(self, part: int) -> slice:
        """Where the features of one encoder are."""
        start = sum(encoder.dim for encoder in self._encoders()[:part])
        return slice(start, start + self._encoders()[part].dim)

    def settings(self) -> dict[str, Any]:
        """The factors; the encoders keep their own settings."""
        return {"factors": self.factors}

    def write(self, folder: str | Path) -> None:
        """Save into a folder, each encoder into one within it."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        about = {"format": FORMAT, "kind": self.kind, "settings": self.settings(), "sizes": {"parts": len(self.parts)}}
        (folder / ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
        for number, part in enumerate(self._encoders()):
            part.write(folder / f"part-{number}")

    @classmethod
    def read_from(cls, folder: str | Path) -> Self:
        """Open what `write` saved."""
        from deepxc.modules.encoders import open_encoder

        folder = Path(folder)
        about = read_about(folder)
        parts = [open_encoder(folder / f"part-{number}") for number in range(about["sizes"]["parts"])]
        return cls(parts, **about["settings"]).eval()

    def _encoders(self) -> list[StoredEncoder]:
        return list(self.parts)  # pyrefly: ignore[bad-return]

    def _count(self) -> None:
        dims = [getattr(part, "dim", 0) for part in self._encoders()]
        self.dim = sum(dims) if all(dims) else 0

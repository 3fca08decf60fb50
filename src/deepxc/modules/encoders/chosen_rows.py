"""Some of the rows that an encoder reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from deepxc.modules.protocols import Inputs


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """Some rows of what an encoder reads, in an order of their own.

    Attributes:
        inputs: The whole.
        rows: The chosen rows.
    """

    inputs: Inputs
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def lengths(self) -> np.ndarray | None:
        """Lengths of the rows, where the inputs know them."""
        lengths = getattr(self.inputs, "lengths", None)
        return None if lengths is None else lengths[self.rows]

    def take(self, rows: np.ndarray) -> Any:  # noqa: ANN401 (what the inputs give)
        """The given ones of the chosen rows."""
        return self.inputs.take(self.rows[rows])

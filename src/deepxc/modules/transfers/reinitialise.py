"""Only the tables are carried over: small parameters start anew, as in DECAF."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepxc.modules.transfers.fine_tune import FineTune
from deepxc.modules.transfers.parameters import restart

if TYPE_CHECKING:
    import torch

    from deepxc.modules.protocols import Encoder
    from deepxc.modules.transfers.spectral import Start


class Reinitialise:
    """The encoder keeps its tables and draws everything else anew; all of it trains.

    Args:
        block: Put a fresh residual block on top.
        bound: Of the block; see `SpectralResidual`.
        dropout: Of the block's correction.
        start: Of the block.
    """

    def __init__(
        self, *, block: bool = True, bound: float = 1.0, dropout: float = 0.5, start: Start = "identity"
    ) -> None:
        self.block = block
        self.bound = bound
        self.dropout = dropout
        self.start: Start = start

    def attach(self, encoder: Encoder, seed: int) -> torch.nn.Module:
        """Restart the encoder's small parameters; a new block, or the identity."""
        restart(encoder, seed)
        fine = FineTune(block=self.block, bound=self.bound, dropout=self.dropout, start=self.start)
        return fine.attach(encoder, seed)

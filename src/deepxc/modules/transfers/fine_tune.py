"""Everything goes on training: the encoder from where the surrogate task left it, and a residual block on top."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from deepxc.modules.transfers.parameters import set_trained
from deepxc.modules.transfers.residual import Residual

if TYPE_CHECKING:
    from deepxc.modules.protocols import Encoder
    from deepxc.modules.transfers.spectral import Start


class FineTune:
    """The encoder's tables and parameters train on.

    Args:
        block: Put a residual block on top; otherwise the features are the encoder's own.
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
        """Let the encoder train; a new block, or the identity."""
        set_trained(encoder, trained=True)
        if not self.block:
            return torch.nn.Identity()
        return Residual(bound=self.bound, dropout=self.dropout, start=self.start).block(encoder, seed)

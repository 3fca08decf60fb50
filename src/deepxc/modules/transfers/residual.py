"""The residual block of bounded spectral norm, and the transfer that puts it on a frozen encoder (DeepXML, section 4).

Final features are x = v + ReLU(R v). With the norm of R at most `bound`, no text moves further than `bound` times its
length (Theorem 1), so the labels shortlisted from v stay the right ones for x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from deepxc.modules.transfers.parameters import device_of, set_trained
from deepxc.modules.transfers.spectral import SpectralMatrix, Start

if TYPE_CHECKING:
    from deepxc.modules.protocols import Encoder


class SpectralResidual(SpectralMatrix):
    """x = v + Dropout(ReLU(R v)), the largest singular value of R held at or below `bound`.

    Args:
        dim: Length of a feature vector.
        bound: Largest norm of R; above 0.
        dropout: Share of the correction that is dropped at random in training.
        start: See `SpectralMatrix`.
        seed: Of the random start and of the power iteration.
    """

    def __init__(
        self, dim: int, *, bound: float = 1.0, dropout: float = 0.5, start: Start = "identity", seed: int = 0
    ) -> None:
        super().__init__(dim, bound=bound, start=start, seed=seed)
        self.dropout = torch.nn.Dropout(dropout)

    def reset_parameters(self) -> None:
        """Start R and the power iteration anew, from the seed."""
        self.reset_matrix()

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Final features of the rows."""
        return features + self.dropout(torch.relu(self.product(features)))


class Residual:
    """Astec's transfer: the encoder is frozen, a residual block of bounded norm is trained on its features.

    Args:
        bound: Largest spectral norm of the block's matrix.
        dropout: Of the block's correction.
        start: See `SpectralResidual`.
    """

    def __init__(self, *, bound: float = 1.0, dropout: float = 0.5, start: Start = "identity") -> None:
        self.bound = bound
        self.dropout = dropout
        self.start: Start = start

    def attach(self, encoder: Encoder, seed: int) -> torch.nn.Module:
        """Freeze the encoder; a new block for its features."""
        set_trained(encoder, trained=False)
        return self.block(encoder, seed)

    def block(self, encoder: Encoder, seed: int) -> SpectralResidual:
        """A new block where the encoder is."""
        block = SpectralResidual(encoder.dim, bound=self.bound, dropout=self.dropout, start=self.start, seed=seed)
        return block.to(device_of(encoder))

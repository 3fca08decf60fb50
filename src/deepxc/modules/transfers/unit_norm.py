"""Features on the unit sphere, where DEXA and its kin compare texts with labels."""

from __future__ import annotations

import torch

_TINY = 1e-12


def to_unit(rows: torch.Tensor) -> torch.Tensor:
    """Rows scaled to length 1, differentiable; rows of zeros stay."""
    return rows / rows.norm(dim=1, keepdim=True).clamp_min(_TINY)


class UnitNorm(torch.nn.Module):
    """Final features are the encoder's, scaled to length 1."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Features of length 1."""
        return to_unit(features)

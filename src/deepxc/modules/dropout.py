"""Dropout that needs one random byte for a cell.

PyTorch's dropout draws a number in 24 bits or more for every cell, which on a CPU takes longer than many a layer that
it stands between. Here one byte decides about a cell: shares are rounded to a 256th, and kept cells are scaled by what
that share really is, so that the expectation is the cell itself.
"""

from __future__ import annotations

import torch


def threshold(share: float) -> int:
    """How many of the 256 values of a byte blank a cell, so that about this share is blanked."""
    return min(255, round(256 * share))


def blanked(features: torch.Tensor, kept: torch.Tensor, dropped: int) -> torch.Tensor:
    """The kept cells, scaled up by what `dropped` values out of 256 take away; differentiable."""
    return features * (kept * (256 / (256 - dropped))).to(features.dtype)


def byte_dropout(features: torch.Tensor, share: float, training: bool) -> torch.Tensor:
    """Dropout with bytes from PyTorch's generator; in prediction, the features themselves."""
    dropped = threshold(share)
    if not training or dropped == 0 or not features.numel():
        return features
    draws = torch.empty(-(-features.numel() // 8), dtype=torch.int64, device=features.device)
    bytes_ = draws.random_(-(2**63), None).view(torch.uint8)[: features.numel()].view(features.shape)
    return blanked(features, bytes_ >= dropped, dropped)

"""Dropout whose random bytes come from the batch's own generator (see `deepxc.modules.dropout`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from deepxc.modules.dropout import blanked, threshold

if TYPE_CHECKING:
    from numpy.random import Generator


def drop(features: torch.Tensor, share: float, rng: Generator) -> torch.Tensor:
    """Features with this share of their cells blanked and the others scaled up, differentiable."""
    dropped = threshold(share)
    if dropped == 0:
        return features
    bits = np.frombuffer(rng.bytes(features.numel()), np.uint8).reshape(features.shape)
    return blanked(features, torch.from_numpy(bits >= dropped).to(features.device), dropped)

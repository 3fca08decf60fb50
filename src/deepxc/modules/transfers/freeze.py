"""The features stay as they are; only the classifier trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from deepxc.modules.transfers.parameters import set_trained

if TYPE_CHECKING:
    from deepxc.modules.protocols import Encoder


class Freeze:
    """Final features are the encoder's, which trains no more."""

    def attach(self, encoder: Encoder, seed: int) -> torch.nn.Module:  # noqa: ARG002
        """Freeze the encoder; the identity."""
        set_trained(encoder, trained=False)
        return torch.nn.Identity()

"""Which of an encoder's parameters train, and how its small ones start anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch

from deepxc.errors import UserError
from deepxc.modules.tables import RowTable

if TYPE_CHECKING:
    from deepxc.modules.protocols import Encoder


def as_module(encoder: Encoder) -> torch.nn.Module:
    """The encoder as the `torch.nn.Module` that the protocol says it is."""
    if not isinstance(encoder, torch.nn.Module):
        raise UserError(
            f"{type(encoder).__name__} is no torch.nn.Module", where="encoder", remedy="Derive it from torch.nn.Module"
        )
    return cast("torch.nn.Module", encoder)


def set_trained(encoder: Encoder, *, trained: bool) -> None:
    """Let all tables and parameters of the encoder train, or none."""
    module = as_module(encoder)
    module.requires_grad_(trained)
    for part in module.modules():
        if isinstance(part, RowTable):
            part.trained = trained
            part.pending.clear()


def trains_at_all(encoder: Encoder) -> bool:
    """Whether any table or parameter of the encoder trains."""
    module = as_module(encoder)
    tables = any(isinstance(part, RowTable) and part.trained for part in module.modules())
    return tables or any(part.requires_grad for part in module.parameters())


def restart(encoder: Encoder, seed: int) -> None:
    """Draw the encoder's small parameters anew; its tables keep their rows.

    Every submodule with parameters of its own needs `reset_parameters()`, as PyTorch's layers have it.
    """
    parts = [part for part in as_module(encoder).modules() if not isinstance(part, RowTable)]
    own = [part for part in parts if any(True for _ in part.parameters(recurse=False))]
    for part in own:
        if not callable(getattr(part, "reset_parameters", None)):
            raise UserError(
                f"{type(part).__name__} has parameters but no reset_parameters()",
                where="encoder",
                remedy="Add that method, or use a transfer that keeps the parameters",
            )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for part in own:
            part.reset_parameters()  # pyrefly: ignore[not-callable]


def device_of(encoder: Encoder) -> torch.device:
    """Where the encoder's tensors are."""
    module = as_module(encoder)
    for tensor in (*module.parameters(), *module.buffers()):
        return tensor.device
    return torch.device("cpu")

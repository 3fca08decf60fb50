"""Blocks on disk: their tensors, and what they were made with as tensors of one number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepxc.errors import UserError
from deepxc.modules.transfers.embedding_block import EmbeddingBlock
from deepxc.modules.transfers.residual import SpectralResidual
from deepxc.modules.transfers.spectral import SpectralMatrix
from deepxc.modules.transfers.unit_norm import UnitNorm
from deepxc.persist.tensors import read_tensors, write_tensors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_UNIT = "unit"
_KINDS: dict[str, type[SpectralMatrix]] = {"residual": SpectralResidual, "embedding": EmbeddingBlock}


def write_block(path: Path, block: torch.nn.Module) -> None:
    """Save a block; the identity is saved as no file at all."""
    tensors = block_tensors(block)
    if tensors:
        write_tensors(path, tensors)


def read_block(path: Path) -> torch.nn.Module:
    """Open what `write_block` saved."""
    return open_block(read_tensors(path, mmap=False)) if path.exists() else torch.nn.Identity()


def block_tensors(block: torch.nn.Module) -> dict[str, np.ndarray]:
    """Everything that prediction needs of a block; nothing for the identity."""
    if isinstance(block, torch.nn.Identity):
        return {}
    if isinstance(block, UnitNorm):
        return {f"{_UNIT}.": np.ones(1, np.float32)}
    kind = next((name for name, known in _KINDS.items() if type(block) is known), None)
    if kind is None or not isinstance(block, SpectralMatrix):
        raise UserError(
            f"a transfer's {type(block).__name__} cannot be saved",
            where="transfer",
            remedy="Use one of the library's own transfers, or do not save the model",
        )
    tensors = {f"{kind}.{name}": tensor.detach().cpu().numpy() for name, tensor in block.state_dict().items()}
    tensors["bound"] = np.array([block.bound], np.float32)
    tensors["rectified"] = np.array([getattr(block, "rectified", False)], np.int64)
    return tensors


def open_block(tensors: Mapping[str, np.ndarray]) -> torch.nn.Module:
    """The block that `block_tensors` described, in evaluation mode."""
    kind = next(name.partition(".")[0] for name in tensors if "." in name)
    if kind == _UNIT:
        return UnitNorm()
    given: dict[str, Any] = {"bound": float(tensors["bound"][0])}
    if kind == "embedding":
        given["rectified"] = bool(tensors["rectified"][0])
    block = _KINDS[kind](len(tensors[f"{kind}.weight"]), **given)
    own = {name.partition(".")[2]: array for name, array in tensors.items() if name.startswith(f"{kind}.")}
    block.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in own.items()})
    return block.eval()

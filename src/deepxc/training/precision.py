"""Which number format large matrix products should use on this machine.

A CPU with bfloat16 products (AVX512-BF16, AMX, or BF16 on ARM) multiplies matrices three to five times as fast in that
format; one without them emulates it, slower than float32. Results come back in the operands' format, sums inside the
product are float32.
"""

from __future__ import annotations

import torch

from deepxc.number_formats import native_bfloat16

__all__ = ["matmul", "native_bfloat16", "operand_type"]


def operand_type(tensor: torch.Tensor) -> torch.dtype:
    """The format in which to multiply: bfloat16 for float32 where native, else the tensor's own."""
    if tensor.dtype == torch.float32 and native_bfloat16(tensor.device.type):
        return torch.bfloat16
    return tensor.dtype


def matmul(a: torch.Tensor, b: torch.Tensor, operands: torch.dtype | None = None) -> torch.Tensor:
    """`a @ b` in the fastest format, given back in the format of `a`. Not differentiable: for use inside gradients.

    Args:
        a: A matrix.
        b: A matrix.
        operands: The format of the product; what `operand_type` says of `a` by default.
    """
    kind = operands or operand_type(a)
    return torch.mm(a.to(kind), b.to(kind)).to(a.dtype)

"""The logistic loss against every label, a chunk of labels at a time.

The slope of `log(1 + exp(-y z))` for a logit z is `sigmoid(z) - target`, which needs no other label: a chunk's logits
turn into its slopes, those into its part of the gradients, and are forgotten. Texts x labels never exist, whatever
the number of either; of all that is held, only the label vectors and their gradient grow with the number of labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.autograd.function import once_differentiable

from deepxc.training.losses import MOST_CELLS, Coordinates, logistic_slopes
from deepxc.training.precision import operand_type

if TYPE_CHECKING:
    from collections.abc import Iterator

_SMALLEST_CHUNK = 256


class _Task(NamedTuple):
    positives: Coordinates
    operands: torch.dtype
    chunk: int


def chunked_logistic_loss(
    features: torch.Tensor,
    weights: torch.Tensor,
    bias: torch.Tensor | None,
    positives: Coordinates,
    *,
    operands: torch.dtype | None = None,
    chunk: int | None = None,
) -> torch.Tensor:
    """Mean over texts of the sum over labels of `log(1 + exp(-y w.x))`, differentiable in the first three.

    Args:
        features: Texts, n x dim.
        weights: Vectors of all labels, L x dim.
        bias: One number a label, if any (L, or L x 1).
        positives: The cells (text, label) that are positive; their `values` are not read.
        operands: Format of the products; chosen for the machine by default.
        chunk: Labels at a time; chosen for the machine by default.
    """
    if chunk is None:
        cells = MOST_CELLS.get(features.device.type, 1 << 26)
        chunk = max(_SMALLEST_CHUNK, cells // max(1, len(features)))
    task = _Task(positives, operands or operand_type(features), chunk)
    return _ChunkedLogisticLoss.apply(features, weights, None if bias is None else bias.reshape(-1), task)


class _ChunkedLogisticLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        features: torch.Tensor,
        weights: torch.Tensor,
        bias: torch.Tensor | None,
        task: _Task,
    ) -> torch.Tensor:
        wanted = ctx.needs_input_grad[:3]
        x = features.to(task.operands)
        of_features = torch.zeros_like(features) if wanted[0] else None
        of_weights = torch.empty_like(weights) if wanted[1] else None
        of_bias = torch.empty_like(bias) if wanted[2] and bias is not None else None
        total = features.new_zeros((), dtype=torch.promote_types(features.dtype, torch.float32))
        for start, stop, cells in _chunks(task, len(weights)):
            w = weights[start:stop].to(task.operands)
            logits = torch.mm(x, w.T)
            if bias is not None:
                logits += bias[start:stop]
            loss, slopes = logistic_slopes(logits, cells)
            total += loss
            if of_features is not None:
                of_features += torch.mm(slopes, w).to(of_features.dtype)
            if of_weights is not None:
                of_weights[start:stop] = torch.mm(slopes.T, x)
            if of_bias is not None:
                of_bias[start:stop] = slopes.sum(0, dtype=of_bias.dtype)
        ctx.gradients, ctx.scale = (of_features, of_weights, of_bias), 1.0 / max(1, len(x))
        return total * ctx.scale

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # noqa: ANN401  # pyrefly: ignore[bad-override]
        gradients, ctx.gradients = ctx.gradients, None
        scale = upstream * ctx.scale
        return (*(None if gradient is None else gradient.mul_(scale) for gradient in gradients), None)


def _chunks(task: _Task, n_labels: int) -> Iterator[tuple[int, int, torch.Tensor]]:
    """First and last label of each chunk, and where its positives are in its texts x labels array."""
    order = torch.argsort(task.positives.columns)
    rows, columns = task.positives.rows[order], task.positives.columns[order]
    starts = torch.arange(0, max(n_labels, 1), task.chunk, device=columns.device)
    bounds = [*torch.searchsorted(columns, starts).tolist(), len(columns)]
    for number, start in enumerate(range(0, n_labels, task.chunk)):
        stop = min(n_labels, start + task.chunk)
        here = slice(bounds[number], bounds[number + 1])
        yield start, stop, rows[here] * (stop - start) + columns[here] - start

"""The loss of a batch of texts against a pool of labels, as three matrix products.

The logits of n texts and P labels are one product; the loss turns them into their own gradient, and two more products
give the gradients of features and label vectors. All of it happens in the forward pass, a slice of the batch at a
time, so that no more than one slice of logits ever exists.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import torch
from torch.autograd.function import once_differentiable

from deepxc.training.precision import operand_type

MOST_CELLS = {"cpu": 1 << 22}
"""Logits that are held at once: on a CPU few enough for its last cache, and many enough for full-speed products."""
_MOST_CELLS_ELSEWHERE = 1 << 26

Kind = Literal["softmax", "logistic"]
Normalise = Literal["batch", "positives", "sum"]


class Coordinates(NamedTuple):
    """Cells of a batch-by-pool array, none twice: places in the batch and in the pool, and targets if not even."""

    rows: torch.Tensor
    columns: torch.Tensor
    values: torch.Tensor | None = None

    def to(self, device: torch.device | str) -> Coordinates:
        """The cells on another device."""
        values = None if self.values is None else self.values.to(device)
        return Coordinates(self.rows.to(device), self.columns.to(device), values)

    def between(self, start: int, stop: int) -> Coordinates:
        """The cells of these rows, which are counted from `start`."""
        if start == 0 and (not len(self.rows) or bool(self.rows.max() < stop)):
            return self
        kept = (self.rows >= start) & (self.rows < stop)
        values = None if self.values is None else self.values[kept]
        return Coordinates(self.rows[kept] - start, self.columns[kept], values)


class _Task(NamedTuple):
    positives: Coordinates
    kind: Kind
    shortlist: Coordinates | None
    log_q: torch.Tensor | None
    scale: float
    operands: torch.dtype
    most_cells: int
    excluded: Coordinates | None = None


def pooled_loss(
    features: torch.Tensor,
    weights: torch.Tensor,
    bias: torch.Tensor | None,
    positives: Coordinates,
    *,
    kind: Kind = "softmax",
    shortlist: Coordinates | None = None,
    log_q: torch.Tensor | None = None,
    normalise: Normalise = "batch",
    operands: torch.dtype | None = None,
    most_cells: int | None = None,
    excluded: Coordinates | None = None,
) -> torch.Tensor:
    """Loss of texts against a pool of labels, differentiable in features, weights and bias.

    `softmax` is the cross-entropy of the softmax over the pool with the target spread evenly over a text's positives
    (a text without positives counts nothing). `logistic` is the sum of `log(1 + exp(-y w.x))` over the pool, or over
    the text's own shortlist and its positives.

    Args:
        features: Texts, n x dim.
        weights: Vectors of the pool's labels, P x dim.
        bias: One number for each label of the pool, if any (P, or P x 1).
        positives: The cells that are positive; `values`, if given, are the targets (for `softmax`, in place of
            1 / count; for `logistic`, in place of 1).
        kind: `softmax` or `logistic`.
        shortlist: Cells that count beside the positives; every cell of the pool by default.
        log_q: Log-probability of each label to be in the pool, which is taken off its logits: the sum over the pool
            then estimates the sum over all labels.
        normalise: Divide by the number of texts (`batch`) or of positive cells (`positives`), or not at all (`sum`).
        operands: Format of the products; chosen for the machine by default.
        most_cells: Logits to hold at once; a larger batch is taken in slices. Chosen for the machine by default.
        excluded: Cells that do not count, none of them positive: labels from which a text need not be told apart.
    """
    most_cells = most_cells or MOST_CELLS.get(features.device.type, _MOST_CELLS_ELSEWHERE)
    count = {"batch": len(features), "positives": len(positives.rows), "sum": 1}[normalise]
    scale, products = 1.0 / max(1, count), operands or operand_type(features)
    task = _Task(positives, kind, shortlist, log_q, scale, products, most_cells, excluded)
    return _PooledLoss.apply(features, weights, None if bias is None else bias.reshape(-1), task)


class _PooledLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        features: torch.Tensor,
        weights: torch.Tensor,
        bias: torch.Tensor | None,
        task: _Task,
    ) -> torch.Tensor:
        wanted = ctx.needs_input_grad[:3]
        offset = _offset(bias, task.log_q)
        x, w = features.to(task.operands), _widened(weights, task.operands)
        gradients = [
            torch.empty_like(features) if wanted[0] else None,
            torch.zeros_like(weights) if wanted[1] else None,
            torch.zeros_like(bias) if wanted[2] and bias is not None else None,
        ]
        slices = max(1, math.ceil(len(x) * len(w) / task.most_cells))
        step = max(1, math.ceil(len(x) / slices))
        total = features.new_zeros((), dtype=torch.promote_types(features.dtype, torch.float32))
        for start in range(0, len(x), step):
            stop = min(len(x), start + step)
            logits = torch.mm(x[start:stop], w.T)
            logits[:, len(weights) :] = -torch.inf
            if offset is not None:
                logits[:, : len(weights)] += offset
            loss, slopes = _turn(logits, task, start, stop)
            total += loss
            _add_gradients(gradients, slopes, x[start:stop], w, start)
        ctx.gradients, ctx.scale = gradients, task.scale
        return total * task.scale

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # noqa: ANN401  # pyrefly: ignore[bad-override]
        gradients, ctx.gradients = ctx.gradients, None
        scale = upstream * ctx.scale
        return (*(None if gradient is None else gradient.mul_(scale) for gradient in gradients), None)


def _widened(weights: torch.Tensor, operands: torch.dtype) -> torch.Tensor:
    """The vectors in the format of the products, with rows of zeros after them where few sizes are wanted.

    A CPU's bfloat16 products are compiled and kept for every shape that they meet, at milliseconds and megabytes each,
    and hardly two pools are of one size. A pool counts at most a sixteenth more labels in this way.
    """
    if weights.device.type != "cpu" or operands != torch.bfloat16:
        return weights.to(operands)
    unit = 1 << max(0, len(weights).bit_length() - 5)
    width = -(-len(weights) // unit) * unit
    wide = torch.empty(width, weights.shape[1], dtype=operands)
    wide[: len(weights)] = weights
    wide[len(weights) :] = 0
    return wide


def _offset(bias: torch.Tensor | None, log_q: torch.Tensor | None) -> torch.Tensor | None:
    if bias is None or log_q is None:
        return bias if log_q is None else -log_q
    return bias - log_q


def _turn(logits: torch.Tensor, task: _Task, start: int, stop: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Summed loss of a slice of the batch, and its slope for every logit."""
    positives = task.positives.between(start, stop)
    cells = positives.rows * logits.shape[1] + positives.columns
    if task.excluded is not None:
        out = task.excluded.between(start, stop)
        logits[out.rows, out.columns] = -torch.inf
    if task.shortlist is not None:
        logits = _only(logits, task.shortlist.between(start, stop), cells)
    if task.kind == "softmax":
        return _softmax(logits, positives, cells)
    if task.kind == "logistic":
        return logistic_slopes(logits, cells, positives.values)
    raise ValueError(task.kind)


def _only(logits: torch.Tensor, shortlist: Coordinates, positive_cells: torch.Tensor) -> torch.Tensor:
    """The logits with all but the shortlist and the positives set to minus infinity, where losses and slopes are 0."""
    kept = torch.full_like(logits, -torch.inf)
    shortlist_cells = shortlist.rows * logits.shape[1] + shortlist.columns
    for cells in (shortlist_cells, positive_cells):
        kept.view(-1)[cells] = logits.view(-1)[cells]
    return kept


def _softmax(logits: torch.Tensor, positives: Coordinates, cells: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    n = len(logits)
    wide = torch.promote_types(logits.dtype, torch.float32)
    if positives.values is None:
        counts = torch.bincount(positives.rows, minlength=n)
        targets = counts.to(wide).reciprocal()[positives.rows]
        mass = (counts > 0).to(wide)
    else:
        targets = positives.values.to(wide)
        mass = torch.zeros(n, dtype=wide, device=logits.device).index_add_(0, positives.rows, targets)
    slopes = torch.softmax(logits, 1)
    at_positives = slopes.view(-1)[cells].to(wide)
    tiny = torch.finfo(logits.dtype).tiny
    loss = -(targets * at_positives.clamp_min(tiny).log()).sum()
    if positives.values is not None:
        slopes *= mass[:, None]
        at_positives *= mass[positives.rows]
    idle = torch.nonzero(mass == 0).ravel()
    slopes[idle] = 0  # also where such a text has an empty shortlist, and so no softmax at all
    slopes.view(-1)[cells] = (at_positives - targets).to(slopes.dtype)
    return loss, slopes


def logistic_slopes(
    logits: torch.Tensor, cells: torch.Tensor, values: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Summed logistic loss of some logits, which are overwritten, and its slope for each of them.

    Args:
        logits: Texts x labels.
        cells: Which of them are positive, counted row by row.
        values: Their targets, if not 1.
    """
    wide = torch.promote_types(logits.dtype, torch.float32)
    targets = 1.0 if values is None else values.to(wide)
    at_positives = logits.view(-1)[cells].to(wide)
    slopes = torch.sigmoid(logits)
    # log(1 + e^z) = max(z, 0) - log(1 - s), where s is the sigmoid of -|z|: several times faster than softplus.
    loss = logits.clamp_min_(0).sum(dtype=wide)
    torch.sub(1, slopes, out=logits)
    loss -= torch.minimum(slopes, logits, out=logits).neg_().log1p_().sum(dtype=wide)
    loss -= (targets * at_positives).sum()
    slopes.view(-1)[cells] = (at_positives.sigmoid() - targets).to(slopes.dtype)
    return loss, slopes


def _add_gradients(
    gradients: list[torch.Tensor | None], slopes: torch.Tensor, x: torch.Tensor, w: torch.Tensor, start: int
) -> None:
    of_features, of_weights, of_bias = gradients
    if of_features is not None:
        of_features[start : start + len(x)] = torch.mm(slopes, w)
    if of_weights is not None:  # first brought to one format: an addition of two takes ten times as long
        of_weights += torch.mm(slopes.T, x)[: len(of_weights)].to(of_weights.dtype)
    if of_bias is not None:
        of_bias += slopes.sum(0, dtype=of_bias.dtype)[: len(of_bias)]

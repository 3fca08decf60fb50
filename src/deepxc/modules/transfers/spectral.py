"""A square matrix whose spectral norm training holds at or below a bound: what residual blocks are made of."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch

from deepxc.errors import UserError

Start = Literal["identity", "random"]

_ROUNDS_AT_START = 20  # power iterations before the first step of training
# Power iterations a step. From the identity, where all singular values are equal, one a step let the norm stray to
# 1.7 times the bound in early training; three held it near a tenth at most, in about the same time.
_ROUNDS = 3


class SpectralMatrix(torch.nn.Module):
    """R, its largest singular value held at or below `bound`.

    While training, power iteration estimates that value at every step, and R is used scaled down by as much as the
    estimate is above the bound. The estimate is never too high, so R can exceed the bound by a little: `settle`, once
    training is over, scales R by its exact value.

    The published codes divide by the norm always, so that it is exactly 1; a bound lets R shrink.

    Args:
        dim: Rows and columns.
        bound: Largest norm of R; above 0, inf for none.
        start: `identity` (scaled to the bound where that is below 1), as in the papers and the published codes, or
            `random`: normal entries with a norm of about the bound.
        seed: Of the random start and of the power iteration.
    """

    left: torch.Tensor
    right: torch.Tensor

    def __init__(self, dim: int, *, bound: float = 1.0, start: Start = "identity", seed: int = 0) -> None:
        super().__init__()
        if not bound > 0:
            raise UserError(f"bound {bound}", where="bound", remedy="Give a number above 0 (Freeze has no correction)")
        if start not in get_args(Start):
            raise UserError(
                f"unknown start {start!r}", where="start", remedy=f"Use one of {', '.join(get_args(Start))}"
            )
        self.bound = bound
        self.start: Start = start
        self.seed = seed
        self.weight = torch.nn.Parameter(torch.empty(dim, dim))
        self.register_buffer("left", torch.empty(dim))
        self.register_buffer("right", torch.empty(dim))
        self.reset_matrix()

    def reset_matrix(self) -> None:
        """Start R and the power iteration anew, from the seed."""
        rng = np.random.default_rng(self.seed)
        dim = len(self.left)
        if self.start == "identity":
            weight = np.eye(dim) * min(self.bound, 1.0)
        else:  # the norm of a square matrix of standard normal entries is close to 2 sqrt(dim)
            weight = rng.standard_normal((dim, dim)) * (self.bound / (2 * np.sqrt(dim)))
        with torch.no_grad():
            self.weight.copy_(torch.from_numpy(weight))
            left = torch.from_numpy(rng.standard_normal(dim)).to(self.left)
            self.left.copy_(torch.nn.functional.normalize(left, dim=0))
        self._iterate(_ROUNDS_AT_START)

    def product(self, features: torch.Tensor) -> torch.Tensor:
        """R times each row, R as it is used; in training the estimate of its norm is brought up to date first."""
        if self.training and not np.isinf(self.bound):
            self._iterate(_ROUNDS)
        return torch.nn.functional.linear(features, self._bounded())

    @torch.no_grad()
    def settle(self) -> None:
        """Scale R so that its norm is at most the bound, by an exact decomposition; for use after training."""
        weight = self.weight.detach().double().cpu()
        self.weight.copy_(weight * self._scale_for(weight))
        # Rounding to the parameter's own precision can lift the norm again by a few parts in 10^8.
        while (norm := spectral_norm(self.weight)) > self.bound:
            self.weight.mul_(self.bound / norm * (1 - 1e-7))
        left, _, right = torch.linalg.svd(self.weight.double().cpu())
        self.left.copy_(left[:, 0])
        self.right.copy_(right[0])

    def matrix(self) -> np.ndarray:
        """R as it is used, for prediction without PyTorch."""
        with torch.no_grad():
            return self._bounded().float().cpu().numpy().copy()

    def _scale_for(self, weight: torch.Tensor) -> float:
        norm = spectral_norm(weight)
        return min(1.0, self.bound / norm) if norm > 0 else 1.0

    def _bounded(self) -> torch.Tensor:
        """R, scaled down where the estimate of its norm is above the bound; gradients flow through the estimate."""
        if np.isinf(self.bound):
            return self.weight
        norm = self.left @ (self.weight @ self.right)
        # After `settle` the estimate is the norm itself, up to rounding: that must not scale R once more.
        scale = torch.where(norm > self.bound * (1 + 1e-6), self.bound / norm, torch.ones_like(norm))
        return self.weight * scale

    @torch.no_grad()
    def _iterate(self, rounds: int) -> None:
        # The buffers get new tensors, not new values: autograd may still need those of the step before.
        for _ in range(rounds):
            self.right = torch.nn.functional.normalize(self.weight.T @ self.left, dim=0)
            self.left = torch.nn.functional.normalize(self.weight @ self.right, dim=0)


def spectral_norm(weight: torch.Tensor) -> float:
    """The largest singular value, exactly (float64)."""
    return float(torch.linalg.matrix_norm(weight.detach().double().cpu(), ord=2))

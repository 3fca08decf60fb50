"""Learning-rate schedules: what the rates are multiplied with, as functions of how far training has come (0 to 1)."""

from __future__ import annotations

import math
from collections.abc import Callable

from deepxc.errors import UserError

Schedule = Callable[[float], float]


def constant(_progress: float) -> float:
    """The rates as they are, all the way."""
    return 1.0


def halving(epochs: int, every: int, *, factor: float = 0.5, shortest: int = 5) -> Schedule:
    """DeepXML's rule: a fall at the first epoch that `every` divides, after which `every` itself is halved.

    Args:
        epochs: Epochs of the whole training.
        every: Epochs between falls, at first.
        factor: What a fall multiplies the rate with.
        shortest: Where halving `every` ends.
    """
    if every < 1 or shortest < 1:
        raise UserError("epochs between falls must be 1 or more", where="every, shortest", remedy="Give 1 or more")
    scales, scale = [], 1.0
    for epoch in range(epochs):
        if epoch > 0 and epoch % every == 0:
            scale *= factor
            every = max(shortest, every // 2)
        scales.append(scale)

    def scale_at(progress: float) -> float:
        return scales[min(epochs - 1, int(progress * epochs + 1e-9))] if scales else 1.0

    return scale_at


def linear(warm_up: float = 0.0, floor: float = 0.0) -> Schedule:
    """Up in a straight line during the share `warm_up` of training, then down to `floor` in another."""
    return _after_warm_up(warm_up, lambda rest: floor + (1 - floor) * (1 - rest))


def cosine(warm_up: float = 0.0, floor: float = 0.0) -> Schedule:
    """Up in a straight line during the share `warm_up` of training, then down to `floor` along half a cosine."""
    return _after_warm_up(warm_up, lambda rest: floor + (1 - floor) * (1 + math.cos(math.pi * rest)) / 2)


def one_cycle(peak: float = 0.3, start: float = 0.04, end: float = 1e-4) -> Schedule:
    """From `start` up to 1 along half a cosine, at its top when the share `peak` is done, then down to `end`."""

    def scale_at(progress: float) -> float:
        if progress < peak:
            return 1 - (1 - start) * (1 + math.cos(math.pi * progress / peak)) / 2
        rest = min(1.0, (progress - peak) / (1 - peak)) if peak < 1 else 1.0
        return end + (1 - end) * (1 + math.cos(math.pi * rest)) / 2

    return scale_at


def _after_warm_up(warm_up: float, then: Schedule) -> Schedule:
    if not 0 <= warm_up <= 1:
        raise UserError("must be a share of training", where="warm_up", remedy="Give a number from 0 to 1")

    def scale_at(progress: float) -> float:
        if progress < warm_up:
            return progress / warm_up
        return then(min(1.0, (progress - warm_up) / (1 - warm_up))) if warm_up < 1 else 1.0

    return scale_at

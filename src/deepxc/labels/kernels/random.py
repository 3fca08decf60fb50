"""Random numbers as a hash of a key, so that each label or tree node has its own, whichever thread it runs on."""

from __future__ import annotations

import numpy as np
from numba import types

from deepxc.labels.kernels.compiled import compiled


@compiled(types.uint64(types.uint64))
def mix(state: np.uint64) -> np.uint64:
    """The next state of a random stream, well spread over 64 bits (SplitMix64's step and finaliser)."""
    z = state + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled(types.float64(types.uint64))
def uniform(state: np.uint64) -> float:
    """A float64 in [0, 1) from a state."""
    return np.float64(state >> np.uint64(11)) * 2.0**-53


@compiled(types.int64(types.uint64, types.int64))
def below(state: np.uint64, bound: int) -> np.int64:
    """An integer from 0 to bound - 1 (bound below 2^32) from a state."""
    return np.int64(((state >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))

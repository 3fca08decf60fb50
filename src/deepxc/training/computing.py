"""How a training computes: on how many threads, in what memory, and whether each run must give the same bits.

On a CPU the engine's own parts are deterministic for a number of threads in any case; the switch also holds PyTorch to
it, which matters on CUDA.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def on_threads(threads: int | None) -> Iterator[None]:
    """PyTorch, BLAS and compiled loops use so many threads inside, and what they used before afterwards.

    Args:
        threads: The number; None leaves everything as it is.
    """
    if threads is None:
        yield
        return
    import numba
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads(), numba.get_num_threads()
    try:
        with threadpool_limits(threads):
            torch.set_num_threads(threads)
            numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))  # pyrefly: ignore[missing-attribute]
            yield
    finally:
        torch.set_num_threads(before[0])
        numba.set_num_threads(before[1])


@cache
def keep_freed_memory() -> bool:
    """Let the C library keep what training frees, instead of giving it back to the system and asking anew each step.

    Every batch needs some tens of megabytes for its logits and gradients. Given back and mapped again, each page of
    them costs a page fault: nearly half the time of a training step, as measured. Only glibc has the switch; where it
    is missing nothing happens.

    Returns:
        Whether the switch was found.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    map_threshold, trim_threshold = -3, -1  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of malloc.h
    return bool(mallopt(map_threshold, 1 << 25)) and bool(mallopt(trim_threshold, 1 << 30))


@contextmanager
def deterministic(seed: int) -> Iterator[None]:
    """PyTorch draws from this seed inside, and refuses operations that may give other bits each time.

    On CUDA the environment variable `CUBLAS_WORKSPACE_CONFIG` must be `:4096:8` before the process starts.
    """
    before = torch.are_deterministic_algorithms_enabled()
    memory: Any = torch.utils.deterministic
    filled = memory.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    memory.fill_uninitialized_memory = False  # the engine reads nothing that it did not write
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
    finally:
        torch.use_deterministic_algorithms(before)
        memory.fill_uninitialized_memory = filled

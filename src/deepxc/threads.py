"""How many threads to use: one answer for every room."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deepxc.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator


class Scratch(threading.local):
    """Arrays that each thread has for itself, to work in; a copy of what holds them starts without any."""

    def __reduce__(self) -> tuple[type[Scratch], tuple[()]]:
        return Scratch, ()


def thread_count(threads: int | None = None) -> int:
    """The number of threads to use; None means every core this process may run on."""
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)  # absent on macOS and Windows
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if threads < 1:
        raise UserError(f"{threads} threads", where="threads", remedy="Give at least 1, or None for every core")
    return threads


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """PyTorch's operations use so many threads inside, and what they used before afterwards.

    Other libraries on the same OpenMP (numba, when its first loop starts) change PyTorch's number behind its back:
    what is put back is read before, and put back whoever changed it.
    """
    import torch

    before = torch.get_num_threads()
    try:
        if before != threads:
            torch.set_num_threads(threads)
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)

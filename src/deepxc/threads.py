"""How many threads to use: one answer for every room."""

from __future__ import annotations

import os

from deepxc.errors import UserError


def thread_count(threads: int | None = None) -> int:
    """The number of threads to use; None means every core this process may run on."""
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)  # absent on macOS and Windows
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if threads < 1:
        raise UserError(f"{threads} threads", where="threads", remedy="Give at least 1, or None for every core")
    return threads

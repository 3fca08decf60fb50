"""Stopwatch and scales: single answers, peak memory, size on disk."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_WARM_UP = 50
_LEAST = 100  # answers that are timed however long they take


def answer_seconds(answer: Callable[[object], object], items: Sequence[object], patience: float = 30.0) -> np.ndarray:
    """Seconds of each answer, one after the other, after some that are not counted.

    Args:
        answer: Called with one item.
        items: What is asked.
        patience: Seconds after which no more is asked, once a hundred answers are there.
    """
    for item in items[:_WARM_UP]:
        answer(item)
    taken: list[float] = []
    end = time.perf_counter() + patience
    for item in items:
        began = time.perf_counter()
        answer(item)
        now = time.perf_counter()
        taken.append(now - began)
        if now > end and len(taken) >= _LEAST:
            break
    return np.array(taken)


def peak_mib() -> float:
    """The most memory that this process has had in use so far, in MiB.

    Linux tells it per program image. The portable figure may hold a share of the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / 2**20 if sys.platform == "darwin" else used / 1024


def folder_mib(folder: Path) -> float:
    """Bytes of all files in a folder, in MiB."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20

"""Runs a piece of work on a given number of threads and leaves the process as it was.

FAISS takes its number of threads from OpenMP, which keeps one setting per calling thread: setting it around a call
disturbs nobody. NumPy's BLAS has one setting for the whole process, so concurrent searches share one hold on it.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_lock = threading.Lock()
_holds: dict[str, Any] = {"count": 0, "before": []}


@contextmanager
def faiss_threads(threads: int) -> Iterator[None]:
    """FAISS calls made inside, by this Python thread, use so many threads."""
    import faiss

    before = faiss.omp_get_max_threads()
    if before == threads:
        yield
        return
    faiss.omp_set_num_threads(threads)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


@cache
def _blas_libraries() -> list[Any]:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """NumPy's matrix products inside use the calling thread alone.

    The first to enter notes the setting and the last to leave puts it back, so that searches running at the same
    time from several threads cannot leave each other's setting behind.
    """
    with _lock:
        if _holds["count"] == 0:
            _holds["before"] = [(library, library.get_num_threads()) for library in _blas_libraries()]
            for library, _ in _holds["before"]:
                library.set_num_threads(1)
        _holds["count"] += 1
    try:
        yield
    finally:
        with _lock:
            _holds["count"] -= 1
            if _holds["count"] == 0:
                for library, number in _holds["before"]:
                    library.set_num_threads(number)

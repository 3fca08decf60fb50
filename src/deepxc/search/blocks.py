"""Works through rows in blocks of a fixed size, several at a time.

A matrix product rounds differently when it is split over another number of threads, and one flipped bit changes a
code. Blocks of one size, each worked by one thread, make a build come out the same on any number of cores. They also
never wait for each other inside, which FAISS's own threads do badly on a busy machine.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from deepxc.number_formats import native_bfloat16
from deepxc.search.thread_limits import faiss_threads
from deepxc.threads import torch_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import faiss

_BLOCK = 8192
_GROUP = 8 * _BLOCK


def groups(size: int) -> Iterator[slice]:
    """Slices of rows that are held in memory together."""
    for start in range(0, size, _GROUP):
        yield slice(start, min(start + _GROUP, size))


def by_blocks(work: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, threads: int) -> np.ndarray:
    """The results of `work` on each block of rows, one under the other."""

    def alone(start: int) -> np.ndarray:
        with faiss_threads(1):
            return work(rows[start : start + _BLOCK])

    starts = range(0, len(rows), _BLOCK)
    if len(starts) == 1:
        return alone(0)
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(alone, starts)))


def nearest(centres: Any, rows: np.ndarray, threads: int) -> np.ndarray:  # noqa: ANN401 - a FAISS index
    """The nearest centre of each row, by inner product.

    Where the CPU multiplies bfloat16 natively, in that format: a tie between two centres may fall the other way, which
    costs no recall, and the products take a third of the time.
    """
    if not native_bfloat16():
        return by_blocks(lambda block: centres.search(block, 1)[1][:, 0], rows, threads)
    import torch

    table = torch.from_numpy(centres.reconstruct_n(0, centres.ntotal)).bfloat16().t().contiguous()
    best = np.empty(len(rows), np.int64)
    with torch_threads(threads):  # these products come out the same however many share them
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            best[block] = (torch.from_numpy(rows[block]).bfloat16() @ table).argmax(1).numpy()
    return best


def rotate(turn: faiss.LinearTransform, rows: np.ndarray, threads: int) -> np.ndarray:
    """The rows, turned."""
    return by_blocks(turn.apply, rows, threads)

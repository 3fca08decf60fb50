"""Work cut into blocks that do not depend on the number of threads, so that results do not either."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from deepxc.threads import thread_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Block = TypeVar("Block")
Result = TypeVar("Result")


def even_blocks(work: np.ndarray, n_blocks: int) -> list[tuple[int, int]]:
    """Cut rows into at most `n_blocks` runs (start, end) of about equal work.

    Args:
        work: Cumulative work before each row and after the last, as in the row pointer of a sparse matrix.
        n_blocks: Most runs wanted.
    """
    rows = len(work) - 1
    if rows <= 0:
        return []
    goals = work[0] + (work[-1] - work[0]) * np.arange(1, n_blocks) / n_blocks
    cuts = np.unique(np.concatenate(([0], np.searchsorted(work, goals), [rows])))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


class Workers:
    """Threads that live for one computation; with one thread everything runs in the caller's."""

    def __init__(self, threads: int | None) -> None:
        self.count = thread_count(threads)
        self._pool = ThreadPoolExecutor(self.count) if self.count > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[[Block], Result], blocks: Iterable[Block]) -> list[Result]:
        """The result of each block, in the order of the blocks."""
        blocks = list(blocks)
        if self._pool is None or len(blocks) < 2:
            return [function(block) for block in blocks]
        return list(self._pool.map(function, blocks))

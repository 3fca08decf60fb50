"""Rows worked on in blocks: what is held at once stays small, and the blocks are shared out over threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy import sparse

from deepxc.errors import DataError
from deepxc.labels.blocks import Workers

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 1 << 14
"""Rows whose shortlists are held at once while negatives are made from them."""
_LEAST = 64  # rows that are worth a thread's while
_MOST_POSITIVES = 64


@dataclass(frozen=True, eq=False)
class LabelRows:
    """Labels of texts as the compiled loops read them: ascending in a row, without stored zeros."""

    indptr: np.ndarray
    labels: np.ndarray
    n_labels: int

    @classmethod
    def of(cls, Y: sparse.csr_matrix) -> Self:
        """The labels in a sparse matrix, texts x labels; not copied where they are in order already."""
        rows = sparse.csr_matrix(Y)
        if not rows.has_sorted_indices or not rows.data.all():
            rows = rows.copy()
            rows.sum_duplicates()
            rows.eliminate_zeros()
        return cls(np.asarray(rows.indptr, np.int64), np.asarray(rows.indices, np.int32), rows.shape[1])

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def between(self, start: int, stop: int) -> np.ndarray:
        """The pointers of some rows, into the same labels."""
        return self.indptr[start : stop + 1]

    def most(self) -> int:
        """Labels of the row with most, up to a limit: how much longer a shortlist must be to hold k others."""
        return min(int(np.diff(self.indptr).max(initial=0)), _MOST_POSITIVES)

    def check(self, n_rows: int) -> None:
        """Refuse labels of another number of rows."""
        if len(self) != n_rows:
            raise DataError(f"{len(self)} rows of labels for {n_rows} rows of features")


def over_rows(n: int, threads: int, work: Callable[[int, int], None]) -> None:
    """Call `work(start, stop)` for blocks that make up the n rows, on so many threads."""
    step = ROWS if threads <= 1 else min(ROWS, max(_LEAST, -(-n // (4 * threads))))
    if n <= step:
        if n:
            work(0, n)
        return
    blocks = [(start, min(start + step, n)) for start in range(0, n, step)]
    with Workers(threads) as workers:
        workers.map(lambda block: work(*block), blocks)


def drop_positives(ids: np.ndarray, rows: LabelRows, k: int, threads: int = 1) -> np.ndarray:
    """At most k of each row's labels, in their order, that are not its own (int32, -1 after the last)."""
    from deepxc.modules.shortlists.kernels import without_positives

    rows.check(len(ids))
    ids = np.ascontiguousarray(ids, np.int64)
    out = np.empty((len(ids), k), np.int32)

    def work(start: int, stop: int) -> None:
        without_positives(ids[start:stop], rows.between(start, stop), rows.labels, out[start:stop])

    over_rows(len(ids), threads, work)
    return out

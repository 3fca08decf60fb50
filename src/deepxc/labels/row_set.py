"""Rows to be compared by cosine, and the passes over many of them that threads share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from deepxc.errors import DataError
from deepxc.labels.blocks import Workers, even_blocks
from deepxc.labels.weighted_sums import sparse_arrays

_BLOCKS = 256  # most runs of rows in one pass
_BLOCK = 1 << 18  # entries that are worth handing to another thread
_PARTIAL_SUMS = 16  # most sums taken apart and then together; each is one array of features wide


@dataclass(frozen=True)
class RowSet:
    """Sparse or dense rows as the compiled loops take them (see `kernels.clusters`), each to be read as of length 1.

    Rows of zeros stay zeros. Dense float32 rows are not copied: `scale` holds one over the length of each.
    """

    X: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    scale: np.ndarray
    size: int
    width: int

    @classmethod
    def of(cls, vectors: sparse.csr_matrix | np.ndarray, workers: Workers) -> RowSet:
        """Take rows as they come.

        Raises:
            DataError: A row holds NaN or infinity, or there are not two dimensions.
        """
        from deepxc.labels.kernels.clusters import row_scales

        if isinstance(vectors, np.ndarray):
            if vectors.ndim != 2:
                raise DataError(f"vectors have {vectors.ndim} dimensions", remedy="Give one row a label")
            dense = np.require(vectors, dtype=np.float32, requirements=["C", "A"])
            arrays = (dense, np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
        else:
            matrix = sparse.csr_matrix(vectors, dtype=np.float32)
            if not matrix.has_canonical_format:  # a feature twice in a row would get the row's length wrong
                matrix = matrix.copy()
                matrix.sum_duplicates()
            arrays = (np.empty((0, 0), np.float32), *sparse_arrays(matrix))
        n, width = int(vectors.shape[0]), int(vectors.shape[1])
        scale = np.zeros(n, np.float32)
        blocks = even_blocks(np.arange(n + 1), _BLOCKS)
        broken = [
            row
            for row in workers.map(lambda b: row_scales(arrays[0], arrays[1], arrays[3], *b, scale), blocks)
            if row >= 0
        ]
        if broken:
            raise DataError(f"the vector of label {broken[0]} is not finite", remedy="Replace NaN and infinite values")
        return cls(*arrays, scale, n, width)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What every compiled loop takes first."""
        return self.X, self.indptr, self.indices, self.data, self.scale

    def work(self, ids: np.ndarray) -> np.ndarray:
        """Entries before each row of `ids` and after the last."""
        if not len(self.indptr):
            return np.arange(len(ids) + 1, dtype=np.int64) * self.width
        return np.concatenate(([0], np.cumsum(self.indptr[ids + 1] - self.indptr[ids])))

    def entries(self, ids: np.ndarray) -> int:
        """Entries of the rows in `ids`, zeros of dense rows included."""
        if not len(self.indptr):
            return len(ids) * self.width
        return int((self.indptr[ids + 1] - self.indptr[ids]).sum())

    def dots(self, ids: np.ndarray, w: np.ndarray, workers: Workers) -> np.ndarray:
        """Inner product of each unit row in `ids` with `w` (float32)."""
        from deepxc.labels.kernels.clusters import dots

        out = np.empty(len(ids), np.float32)

        def run(block: tuple[int, int]) -> None:
            dots(*self.arrays, ids[slice(*block)], w, out[slice(*block)])

        work = self.work(ids)
        workers.map(run, even_blocks(work, int(np.clip(work[-1] // _BLOCK, 1, _BLOCKS))))
        return out

    def sums(self, ids: np.ndarray, signs: np.ndarray | None, workers: Workers) -> np.ndarray:
        """The sum of the unit rows, each times its sign; rows of sign 0 cost nothing."""
        from deepxc.labels.kernels.clusters import add_rows

        if signs is None:
            signs = np.ones(len(ids), np.int8)
        else:
            used = np.flatnonzero(signs)
            ids, signs = ids[used], signs[used]
        work = self.work(ids)
        n_parts = int(np.clip(work[-1] // max(_BLOCK, 4 * self.width), 1, _PARTIAL_SUMS))

        def run(block: tuple[int, int]) -> np.ndarray:
            total = np.zeros(self.width, np.float64)
            add_rows(*self.arrays, ids[slice(*block)], signs[slice(*block)], total)
            return total

        parts = workers.map(run, even_blocks(work, n_parts))
        total = np.zeros(self.width, np.float64)
        for partial in parts:
            total += partial
        return total

"""Token vectors from the texts themselves: the leading right singular vectors of the text-by-token matrix."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from deepxc.errors import UserError
from deepxc.threads import thread_count

if TYPE_CHECKING:
    from scipy import sparse

_SPARE = 16  # extra directions that make the last wanted ones accurate
_BLOCK = 64  # columns handled together: 256 bytes of a row, so frequent tokens stay in the CPU's cache
_ROWS_AT_ONCE = 8_192


def spectral(
    X: sparse.csr_matrix,
    dim: int,
    seed: int = 0,
    *,
    power: float = 0.5,
    weighting: Literal["given", "ppmi"] = "ppmi",
    normalize: bool = True,
    passes: int = 3,
    threads: int | None = None,
) -> np.ndarray:
    """Token vectors `V * S**power` of a randomised singular value decomposition.

    Args:
        X: One row a text, one column a token.
        dim: Numbers a token. Where the matrix has a smaller rank, the last columns are zero.
        seed: Seed of the random start.
        power: How much the strong directions weigh: 1 keeps inner products of texts, 0 makes all directions equal.
        weighting: `given` takes the matrix as it is, `ppmi` the positive pointwise mutual information of its cells.
        normalize: Scale each token's vector to unit length. Without it the frequent tokens have by far the longest
            vectors and drown the rare ones, which tell labels apart: summed into texts, they find few labels.
        passes: Times the matrix is gone through; more sharpen the weak directions.
        threads: Threads; None takes all cores. The result does not depend on it.

    Returns:
        `(n_tokens, dim)`, float32; without `normalize` in a scale where the mean squared row length is 1.
    """
    if dim < 1 or passes < 1:
        raise UserError(f"dim {dim} and passes {passes} must both be above 0", where="spectral")
    if weighting not in ("given", "ppmi"):
        raise UserError(f"{weighting!r} is neither 'given' nor 'ppmi'", where="weighting")
    n_texts, n_tokens = X.shape
    found = min(dim, n_texts, n_tokens)
    width = min(found + _SPARE, n_tokens)
    vectors = np.zeros((n_tokens, dim), dtype=np.float32)
    # One BLAS thread a block and our own threads over fixed blocks: sums come out alike for any number of threads.
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(thread_count(threads)) as pool:
        matrix = _Blocks(X.tocsr(), weighting, pool)
        basis = np.random.default_rng(seed).standard_normal((n_tokens, width), dtype=np.float32)
        for _ in range(passes - 1):
            basis = matrix.orthonormal(matrix.gram_times(basis))
        basis = matrix.orthonormal(basis)
        image = matrix.gram_times(basis)
        squares, turn = np.linalg.eigh(_symmetric(matrix.inner(basis, image)))
        order = np.argsort(-squares)[:found]
        scale = np.maximum(squares[order], 0.0) ** (power / 2)
        vectors[:, :found] = matrix.rotated(basis, turn[:, order] * scale)
    _fix_signs(vectors)
    energy = np.einsum("ij,ij->i", vectors, vectors)
    lengths = np.sqrt(energy if normalize else np.full(n_tokens, energy.mean(dtype=np.float64)))[:, None]
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


class _Blocks:
    """Products with a sparse matrix and with tall dense ones, shared out over threads in fixed blocks."""

    def __init__(self, X: sparse.csr_matrix, weighting: str, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._bounds = X.indptr.astype(np.int64)
        self._indices = X.indices.astype(np.int32, copy=False)
        values = np.ascontiguousarray(X.data, dtype=np.float32)
        self._values = _ppmi(X, values) if weighting == "ppmi" else values

    def gram_times(self, right: np.ndarray) -> np.ndarray:
        """`X.T @ (X @ right)`, a block of columns a task."""
        from deepxc.text.sparse_kernels import gram_times

        out = np.empty_like(right)

        def product(columns: slice) -> None:
            part = np.ascontiguousarray(right[:, columns])
            result = np.zeros_like(part)
            gram_times(self._bounds, self._indices, self._values, part, result)
            out[:, columns] = result

        list(self._pool.map(product, [slice(i, i + _BLOCK) for i in range(0, right.shape[1], _BLOCK)]))
        return out

    def inner(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """`left.T @ right` in double precision."""

        def product(rows: slice) -> np.ndarray:
            return left[rows].astype(np.float64).T @ right[rows].astype(np.float64)

        total = np.zeros((left.shape[1], right.shape[1]))
        for part in self._pool.map(product, _row_blocks(len(left))):
            total += part
        return total

    def rotated(self, tall: np.ndarray, turn: np.ndarray) -> np.ndarray:
        """`tall @ turn`."""
        small = turn.astype(np.float32)
        return np.concatenate(list(self._pool.map(lambda rows: tall[rows] @ small, _row_blocks(len(tall)))))

    def orthonormal(self, tall: np.ndarray) -> np.ndarray:
        """An orthonormal basis of the columns' span; directions that are not there come out as zero columns."""
        squares, turn = np.linalg.eigh(_symmetric(self.inner(tall, tall)))
        real = squares > max(squares.max(initial=0.0), 0.0) * 1e-10
        scale = np.where(real, 1.0 / np.sqrt(np.where(real, squares, 1.0)), 0.0)
        return self.rotated(tall, turn * scale)


def _ppmi(X: sparse.csr_matrix, values: np.ndarray) -> np.ndarray:
    """Positive pointwise mutual information of text and token in each cell that is there."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    of_row = np.bincount(rows, weights=values, minlength=X.shape[0])
    of_column = np.bincount(X.indices, weights=values, minlength=X.shape[1])
    expected = of_row[rows] * of_column[X.indices]
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.log(values * of_row.sum() / expected)
    return np.where(information > 0, information, 0.0).astype(np.float32)


def _symmetric(square: np.ndarray) -> np.ndarray:
    return (square + square.T) / 2


def _fix_signs(vectors: np.ndarray) -> None:
    """Make the largest entry of each column positive: a singular vector's sign is arbitrary."""
    if vectors.size:
        largest = np.abs(vectors).argmax(axis=0)
        vectors *= np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, np.float32(-1), np.float32(1))


def _row_blocks(n_rows: int) -> list[slice]:
    return [slice(i, i + _ROWS_AT_ONCE) for i in range(0, max(n_rows, 1), _ROWS_AT_ONCE)]

"""Weighted sums of feature rows on several cores: the product behind centroids and smoothing."""

from __future__ import annotations

from typing import overload

import numpy as np
from scipy import sparse

from deepxc.errors import DataError
from deepxc.labels.blocks import Workers, even_blocks

_BLOCKS = 64  # enough to keep many cores busy to the end, few enough that a block is worth a thread's start
_CHUNK_BYTES = 64 << 20  # features of another type are turned to float32 in pieces of this size


@overload
def weighted_sums(weights: sparse.csr_matrix, features: np.ndarray, threads: int | None = None) -> np.ndarray: ...
@overload
def weighted_sums(
    weights: sparse.csr_matrix, features: sparse.csr_matrix, threads: int | None = None
) -> sparse.csr_matrix: ...
@overload
def weighted_sums(
    weights: sparse.csr_matrix, features: sparse.csr_matrix | np.ndarray, threads: int | None = None
) -> sparse.csr_matrix | np.ndarray: ...
def weighted_sums(
    weights: sparse.csr_matrix,
    features: sparse.csr_matrix | np.ndarray,
    threads: int | None = None,
) -> sparse.csr_matrix | np.ndarray:
    """`weights @ features`, in float32, the rows of the result shared out over threads.

    Args:
        weights: One row a result row, one column a feature row.
        features: Sparse or dense features; dense ones are never copied whole.
        threads: None for every core.

    Returns:
        Sparse (CSR, sorted indices) for sparse features, else a dense float32 array.
    """
    if weights.shape[1] != features.shape[0]:
        raise DataError(f"{weights.shape[1]} weights a row for {features.shape[0]} rows of features")
    weights = sparse.csr_matrix(weights, dtype=np.float32)
    with Workers(threads) as workers:
        if isinstance(features, np.ndarray):
            return _dense_sums(weights, features, workers)
        return _sparse_sums(weights, sparse.csr_matrix(features, dtype=np.float32), workers)


def sparse_arrays(matrix: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row pointer, column numbers and values in the types that compiled loops take."""
    return (
        np.ascontiguousarray(matrix.indptr, dtype=np.int64),
        np.ascontiguousarray(matrix.indices, dtype=np.int32),
        np.ascontiguousarray(matrix.data, dtype=np.float32),
    )


def _sparse_sums(weights: sparse.csr_matrix, features: sparse.csr_matrix, workers: Workers) -> sparse.csr_matrix:
    from deepxc.labels.kernels.sums import add_sparse_rows, count_sparse_sums

    indptr, indices, data = sparse_arrays(weights)
    source = sparse_arrays(features)
    rows, width = weights.shape[0], features.shape[1]
    # The work of a result row is the entries of all the feature rows that it sums.
    blocks = even_blocks(np.concatenate(([0], np.cumsum(np.diff(source[0])[indices])))[indptr], _BLOCKS)
    sizes = np.zeros(rows, np.int64)
    workers.map(lambda b: count_sparse_sums(indptr, indices, *source[:2], width, *b, sizes), blocks)
    ptr = np.concatenate(([0], np.cumsum(sizes)))
    columns, values = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.float32)
    workers.map(lambda b: add_sparse_rows(indptr, indices, data, *source, width, *b, ptr, columns, values), blocks)
    sums = sparse.csr_matrix((values, columns, ptr), shape=(rows, width))
    sums.has_canonical_format = True
    return sums


def _dense_sums(weights: sparse.csr_matrix, features: np.ndarray, workers: Workers) -> np.ndarray:
    out = np.zeros((weights.shape[0], features.shape[1]), np.float32)
    if features.dtype == np.float32 and features.flags.c_contiguous and features.flags.aligned:
        step = max(features.shape[0], 1)
    else:
        step = max(1, _CHUNK_BYTES // max(4 * features.shape[1], 1))
    for start in range(0, features.shape[0], step):
        piece = np.require(features[start : start + step], dtype=np.float32, requirements=["C", "A"])
        part = weights if len(piece) == len(features) else sparse.csr_matrix(weights[:, start : start + step])
        _add_piece(*sparse_arrays(part), piece, out, workers)
    return out


def _add_piece(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, piece: np.ndarray, out: np.ndarray, workers: Workers
) -> None:
    from deepxc.labels.kernels.sums import add_dense_rows

    workers.map(lambda b: add_dense_rows(indptr, indices, data, piece, *b, out), even_blocks(indptr, _BLOCKS))


def unit_rows(vectors: sparse.csr_matrix | np.ndarray, threads: int | None = None) -> None:
    """Scale each row (float32) to length 1, in place; rows of zeros stay so."""
    from deepxc.labels.kernels.sums import unit_dense_rows, unit_sparse_rows

    with Workers(threads) as workers:
        if isinstance(vectors, np.ndarray):
            work = np.arange(len(vectors) + 1) * vectors.shape[1]
            workers.map(lambda b: unit_dense_rows(vectors, *b), even_blocks(work, _BLOCKS))
        else:
            indptr, values = vectors.indptr.astype(np.int64), vectors.data
            workers.map(lambda b: unit_sparse_rows(indptr, values, *b), even_blocks(indptr, _BLOCKS))

"""Weighted sums of dense and of sparse rows."""

from __future__ import annotations

import numpy as np
from numba import types

from deepxc.labels.kernels.compiled import F32, F32_ROWS, I32, I64, compiled

_BIT = np.uint64(0x03F79D71B4CB0A89)  # a de Bruijn sequence: its product with 2^i holds i in the top six bits
_PLACE = np.empty(64, np.int32)
for _i in range(64):
    _PLACE[(((1 << _i) * int(_BIT)) >> 58) & 63] = _i


@compiled(types.void(I64, I32, F32, F32_ROWS, types.int64, types.int64, types.float32[:, ::1]))
def add_dense_rows(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    features: np.ndarray,
    start: int,
    end: int,
    out: np.ndarray,
) -> None:
    """Add to `out[r]`, for r in start..end, the feature rows that sparse row r names, each times its weight.

    Sums in float64: a frequent label adds up tens of thousands of rows.
    """
    total = np.empty(features.shape[1], np.float64)
    for row in range(start, end):
        if indptr[row] == indptr[row + 1]:
            continue
        for j in range(total.size):
            total[j] = out[row, j]
        for entry in range(indptr[row], indptr[row + 1]):
            weight = data[entry]
            source = indices[entry]
            for j in range(total.size):
                total[j] += weight * features[source, j]
        for j in range(total.size):
            out[row, j] = total[j]


@compiled(types.void(I64, I32, I64, I32, types.int64, types.int64, types.int64, types.int64[::1]))
def count_sparse_sums(
    indptr: np.ndarray,
    indices: np.ndarray,
    from_indptr: np.ndarray,
    from_indices: np.ndarray,
    width: int,
    start: int,
    end: int,
    sizes: np.ndarray,
) -> None:
    """Write to `sizes[r]`, for r in start..end, how many features the rows that sparse row r names use together."""
    seen = np.full(width, -1, np.int32)
    for row in range(start, end):
        size = 0
        for entry in range(indptr[row], indptr[row + 1]):
            source = indices[entry]
            for at in range(from_indptr[source], from_indptr[source + 1]):
                feature = from_indices[at]
                if seen[feature] != row:
                    seen[feature] = row
                    size += 1
        sizes[row] = size


@compiled(
    types.void(
        I64, I32, F32, I64, I32, F32, types.int64, types.int64, types.int64, I64, types.int32[::1], types.float32[::1]
    )
)
def add_sparse_rows(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    from_indptr: np.ndarray,
    from_indices: np.ndarray,
    from_data: np.ndarray,
    width: int,
    start: int,
    end: int,
    out_indptr: np.ndarray,
    out_indices: np.ndarray,
    out_data: np.ndarray,
) -> None:
    """Write the weighted sums of rows start..end where `out_indptr` says, features in ascending order."""
    total = np.zeros(width, np.float64)
    used = np.zeros((width + 63) // 64, np.uint64)  # a bit a feature: read in order, it spares sorting the row
    one = np.uint64(1)
    for row in range(start, end):
        for entry in range(indptr[row], indptr[row + 1]):
            source, weight = indices[entry], data[entry]
            for piece in range(from_indptr[source], from_indptr[source + 1]):
                feature = from_indices[piece]
                used[feature >> 6] |= one << np.uint64(feature & 63)
                total[feature] += weight * from_data[piece]
        at = out_indptr[row]
        if at == out_indptr[row + 1]:
            continue
        for word in range(used.size):
            bits = used[word]
            while bits != 0:
                lowest = bits & (~bits + one)
                feature = word * 64 + _PLACE[(lowest * _BIT) >> np.uint64(58)]
                out_indices[at], out_data[at] = feature, total[feature]
                total[feature] = 0.0
                at += 1
                bits ^= lowest
            used[word] = 0


@compiled(types.void(I64, types.float32[::1], types.int64, types.int64))
def unit_sparse_rows(indptr: np.ndarray, data: np.ndarray, start: int, end: int) -> None:
    """Scale rows start..end to length 1, in place."""
    for row in range(start, end):
        square = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            square += np.float64(data[entry]) ** 2
        scale = 1.0 / np.sqrt(square) if square > 0 else 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            data[entry] *= scale


@compiled(types.void(types.float32[:, :], types.int64, types.int64), lanes=True)
def unit_dense_rows(rows: np.ndarray, start: int, end: int) -> None:
    """Scale rows start..end to length 1, in place."""
    for row in range(start, end):
        square = 0.0
        for j in range(rows.shape[1]):
            square += np.float64(rows[row, j]) ** 2
        scale = 1.0 / np.sqrt(square) if square > 0 else 0.0
        for j in range(rows.shape[1]):
            rows[row, j] *= scale

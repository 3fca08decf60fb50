"""Balanced 2-means.

A row set is five arrays, so that one compiled function serves both kinds: `X` (dense rows; no rows where sparse),
`indptr`, `indices`, `data` (sparse rows; `indptr` empty where dense) and `scale` (one over each row's length, 0 for a
row of zeros). Every sum runs in a fixed order, so results do not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import types

from deepxc.labels.kernels.compiled import F32, F32_ROWS, I32, I64, compiled, given
from deepxc.labels.kernels.random import mix, uniform

_ROWS = (F32_ROWS, I64, I32, F32, F32)
_INT, _KEY, _REAL = types.int64, types.uint64, types.float64
_F64_OUT, _F32_OUT, _I32_OUT, _I64_OUT = types.float64[::1], types.float32[::1], types.int32[::1], types.int64[::1]
_SIDES = types.boolean[::1]
_TINY = 1e-30  # a shorter row counts as zeros: one over its length would overflow
_SAME = 0.999999  # rows as similar as this count as equal when seeds are drawn


@compiled(types.int64(F32_ROWS, I64, F32, _INT, _INT, _F32_OUT))
def row_scales(
    X: np.ndarray, indptr: np.ndarray, data: np.ndarray, start: int, end: int, scale: np.ndarray
) -> int:  # fmt: skip
    """Write one over the length of rows start..end; returns the first row that is not finite, or -1."""
    for row in range(start, end):
        square = 0.0
        if indptr.size:
            for entry in range(indptr[row], indptr[row + 1]):
                square += np.float64(data[entry]) ** 2
        else:
            for j in range(X.shape[1]):
                square += np.float64(X[row, j]) ** 2
        if not np.isfinite(square):
            return row
        scale[row] = 1.0 / np.sqrt(square) if square > _TINY**2 else 0.0
    return -1


@compiled(types.void(*_ROWS, I32, F32, _F32_OUT), lanes=True)
def dots(
    X: np.ndarray, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, scale: np.ndarray,
    ids: np.ndarray, w: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Inner product of each unit row in `ids` with `w`."""
    for i in range(ids.size):
        row = ids[i]
        total = np.float32(0.0)
        if indptr.size:
            for entry in range(indptr[row], indptr[row + 1]):
                total += data[entry] * w[indices[entry]]
        else:
            for j in range(w.size):
                total += X[row, j] * w[j]
        out[i] = total * scale[row]


@compiled(types.void(*_ROWS, I32, given(types.int8), _F64_OUT))
def add_rows(
    X: np.ndarray, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, scale: np.ndarray,
    ids: np.ndarray, signs: np.ndarray, total: np.ndarray,
) -> None:  # fmt: skip
    """Add the unit rows in `ids`, each times its sign (-1, 0 or 1), to `total`."""
    for i in range(ids.size):
        if signs[i] == 0:
            continue
        row = ids[i]
        weight = np.float64(signs[i]) * scale[row]
        if indptr.size:
            for entry in range(indptr[row], indptr[row + 1]):
                total[indices[entry]] += weight * data[entry]
        else:
            for j in range(total.size):
                total[j] += weight * X[row, j]


@compiled(types.uint64(_KEY, _INT, _INT))
def node_key(key: np.uint64, first: int, k: int) -> np.uint64:
    """The random key of the tree node that holds clusters first..first+k: the same in whatever order nodes run."""
    return mix(mix(key ^ np.uint64(first)) ^ np.uint64(k))


@compiled(types.int64(F32, I32, _KEY))
def first_seed(scale: np.ndarray, ids: np.ndarray, key: np.uint64) -> int:
    """Position of a random row that is not zero; -1 where all are."""
    start = np.int64(uniform(key) * ids.size)
    for step in range(ids.size):
        position = (start + step) % ids.size
        if scale[ids[position]] > 0:
            return int(position)
    return -1


@compiled(types.int64(F32, I32, F32, _KEY))
def second_seed(scale: np.ndarray, ids: np.ndarray, similarity: np.ndarray, key: np.uint64) -> int:
    """Position of a row drawn by its distance from the first seed; -1 where none is at a distance."""
    total = 0.0
    for i in range(ids.size):
        if scale[ids[i]] > 0 and similarity[i] < _SAME:
            total += 1.0 - similarity[i]
    goal = uniform(mix(key)) * total
    last = -1
    for i in range(ids.size):
        if scale[ids[i]] > 0 and similarity[i] < _SAME:
            last = i
            goal -= 1.0 - similarity[i]
            if goal < 0:
                break
    return last


@compiled(types.float32(_F32_OUT, _INT))
def select(values: np.ndarray, place: int) -> float:
    """The value that would stand at `place` were `values` sorted; reorders them.

    Hoare's quickselect around the middle of three. `np.partition` does the same, but takes seconds to compile.
    """
    low, high = 0, values.size - 1
    while low < high:
        a, b, c = values[low], values[(low + high) // 2], values[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return values[place]


@compiled(types.void(F32, _INT, _SIDES))
def choose_left(gap: np.ndarray, n_left: int, left: np.ndarray) -> None:
    """Mark the `n_left` largest gaps; of equal ones the earlier."""
    bound = select(gap.copy(), gap.size - n_left)
    ties = n_left
    for i in range(gap.size):
        left[i] = gap[i] > bound
        ties -= left[i]
    for i in range(gap.size):
        if ties == 0:
            break
        if gap[i] == bound:
            left[i] = True
            ties -= 1


@compiled(types.float64(given(types.float64), given(types.float64), _F32_OUT), lanes=True)
def direction(total: np.ndarray, half: np.ndarray, w: np.ndarray) -> float:
    """Write left centre minus right centre, both unit; returns the sum of similarities of all rows to theirs."""
    left, right = 0.0, 0.0
    for j in range(total.size):
        left += half[j] * half[j]
        right += (total[j] - half[j]) ** 2
    left, right = np.sqrt(left), np.sqrt(right)
    by_left = 1.0 / left if left > 0 else 0.0
    by_right = 1.0 / right if right > 0 else 0.0
    for j in range(total.size):
        w[j] = half[j] * by_left - (total[j] - half[j]) * by_right
    return left + right


@compiled(types.void(*_ROWS, I32, _INT, _KEY, _F32_OUT))
def seed_gap(
    X: np.ndarray, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, scale: np.ndarray,
    ids: np.ndarray, width: int, key: np.uint64, gap: np.ndarray,
) -> None:  # fmt: skip
    """Write how much nearer each row is to the one than to the other of two rows drawn as seeds."""
    gap[:] = 0.0
    plus = np.ones(1, np.int8)
    first = first_seed(scale, ids, key)
    if first < 0:
        return
    centre = np.zeros(width, np.float64)
    add_rows(X, indptr, indices, data, scale, ids[first : first + 1], plus, centre)
    dots(X, indptr, indices, data, scale, ids, centre.astype(np.float32), gap)
    second = second_seed(scale, ids, gap, key)
    if second < 0:
        return
    centre[:] = 0.0
    add_rows(X, indptr, indices, data, scale, ids[second : second + 1], plus, centre)
    other = np.empty(ids.size, np.float32)
    dots(X, indptr, indices, data, scale, ids, centre.astype(np.float32), other)
    for i in range(ids.size):
        gap[i] -= other[i]


@compiled(types.void(*_ROWS, I32, _INT, _INT, _KEY, _REAL, _INT, _SIDES))
def split_rows(
    X: np.ndarray, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, scale: np.ndarray,
    ids: np.ndarray, width: int, n_left: int, key: np.uint64, tol: float, max_iter: int, left: np.ndarray,
) -> None:  # fmt: skip
    """Balanced spherical 2-means of the rows in `ids`: marks the `n_left` rows of the left side."""
    n = ids.size
    gap, w = np.empty(n, np.float32), np.empty(width, np.float32)
    fresh, moves = np.empty(n, np.bool_), np.ones(n, np.int8)
    total, half = np.zeros(width, np.float64), np.zeros(width, np.float64)
    seed_gap(X, indptr, indices, data, scale, ids, width, key, gap)
    choose_left(gap, n_left, left)
    add_rows(X, indptr, indices, data, scale, ids, moves, total)
    for i in range(n):
        moves[i] = left[i]
    add_rows(X, indptr, indices, data, scale, ids, moves, half)
    before = -np.inf
    for _ in range(max_iter):
        now = direction(total, half, w) / n
        if now - before < tol:
            break
        before = now
        dots(X, indptr, indices, data, scale, ids, w, gap)
        choose_left(gap, n_left, fresh)
        moved = 0
        for i in range(n):
            moves[i] = np.int8(fresh[i]) - np.int8(left[i])
            moved += moves[i] != 0
            left[i] = fresh[i]
        if moved == 0:
            break
        add_rows(X, indptr, indices, data, scale, ids, moves, half)


@compiled(types.void(_I32_OUT, given(types.boolean)))
def part(ids: np.ndarray, left: np.ndarray) -> None:
    """Move the rows marked left to the front; both sides keep their order."""
    right = np.empty(ids.size, np.int32)
    n_left, n_right = 0, 0
    for i in range(ids.size):
        if left[i]:
            ids[n_left] = ids[i]
            n_left += 1
        else:
            right[n_right] = ids[i]
            n_right += 1
    ids[n_left:] = right[:n_right]


@compiled(types.int64(*_ROWS, I32, _I32_OUT, _I64_OUT, _I32_OUT, _F32_OUT))
def pack_rows(
    X: np.ndarray, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, scale: np.ndarray,  # noqa: ARG001
    ids: np.ndarray, number: np.ndarray, to_indptr: np.ndarray, to_indices: np.ndarray, to_data: np.ndarray,
) -> int:  # fmt: skip
    """Copy sparse rows, scaled to length 1, with the features they use numbered from 0; returns how many those are.

    `number` holds -1 for every feature, before and after.
    """
    entries, width = 0, 0
    to_indptr[0] = 0
    for i in range(ids.size):
        row = ids[i]
        for entry in range(indptr[row], indptr[row + 1]):
            feature = indices[entry]
            if number[feature] < 0:
                number[feature] = width
                width += 1
            to_indices[entries] = number[feature]
            to_data[entries] = data[entry] * scale[row]
            entries += 1
        to_indptr[i + 1] = entries
    for i in range(ids.size):
        row = ids[i]
        for entry in range(indptr[row], indptr[row + 1]):
            number[indices[entry]] = -1
    return width


@compiled(types.void(*_ROWS, _I32_OUT, _INT, _INT, _INT, _KEY, _REAL, _INT, _I32_OUT))
def split_subtree(
    X: np.ndarray, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, scale: np.ndarray,
    ids: np.ndarray, width: int, first: int, k: int, key: np.uint64, tol: float, max_iter: int, clusters: np.ndarray,
) -> None:  # fmt: skip
    """Split the rows in `ids` into clusters first..first+k, all the way down, and write each row's cluster.

    Sparse rows are copied at each node with that node's own feature numbers: the centres then have few entries and
    stay in the nearest cache.
    """
    entries, size = 0, 0
    if indptr.size:
        size = ids.size
        for i in range(size):
            entries += indptr[ids[i] + 1] - indptr[ids[i]]
    number = np.full(width if size else 0, -1, np.int32)
    to_indptr, to_indices, to_data = (
        np.empty(size + 1, np.int64),
        np.empty(entries, np.int32),
        np.empty(entries, np.float32),
    )
    ones, counted = np.ones(size, np.float32), np.arange(size).astype(np.int32)
    left = np.empty(ids.size, np.bool_)
    stack = [(0, ids.size, first, k)]
    while len(stack) > 0:
        start, end, leaf, leaves = stack.pop()
        here, sides, n = ids[start:end], left[start:end], end - start
        if leaves == 1:
            for i in range(n):
                clusters[here[i]] = leaf
            continue
        k_left = leaves // 2
        n_left = n * k_left // leaves
        seed = node_key(key, leaf, leaves)
        if size:
            used = pack_rows(X, indptr, indices, data, scale, here, number, to_indptr, to_indices, to_data)
            split_rows(
                X, to_indptr[: n + 1], to_indices, to_data, ones, counted[:n],
                used, n_left, seed, tol, max_iter, sides,
            )  # fmt: skip
        else:
            split_rows(X, indptr, indices, data, scale, here, width, n_left, seed, tol, max_iter, sides)
        part(here, sides)
        stack.append((start + n_left, end, leaf + k_left, leaves - k_left))
        stack.append((start, start + n_left, leaf, k_left))

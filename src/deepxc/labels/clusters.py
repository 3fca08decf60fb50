"""Balanced clusters of labels: recursive 2-means on cosine similarity, to any number of clusters.

Near the root a split is one large problem and its rows are shared out over threads; from there on there are many
small ones, and each thread takes whole subtrees, whose rows then stay in its cache. Rows are never copied as a whole:
a node is a run of row numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepxc.errors import UserError
from deepxc.labels.blocks import Workers
from deepxc.labels.row_set import RowSet

if TYPE_CHECKING:
    from scipy import sparse

_SUBTREE = (1 << 17, 1 << 20)  # least and most entries of a subtree that one thread takes on alone (4 MiB)
_SUBTREES = 64  # and between those, a share of the whole, so that there are subtrees for all


def balanced_clusters(
    vectors: sparse.csr_matrix | np.ndarray,
    n_clusters: int,
    *,
    seed: int = 0,
    tol: float = 1e-4,
    max_iter: int = 50,
    threads: int | None = None,
) -> np.ndarray:
    """Cut the rows into clusters of similar rows whose sizes differ by at most one.

    A node of n rows that shall become k clusters is cut into two sides by spherical 2-means, the sizes of the sides in
    proportion to floor(k/2) and the rest, and so on down. Two centres are drawn as in k-means++; each round ranks the
    rows by how much nearer they are to the left centre. Lengths of rows do not matter; rows of zeros fill up either
    side. Numbers of clusters follow the tree: with k a power of 2, clusters 2i and 2i+1 are siblings.

    Args:
        vectors: One row a label: sparse (CSR) or dense. A dense float32 array is used as it is, mapped files included.
        n_clusters: From 1 to the number of rows.
        seed: Same seed, same clusters, whatever the number of threads.
        tol: A split ends when a round gains less than this in mean similarity to the own centre.
        max_iter: Most rounds a split.
        threads: None for every core.

    Returns:
        The cluster of each row, int32.

    Raises:
        UserError: There are fewer rows than clusters, or a row holds NaN or infinity.
    """
    n = vectors.shape[0]
    if not 1 <= n_clusters <= n:
        raise UserError(
            f"{n_clusters} clusters of {n} labels", where="n_clusters", remedy=f"Give a number from 1 to {max(n, 1)}"
        )
    with Workers(threads) as workers:
        rows = RowSet.of(vectors, workers)
        key = np.uint64(np.random.default_rng(seed).integers(1 << 63))
        return _grow(rows, n_clusters, key, tol, max_iter, workers)


def _grow(rows: RowSet, n_clusters: int, key: np.uint64, tol: float, max_iter: int, workers: Workers) -> np.ndarray:
    from deepxc.labels.kernels.clusters import node_key, part, split_subtree

    ids = np.arange(rows.size, dtype=np.int32)
    clusters = np.zeros(rows.size, np.int32)
    small = np.clip(rows.entries(ids) // _SUBTREES, *_SUBTREE)
    large, subtrees = [(0, rows.size, 0, n_clusters)], []
    while large:
        start, end, first, k = large.pop()
        here = ids[start:end]
        if k == 1 or rows.entries(here) <= small:
            subtrees.append((start, end, first, k))
            continue
        k_left = k // 2
        n_left = (end - start) * k_left // k
        part(here, _split(rows, here, n_left, node_key(key, first, k), tol, max_iter, workers))
        large.append((start + n_left, end, first + k_left, k - k_left))
        large.append((start, start + n_left, first, k_left))

    def finish(subtree: tuple[int, int, int, int]) -> None:
        start, end, first, k = subtree
        split_subtree(*rows.arrays, ids[start:end], rows.width, first, k, key, tol, max_iter, clusters)

    workers.map(finish, subtrees)
    return clusters


def _split(
    rows: RowSet, ids: np.ndarray, n_left: int, key: np.uint64, tol: float, max_iter: int, workers: Workers
) -> np.ndarray:
    """The rows of the left side: what `split_rows` does, with the passes over rows shared out over threads."""
    from deepxc.labels.kernels.clusters import choose_left, direction, first_seed, second_seed

    left, fresh = np.zeros(len(ids), np.bool_), np.zeros(len(ids), np.bool_)
    gap = np.zeros(len(ids), np.float32)
    first = first_seed(rows.scale, ids, key)
    if first >= 0:
        gap = rows.dots(ids, rows.sums(ids[[first]], None, workers).astype(np.float32), workers)
        second = second_seed(rows.scale, ids, gap, key)
        if second >= 0:
            gap -= rows.dots(ids, rows.sums(ids[[second]], None, workers).astype(np.float32), workers)
    choose_left(gap, n_left, left)
    total = rows.sums(ids, None, workers)
    half = rows.sums(ids, left.astype(np.int8), workers)
    w = np.empty(rows.width, np.float32)
    before = -np.inf
    for _ in range(max_iter):
        now = direction(total, half, w) / len(ids)
        if now - before < tol:
            break
        before = now
        choose_left(rows.dots(ids, w, workers), n_left, fresh)
        moves = fresh.astype(np.int8) - left.astype(np.int8)
        if not moves.any():
            break
        half += rows.sums(ids, moves, workers)
        left, fresh = fresh, left
    return left

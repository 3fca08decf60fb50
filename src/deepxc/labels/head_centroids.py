"""Several centres for labels of many meanings: spherical k-means over the texts of each frequent label.

The mean of a frequent label lies between its meanings and near none of them; an index that holds a centre for each
meaning finds the label from all (DeepXML, appendix A.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from deepxc.errors import DataError, UserError
from deepxc.labels.blocks import Workers
from deepxc.labels.heads import head_labels
from deepxc.labels.row_set import RowSet
from deepxc.labels.weighted_sums import unit_rows, weighted_sums

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

_ROWS = 4096  # texts whose similarities to all centres are held at once
_SAME = 0.999999  # texts as similar as this count as equal


class HeadCentroids(NamedTuple):
    """Centres of frequent labels; row `i` of `vectors` stands for label `labels[i]`."""

    vectors: sparse.csr_matrix | np.ndarray
    labels: np.ndarray


def head_centroids(
    Y: sparse.csr_matrix,
    X: sparse.csr_matrix | np.ndarray,
    *,
    threshold: int,
    n_centres: int = 300,
    seed: int = 0,
    max_iter: int = 10,
    threads: int | None = None,
) -> HeadCentroids:
    """Unit-length k-means centres of every label with at least `threshold` train texts, to add to its mean.

    Seeds are drawn as in k-means++, each text by its distance from the seeds so far; Lloyd steps on cosine similarity
    then move them. A label with fewer than `n_centres` different texts has one centre for each.

    Args:
        Y: Sparse label matrix, texts x labels.
        X: Features of the same texts, sparse or dense.
        threshold: Labels with at least this many texts get centres.
        n_centres: Centres a label.
        seed: Same seed, same centres, whatever the number of threads.
        max_iter: Most Lloyd steps.
        threads: None for every core.
    """
    if n_centres < 1:
        raise UserError(f"{n_centres} centres", where="n_centres", remedy="Give at least 1")
    if Y.shape[0] != X.shape[0]:
        raise DataError(f"{Y.shape[0]} rows of labels for {X.shape[0]} rows of features")
    by_label = sparse.csc_matrix(Y)
    heads = head_labels(np.diff(by_label.indptr), threshold=threshold)
    source = X if isinstance(X, np.ndarray) else sparse.csr_matrix(X, dtype=np.float32)
    parts, owners = [], [np.empty(0, np.int32)]
    with Workers(threads) as workers, _one_blas_thread():
        for label in heads.tolist():
            texts = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
            rows = _unit_rows(source, np.sort(texts))
            centres = _k_means(rows, n_centres, np.random.default_rng([seed, label]), max_iter, workers)
            parts.append(centres)
            owners.append(np.full(centres.shape[0], label, np.int32))
    labels = np.concatenate(owners)
    if not isinstance(X, np.ndarray):
        empty = sparse.csr_matrix((0, X.shape[1]), dtype=np.float32)
        return HeadCentroids(sparse.csr_matrix(sparse.vstack([empty, *parts], format="csr")), labels)
    return HeadCentroids(np.concatenate([np.empty((0, X.shape[1]), np.float32), *parts]), labels)


def _one_blas_thread() -> AbstractContextManager:
    # Our own threads share the rows out: nested ones would fight over the cores, and change how BLAS rounds.
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")


def _unit_rows(source: sparse.csr_matrix | np.ndarray, texts: np.ndarray) -> sparse.csr_matrix | np.ndarray:
    if isinstance(source, np.ndarray):
        rows = np.ascontiguousarray(source[texts], dtype=np.float32)
    else:
        rows = sparse.csr_matrix(source[texts])
    unit_rows(rows)
    return rows


def _k_means(
    rows: sparse.csr_matrix | np.ndarray, k: int, rng: np.random.Generator, max_iter: int, workers: Workers
) -> sparse.csr_matrix | np.ndarray:
    """At most `k` unit centres of unit rows."""
    if isinstance(rows, np.ndarray):
        return _move_centres(rows, _nearest_seed(rows, k, rng, workers), max_iter, workers)
    # The texts of one label use few of all features: the centres are dense over those alone.
    used, columns = np.unique(rows.indices, return_inverse=True)
    local = sparse.csr_matrix(
        (rows.data, columns.astype(np.int32), rows.indptr), shape=(rows.shape[0], max(len(used), 1))
    )
    found = sparse.csr_matrix(_move_centres(local, _nearest_seed(local, k, rng, workers), max_iter, workers))
    return sparse.csr_matrix(
        (found.data, used[found.indices].astype(np.int32), found.indptr), shape=(found.shape[0], rows.shape[1])
    )


def _nearest_seed(
    rows: sparse.csr_matrix | np.ndarray, k: int, rng: np.random.Generator, workers: Workers
) -> np.ndarray:
    """Draw at most `k` seeds as in k-means++; returns the nearest seed of each row."""
    row_set = RowSet.of(rows, workers)
    ids = np.arange(row_set.size, dtype=np.int32)
    nearest, best = np.zeros(len(ids), np.int64), np.full(len(ids), -1.0, np.float32)
    weight = (row_set.scale > 0).astype(np.float64)
    for seed in range(k):
        reach = np.cumsum(weight)
        if reach[-1] <= 0:
            break
        drawn = ids[[np.searchsorted(reach, rng.random() * reach[-1], side="right")]]
        similarity = row_set.dots(ids, row_set.sums(drawn, None, workers).astype(np.float32), workers)
        closer = similarity > best
        nearest[closer], best[closer] = seed, similarity[closer]
        weight = np.where((row_set.scale > 0) & (best < _SAME), 1.0 - best.astype(np.float64), 0.0)
    return nearest


def _move_centres(
    rows: sparse.csr_matrix | np.ndarray, nearest: np.ndarray, max_iter: int, workers: Workers
) -> sparse.csr_matrix | np.ndarray:
    """Lloyd's steps; a centre that loses all its rows is dropped."""
    centres = _centres(rows, nearest, workers)
    for _ in range(max_iter):
        dense = np.ascontiguousarray((centres if isinstance(centres, np.ndarray) else centres.toarray()).T)
        moved = np.concatenate(
            workers.map(lambda block, dense=dense: np.argmax(rows[block] @ dense, axis=1), _slices(rows.shape[0]))
        )
        if np.array_equal(moved, nearest):
            break
        centres = _centres(rows, moved, workers)
        nearest = np.searchsorted(np.unique(moved), moved)  # numbers without the clusters that emptied
    return centres


def _centres(
    rows: sparse.csr_matrix | np.ndarray, nearest: np.ndarray, workers: Workers
) -> sparse.csr_matrix | np.ndarray:
    _, cluster = np.unique(nearest, return_inverse=True)
    members = sparse.csr_matrix((np.ones(len(cluster), np.float32), (cluster, np.arange(len(cluster)))))
    centres = weighted_sums(members, rows, workers.count)
    unit_rows(centres, workers.count)
    return centres


def _slices(n: int) -> Iterator[slice]:
    return (slice(a, min(a + _ROWS, n)) for a in range(0, n, _ROWS))

"""Head labels, the frequent few, set apart from the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from deepxc.errors import UserError
from deepxc.labels.clusters import balanced_clusters

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def head_labels(frequencies: ArrayLike, *, threshold: float | None = None, count: int | None = None) -> np.ndarray:
    """The ids of the most frequent labels, ascending.

    Args:
        frequencies: Train texts per label.
        threshold: All labels that occur at least this often.
        count: This many labels; of equally frequent ones the lower id first. Give either, not both.
    """
    values = np.asarray(frequencies)
    if (threshold is None) == (count is None):
        raise UserError("head labels need either threshold= or count=", remedy="Give one of the two")
    if threshold is not None:
        return np.flatnonzero(values >= threshold)
    assert count is not None
    if not 0 <= count <= len(values):
        raise UserError(
            f"{count} head labels of {len(values)} labels", where="count", remedy=f"Give 0 to {len(values)}"
        )
    return np.sort(np.argsort(-values.astype(np.float64), kind="stable")[:count])


def clusters_with_heads(
    vectors: sparse.csr_matrix | np.ndarray,
    n_clusters: int,
    heads: np.ndarray,
    *,
    seed: int = 0,
    tol: float = 1e-4,
    max_iter: int = 50,
    threads: int | None = None,
) -> np.ndarray:
    """Balanced clusters of the labels that are not heads, and one cluster for each head alone.

    Args:
        vectors: One row a label, sparse or dense.
        n_clusters: Clusters of the other labels; the heads come on top of them.
        heads: Ids of the head labels, each once.
        seed: See `balanced_clusters`, as for the rest.
        tol: Least gain in mean similarity for another round.
        max_iter: Most rounds a split.
        threads: None for every core.

    Returns:
        The cluster of each label: 0 to n_clusters - 1 for the others, then one number a head in the order of ids.
    """
    n_labels = vectors.shape[0]
    chosen = np.unique(np.asarray(heads, dtype=np.int64))
    if len(chosen) != len(heads) or (len(chosen) and (chosen[0] < 0 or chosen[-1] >= n_labels)):
        raise UserError(
            f"head labels repeat or lie outside the {n_labels} labels",
            where="heads",
            remedy=f"Give distinct ids from 0 to {n_labels - 1}",
        )
    rest = np.setdiff1d(np.arange(n_labels), chosen, assume_unique=True)
    clusters = np.empty(n_labels, np.int32)
    clusters[chosen] = n_clusters + np.arange(len(chosen))
    others = vectors
    if len(chosen):
        others = vectors[rest] if isinstance(vectors, np.ndarray) else sparse.csr_matrix(vectors[rest])
    clusters[rest] = balanced_clusters(others, n_clusters, seed=seed, tol=tol, max_iter=max_iter, threads=threads)
    return clusters

"""Label centroids: each label as the sum or mean of the features of its train texts."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import sparse

from deepxc.errors import DataError, UserError
from deepxc.labels.weighted_sums import unit_rows, weighted_sums


def label_centroids(
    Y: sparse.csr_matrix,
    X: sparse.csr_matrix | np.ndarray,
    *,
    how: Literal["sum", "mean"] = "sum",
    normalise: bool = True,
    threads: int | None = None,
) -> sparse.csr_matrix | np.ndarray:
    """One vector a label: the sum or mean of the rows of `X` that carry it, weighted by `Y`.

    A label without train texts has a row of zeros.

    Args:
        Y: Sparse label matrix, texts x labels.
        X: Features of the same texts, sparse or dense.
        how: `sum`, or `mean`, which divides by the label's weight in `Y`. Of no effect where `normalise` is on.
        normalise: Scale each centroid to length 1.
        threads: None for every core.

    Returns:
        Labels x features, float32: sparse (CSR) for sparse features, else dense.
    """
    if how not in {"sum", "mean"}:
        raise UserError(f"no centroid is called {how!r}", where="how", remedy="Give 'sum' or 'mean'")
    if Y.shape[0] != X.shape[0]:
        raise DataError(f"{Y.shape[0]} rows of labels for {X.shape[0]} rows of features")
    by_label = sparse.csr_matrix(sparse.csr_matrix(Y, dtype=np.float32).T.tocsr())
    if how == "mean" and not normalise:
        mass = np.asarray(by_label.sum(axis=1), dtype=np.float64).ravel()
        share = np.divide(1.0, mass, out=np.zeros_like(mass), where=mass != 0)
        by_label.data *= np.repeat(share, np.diff(by_label.indptr)).astype(np.float32)
    centroids = weighted_sums(by_label, X, threads)
    if normalise:
        unit_rows(centroids, threads)
    return centroids

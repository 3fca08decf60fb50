"""Label matrices of ones, and their columns renumbered: what every surrogate is made of."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def ones(Y: sparse.csr_matrix) -> sparse.csr_matrix:
    """The same labels, each with weight 1; stored zeros, which are no labels, are left out."""
    given = sparse.csr_matrix(Y)
    copy = sparse.csr_matrix(
        ((given.data != 0).astype(np.float32), given.indices.copy(), given.indptr.copy()), shape=given.shape
    )
    copy.eliminate_zeros()
    copy.sum_duplicates()
    copy.data[:] = 1
    return copy


def renumbered(Y: sparse.csr_matrix, columns: np.ndarray, width: int) -> sparse.csr_matrix:
    """Each text has column `columns[l]` if it has a label l; -1 leaves a label out.

    Args:
        Y: Labels of ones, texts x labels.
        columns: New column of each label.
        width: How many new columns there are.
    """
    places = columns[Y.indices]
    kept = places >= 0
    bounds = np.concatenate(([0], np.cumsum(kept)))[Y.indptr]
    found = sparse.csr_matrix(
        (np.ones(int(bounds[-1]), np.float32), places[kept].astype(np.int32), bounds), shape=(Y.shape[0], width)
    )
    found.sum_duplicates()
    found.data[:] = 1
    return found

"""A short name for the content of a split, so that a model can say what it was trained on."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from scipy import sparse

    from deepxc.data.dataset import Split


def describe(split: Split) -> dict[str, Any]:
    """Sizes and a fingerprint: equal texts, features and labels in the same order give the same one."""
    digest = hashlib.sha256()
    for array in _arrays(split.Y):
        digest.update(np.ascontiguousarray(array).data)
    if split.texts is not None:
        digest.update("\n".join(split.texts).encode("utf-8", "surrogatepass"))
    else:
        assert split.X is not None
        for array in _arrays(split.X):
            digest.update(np.ascontiguousarray(array).data)
    return {
        "fingerprint": digest.hexdigest()[:16],
        "texts": len(split),
        "labels": len(split.labels),
        "pairs": int(split.Y.nnz),
    }


def _arrays(matrix: sparse.csr_matrix | np.ndarray) -> list[np.ndarray]:
    """The arrays that hold a matrix, with index widths that do not depend on how it was made."""
    if isinstance(matrix, np.ndarray):
        return [matrix]
    return [matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data]

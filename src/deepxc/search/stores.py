"""Where an approximate index keeps the vectors that its candidates are scored from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import faiss

if TYPE_CHECKING:
    import numpy as np

Store = Literal["float32", "float16", "int8"]


def make_store(vectors: np.ndarray, store: Store) -> faiss.Index:
    """All vectors in the given precision; scores by inner product.

    float16 keeps three significant digits at half the memory; int8 (a range per dimension, learnt here) two at a
    quarter.
    """
    dim = vectors.shape[1]
    if store == "float32":
        index = faiss.IndexFlatIP(dim)
    else:
        types = {"float16": faiss.ScalarQuantizer.QT_fp16, "int8": faiss.ScalarQuantizer.QT_8bit}
        index = faiss.IndexScalarQuantizer(dim, types[store], faiss.METRIC_INNER_PRODUCT)
        index.train(vectors)
    index.add(vectors)
    return index

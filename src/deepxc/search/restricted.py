"""Search among some of the labels: where few are allowed each of them is scored, so that none is missed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from deepxc.search.exact import ExactIndex
from deepxc.search.posting_lists import PostingLists

if TYPE_CHECKING:
    from deepxc.search.protocol import VectorIndex

SCORE_EACH = 20_000
"""Allowed vectors up to which each is scored instead of searched for."""

Vectors = Any
"""A CSR matrix or an array of rows."""


def exact_index(vectors: Vectors) -> PostingLists | ExactIndex:
    """An index by inner products that misses nothing, for sparse or dense vectors."""
    if sparse.issparse(vectors):
        return PostingLists(vectors, budget=0)
    return ExactIndex.build(vectors, metric="inner_product")


def search_allowed(
    index: VectorIndex | PostingLists,
    vectors: Vectors,
    queries: Vectors,
    k: int,
    allowed: np.ndarray | None,
    *,
    threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """The k best allowed vectors of each query; where many but not all are allowed, others may be among the answers.

    Args:
        index: Index over all vectors.
        vectors: The vectors themselves.
        queries: Sparse or dense, as the index takes them.
        k: Vectors wanted.
        allowed: True for each vector that may be an answer; None allows all.
        threads: Threads for a batch.
    """
    size = vectors.shape[0]
    search: Any = index.search
    if allowed is None:
        return search(queries, min(k, size), threads=threads)
    rows = np.flatnonzero(allowed)
    if len(rows) > SCORE_EACH:
        wider = min(size, k * size // len(rows) + k)
        return search(queries, wider, threads=threads)
    if len(rows) == 0:
        return np.empty((queries.shape[0], 0), np.int64), np.empty((queries.shape[0], 0), np.float32)
    few: Any = exact_index(vectors[rows])
    ids, scores = few.search(queries, min(k, len(rows)), threads=threads)
    return np.where(ids >= 0, rows[ids], -1), scores

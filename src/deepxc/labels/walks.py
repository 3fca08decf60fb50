"""The label graph by random walks with restart: which labels are reached from which, over the texts they share.

Averaging each centroid with those of its neighbours (`smooth`) gives labels with few texts a steadier place before
they are clustered (DeepXML, appendix A.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from deepxc.errors import UserError
from deepxc.labels.blocks import Workers, even_blocks
from deepxc.labels.weighted_sums import sparse_arrays, unit_rows, weighted_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

_BLOCK = 8192  # labels whose walks are held unpacked at once, per thread


def label_graph(
    Y: sparse.csr_matrix,
    *,
    steps: int = 50,
    restart: float = 0.2,
    top_k: int = 10,
    seed: int = 0,
    threads: int | None = None,
) -> sparse.csr_matrix:
    """The labels that random walks from each label visit most.

    One walk a label. Each step starts from the own label with probability `restart`, else from where the walk stands,
    goes to a random text of that label and on to a random label of that text, and counts a visit there. The weights in
    `Y` play no part. A label without texts has itself as its only neighbour.

    Args:
        Y: Sparse label matrix, texts x labels.
        steps: Visits a walk.
        restart: Probability of starting a step from the own label; from 0 to 1.
        top_k: Labels kept a row: the most visited (ties: lower id); the own label is one of them even if others were
            visited more.
        seed: Same seed, same graph, whatever the number of threads.
        threads: None for every core.

    Returns:
        Labels x labels, float32, sorted indices; each row adds up to 1.
    """
    _check(steps, restart, top_k)
    from deepxc.labels.kernels.walks import walk_labels

    texts = sparse.csr_matrix(Y)
    if not texts.data.all():  # an explicit zero is no label
        texts = texts.copy()
        texts.eliminate_zeros()
    by_label = sparse.csr_matrix(texts.T.tocsr())
    links = (*sparse_arrays(by_label)[:2], *sparse_arrays(texts)[:2])
    key = np.uint64(np.random.default_rng(seed).integers(1 << 63))
    n_labels = Y.shape[1]
    width = min(top_k, steps + 1, n_labels)

    def walk(block: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows = block[1] - block[0]
        sizes, labels = np.zeros(rows, np.int32), np.zeros((rows, width), np.int32)
        weights = np.zeros((rows, width), np.float32)
        walk_labels(*links, *block, steps, restart, key, sizes, labels, weights)
        used = np.arange(width) < sizes[:, None]
        return sizes, labels[used], weights[used]

    with Workers(threads) as workers:
        n_blocks = max(-(-n_labels // _BLOCK), min(64, n_labels))
        parts = workers.map(walk, even_blocks(np.arange(n_labels + 1), n_blocks))
    return _stack(parts, n_labels)


def smooth(
    centroids: sparse.csr_matrix | np.ndarray,
    graph: sparse.csr_matrix,
    *,
    normalise: bool = True,
    threads: int | None = None,
) -> sparse.csr_matrix | np.ndarray:
    """Each centroid as the mean of its neighbours', weighted by the label graph; unit length if `normalise`."""
    smoothed = weighted_sums(graph, centroids, threads)
    if normalise:
        unit_rows(smoothed, threads)
    return smoothed


def _check(steps: int, restart: float, top_k: int) -> None:
    if steps < 1:
        raise UserError(f"{steps} steps", where="steps", remedy="Give at least 1")
    if top_k < 1:
        raise UserError(f"{top_k} labels kept", where="top_k", remedy="Give at least 1")
    if not 0.0 <= restart <= 1.0:
        raise UserError(f"probability {restart}", where="restart", remedy="Give a number from 0 to 1")


def _stack(parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], n_labels: int) -> sparse.csr_matrix:
    sizes = np.concatenate([np.empty(0, np.int32), *(part[0] for part in parts)])
    labels = np.concatenate([np.empty(0, np.int32), *(part[1] for part in parts)])
    weights = np.concatenate([np.empty(0, np.float32), *(part[2] for part in parts)])
    indptr = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    return sparse.csr_matrix((weights, labels, indptr), shape=(n_labels, n_labels))

"""Four-bit codes: what a scan reads instead of the vectors, and the rotation that makes them accurate."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np

from deepxc.search.thread_limits import faiss_threads

_CENTRES = 16  # a code of four bits names one
_CODE_BYTES = 128
CODE_SAMPLE = 8192  # 512 vectors for each centre: more did not raise recall
_ROUNDS = 8


def dims_of_a_code(dim: int) -> int:
    """As few dimensions to a code as keep a vector's codes in 128 bytes: half a byte each."""
    return -(-dim // (2 * _CODE_BYTES))


def draw_rotation(dim: int, part: int, seed: int) -> faiss.LinearTransform:
    """A random rotation, into the next length that parts of `part` dimensions fill.

    Where a few directions hold most of the variance (spectral vectors), it spreads the variance over all codes: that
    took recall from 0.90 to 0.99 with codes of half the size. Where it is even already it costs nothing but its time.
    """
    out = -(-dim // part) * part
    turn = faiss.RandomRotationMatrix(dim, out)
    with faiss_threads(1):  # its orthogonalisation rounds differently on another number of threads
        turn.init(seed % (2**31 - 1))
    return turn


def sample(vectors: np.ndarray, count: int, seed: int) -> np.ndarray:
    """So many different vectors, drawn evenly, in their order; all of them where there are no more."""
    if len(vectors) <= count:
        return vectors
    rng = np.random.default_rng(seed)
    return vectors[np.sort(rng.choice(len(vectors), count, replace=False))]


def learn_codes(index: Any, rows: np.ndarray, seed: int) -> None:  # noqa: ANN401 - a FAISS index
    """Train an index over codes: each part's 16 centres are settled after few rounds.

    One thread: the hundreds of small clusterings take a second in all, and threads would mostly wait for each other.
    """
    rounds = index.pq.cp
    rounds.niter = _ROUNDS
    rounds.seed = seed % (2**31 - 1)
    rounds.min_points_per_centroid = 1
    rounds.max_points_per_centroid = CODE_SAMPLE // _CENTRES
    with faiss_threads(1):
        index.train(rows)

"""Labels hashed into buckets: MACH's task, and the sparse binary random projection of the label space.

Every label falls into a bucket that a 2-universal hash draws for it; a text has the buckets of its labels. One such
task teaches features. Several, each with a hash of its own, identify the labels: a label's score is the mean of the
scores of its buckets. With more than one hash a task every label is a sum of random unit vectors in the space of the
buckets, which is what the literature calls a random projection of the labels.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from deepxc.errors import DataError, UserError
from deepxc.labels.blocks import Workers, even_blocks
from deepxc.modules.surrogates.binary import ones, renumbered
from deepxc.modules.surrogates.sizes import surrogate_size

if TYPE_CHECKING:
    from scipy import sparse

    from deepxc.data.dataset import Split

logger = logging.getLogger(__name__)

_PRIME = (1 << 31) - 1  # a Mersenne prime above any label id; products of two residues fit into 64 bits
_BLOCKS = 64


def label_buckets(n_labels: int, n_buckets: int, seed: int, repetition: int = 0) -> np.ndarray:
    """The bucket of each label, int32: ((a l + b) mod p) mod B, with a and b drawn for seed and repetition.

    For any two labels the probability of one bucket is about 1 / B over the draws of a and b.
    """
    if n_buckets < 1:
        raise UserError(f"{n_buckets} buckets", where="n_buckets", remedy="Give at least 1")
    rng = np.random.default_rng([seed, repetition])
    a, b = int(rng.integers(1, _PRIME)), int(rng.integers(_PRIME))
    labels = np.arange(n_labels, dtype=np.uint64)
    return (((labels * np.uint64(a) + np.uint64(b)) % np.uint64(_PRIME)) % np.uint64(n_buckets)).astype(np.int32)


class LabelHashing:
    """The buckets that a text's labels fall into.

    Args:
        n_buckets: Number of buckets; by default as many as label clusters would be.
        hashes: Buckets of each label: 1 in MACH.
        repetition: Which learner of an ensemble this is; each has hashes of its own.
    """

    def __init__(self, n_buckets: int | None = None, *, hashes: int = 1, repetition: int = 0) -> None:
        self.n_buckets = n_buckets
        self.hashes = hashes
        self.repetition = repetition

    def buckets(self, n_labels: int, seed: int) -> np.ndarray:
        """The buckets of each label, shape (hashes, labels); two of a label's may be the same."""
        if self.hashes < 1:
            raise UserError(f"{self.hashes} hashes", where="hashes", remedy="Give at least 1")
        count = self.size(n_labels)
        first = self.repetition * self.hashes
        return np.stack([label_buckets(n_labels, count, seed, first + i) for i in range(self.hashes)])

    def size(self, n_labels: int) -> int:
        """How many buckets there are for so many labels."""
        return surrogate_size(n_labels) if self.n_buckets is None else self.n_buckets

    def targets(self, split: Split, features: sparse.csr_matrix | np.ndarray, seed: int) -> sparse.csr_matrix:  # noqa: ARG002
        """The buckets of each text, texts x buckets."""
        Y = ones(split.Y)
        size = self.size(Y.shape[1])
        logger.info("surrogate task: %d buckets of %d labels, %d hashes", size, Y.shape[1], self.hashes)
        first, *others = [renumbered(Y, buckets, size) for buckets in self.buckets(Y.shape[1], seed)]
        for other in others:
            first = first.maximum(other)
        return ones(first)


def decode(
    bucket_scores: np.ndarray, buckets: np.ndarray, k: int, *, threads: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The k best labels by the mean score of their buckets, without an array of texts x labels.

    Args:
        bucket_scores: Scores of each repetition's buckets, shape (repetitions, texts, buckets).
        buckets: Buckets of each label in each repetition, shape (repetitions, labels) or (repetitions, hashes, labels).
        k: Labels wanted.
        threads: None for every core.

    Returns:
        Ids (int64, -1 where there are fewer labels than k) and scores (float32), best first, ties to the smaller id.
    """
    from deepxc.modules.surrogates.kernels_hashing import decode_rows

    scores, table, source = _prepared(bucket_scores, buckets)
    n = scores.shape[1]
    ids, best = np.empty((n, k), np.int64), np.empty((n, k), np.float32)

    def run(block: tuple[int, int]) -> None:
        part = slice(*block)
        decode_rows(scores, table, source, *block, ids[part], best[part])

    with Workers(threads) as workers:
        workers.map(run, even_blocks(np.arange(n + 1), _BLOCKS))
    return ids, best


def decode_candidates(bucket_scores: np.ndarray, buckets: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The mean bucket score of given labels of each text (`ids`, -1 for none, whose score is -inf)."""
    from deepxc.modules.surrogates.kernels_hashing import decode_given

    scores, table, source = _prepared(bucket_scores, buckets)
    out = np.empty(ids.shape, np.float32)
    decode_given(scores, table, source, np.ascontiguousarray(ids, np.int64), out)
    return out


def _prepared(bucket_scores: np.ndarray, buckets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores; one row of buckets a hash; and which repetition each of those rows belongs to."""
    scores = np.ascontiguousarray(bucket_scores, np.float32)
    table = np.asarray(buckets, np.int32)
    if scores.ndim != 3 or table.ndim not in {2, 3} or len(scores) != len(table):
        raise DataError(f"bucket scores of shape {scores.shape} for buckets of shape {table.shape}")
    hashes = 1 if table.ndim == 2 else table.shape[1]
    table = np.ascontiguousarray(table.reshape(-1, table.shape[-1]))
    if table.size and (table.min() < 0 or table.max() >= scores.shape[2]):
        raise DataError(f"buckets from {table.min()} to {table.max()} but {scores.shape[2]} scores a text")
    return scores, table, np.repeat(np.arange(len(scores), dtype=np.int64), hashes)

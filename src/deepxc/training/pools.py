"""The labels that a batch is trained against: its positives, hard labels of its texts, and random ones.

All texts of a batch share one pool, so a label that is positive for one is a negative for the others. Every positive
of every text of the batch is in the pool and known as such: no text meets its own label as a negative.

The softmax over a pool stands for the softmax over all labels. Given the batch, positives and hard labels are in the
pool for certain, and any other label with a probability Q that the draws determine: taking log Q off the logits makes
the sum over the pool an unbiased estimate of the sum over all labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from deepxc.errors import UserError
from deepxc.training.losses import Coordinates

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True)
class Pool:
    """The distinct labels of a batch: first the positives, then hard labels, then random ones.

    Attributes:
        labels: Label rows, int64.
        positives: The cells (text of the batch, place in the pool) that are positive.
        log_q: Log-probability of each label to be in this pool, given the batch and its hard labels.
        counts: How many labels are positives, hard (and not positive), and random.
        shortlist: The cells of each text's own hard labels, where they were asked for.
    """

    labels: torch.Tensor
    positives: Coordinates
    log_q: torch.Tensor
    counts: tuple[int, int, int]
    shortlist: Coordinates | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> Pool:
        """The pool on another device."""
        shortlist = None if self.shortlist is None else self.shortlist.to(device)
        return Pool(self.labels.to(device), self.positives.to(device), self.log_q.to(device), self.counts, shortlist)


class PoolSampler:
    """Makes the pool of a batch.

    Args:
        Y: Labels of the texts, texts x labels; what is stored is positive.
        uniform: Draws (with replacement) of which every label is equally likely the result.
        unigram: Draws by frequency.
        power: Exponent of the frequency in the draws by frequency; a label without texts counts as one with one.
        largest: Most labels of a pool, unless the positives alone are more. Where it cuts, hard labels of lower ranks
            and random labels are left out, and `log_q` no longer tells the truth about them.
    """

    def __init__(
        self,
        Y: sparse.csr_matrix,
        *,
        uniform: int = 0,
        unigram: int = 0,
        power: float = 0.75,
        largest: int | None = None,
    ) -> None:
        if min(uniform, unigram) < 0:
            raise UserError("a number of draws is negative", where="uniform, unigram", remedy="Give 0 or more")
        self.n_labels = Y.shape[1]
        self.uniform, self.unigram, self.largest = uniform, unigram, largest
        self._indptr = Y.indptr.astype(np.int64, copy=False)
        self._indices = Y.indices.astype(np.int32, copy=False)
        self._place = np.full(self.n_labels, -1, np.int32)
        self._cumulated: np.ndarray | None = None
        missed = np.full(self.n_labels, uniform * np.log1p(-1 / max(2, self.n_labels)))
        if unigram:
            weight = np.maximum(np.bincount(self._indices, minlength=self.n_labels), 1.0) ** power
            weight /= weight.sum()
            self._cumulated = np.cumsum(weight)
            missed += unigram * np.log1p(-np.minimum(weight, 1 - 1e-12))
        with np.errstate(divide="ignore"):
            self._log_q = np.log(-np.expm1(missed)).astype(np.float32)

    def make(
        self,
        rows: np.ndarray,
        rng: np.random.Generator,
        hard: np.ndarray | None = None,
        *,
        own_shortlist: bool = False,
    ) -> Pool:
        """The pool of a batch.

        Args:
            rows: The batch, as rows of Y.
            rng: Where the draws come from.
            hard: Labels that each text of the batch might seem to have (batch x few, best first, -1 where fewer).
            own_shortlist: Also say where each text's own hard labels are in the pool.
        """
        from deepxc.training.kernels_pools import forget, gather_pool, locate

        rows = np.asarray(rows, np.int64)
        hard = np.empty((len(rows), 0), np.int32) if hard is None else np.ascontiguousarray(hard, np.int32)
        n_cells = int((self._indptr[rows + 1] - self._indptr[rows]).sum())
        drawn = self._draw(rng)
        room = min(self.n_labels, n_cells + hard.size + len(drawn))
        if self.largest is not None:
            room = max(min(room, self.largest), min(n_cells, self.n_labels))
        pool = np.empty(room, np.int64)
        cells = np.empty((2, n_cells), np.int64)
        positives, with_hard, count = gather_pool(
            self._indptr, self._indices, rows, hard, drawn, self._place, pool, *cells
        )
        own = None
        if own_shortlist:
            found = np.empty((2, hard.size), np.int64)
            found = found[:, : locate(hard, self._place, count, *found)]
            own = Coordinates(*torch.from_numpy(found))
        pool = pool[:count]
        forget(pool, self._place)
        log_q = np.zeros(count, np.float32)
        log_q[with_hard:] = self._log_q[pool[with_hard:]]
        return Pool(
            torch.from_numpy(pool),
            Coordinates(*torch.from_numpy(cells)),
            torch.from_numpy(log_q),
            (positives, with_hard - positives, count - with_hard),
            own,
        )

    def _draw(self, rng: np.random.Generator) -> np.ndarray:
        drawn = rng.integers(self.n_labels, size=self.uniform, dtype=np.int32)
        if self._cumulated is None:
            return drawn
        by_frequency = np.searchsorted(self._cumulated, rng.random(self.unigram), "right")
        return np.concatenate([drawn, np.minimum(by_frequency, self.n_labels - 1).astype(np.int32)])

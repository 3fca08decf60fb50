"""The most frequent labels alone, as a task small enough for one output layer (DeepXML, A.3)."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

import numpy as np

from deepxc.errors import UserError
from deepxc.labels.heads import head_labels
from deepxc.modules.surrogates.binary import ones, renumbered

if TYPE_CHECKING:
    from scipy import sparse

    from deepxc.data.dataset import Split

logger = logging.getLogger(__name__)

# The paper gives the range and says that larger problems want the smaller share; where it starts to fall is ours.
_SHARES = (0.2, 0.05)
_LABELS = (10_000, 1_000_000)


class LabelSelection:
    """The labels with most train texts; the task's columns are those labels in the order of their ids.

    Args:
        share: Share of the labels; by default from 0.2 (up to 10,000 labels) down to 0.05 (a million and more).
        count: Number of labels. Give either, not both.
    """

    def __init__(self, share: float | None = None, count: int | None = None) -> None:
        self.share = share
        self.count = count

    def targets(self, split: Split, features: sparse.csr_matrix | np.ndarray, seed: int) -> sparse.csr_matrix:  # noqa: ARG002
        """The selected labels of each text, texts x selected."""
        Y = ones(split.Y)
        frequencies = np.bincount(Y.indices, minlength=Y.shape[1])
        used = int(np.count_nonzero(frequencies))
        size = min(self._size(Y.shape[1]), used)
        logger.info("surrogate task: the %d most frequent of %d labels", size, used)
        chosen = head_labels(frequencies, count=size)
        columns = np.full(Y.shape[1], -1, np.int32)
        columns[chosen] = np.arange(size)
        return renumbered(Y, columns, size)

    def _size(self, n_labels: int) -> int:
        if self.count is not None:
            if self.share is not None or self.count < 1:
                raise UserError(
                    f"share {self.share} and count {self.count}", where="count", remedy="Give one: a count of 1 or more"
                )
            return self.count
        share = _share(n_labels) if self.share is None else self.share
        if not 0 < share <= 1:
            raise UserError(f"share {share}", where="share", remedy="Give a number above 0, up to 1")
        return math.ceil(share * n_labels)


def _share(n_labels: int) -> float:
    """Between the two sizes, the share falls evenly with the logarithm of the number of labels."""
    low, high = map(math.log, _LABELS)
    place = min(max((math.log(max(n_labels, 1)) - low) / (high - low), 0), 1)
    return _SHARES[0] + place * (_SHARES[1] - _SHARES[0])

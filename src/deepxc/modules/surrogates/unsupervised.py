"""No task at all: the encoder keeps the features that it starts with, token vectors learnt without labels, say."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from scipy import sparse

    from deepxc.data.dataset import Split


class Unsupervised:
    """Nothing is trained in module I."""

    def targets(self, split: Split, features: sparse.csr_matrix | np.ndarray, seed: int) -> None:  # noqa: ARG002
        """None: there is nothing to train on."""
        return

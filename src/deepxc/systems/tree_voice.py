"""The voice that speaks last: label trees over the tokens, asked about the candidates that all others put first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepxc.predict.stages import stage

if TYPE_CHECKING:
    from scipy import sparse

    from deepxc.modules.classifiers.token_tree import TokenForest

TREE_CANDIDATES = 40
"""How many candidates the trees are asked about."""


def with_trees(
    forest: TokenForest,
    features: sparse.csr_matrix,
    ids: np.ndarray,
    scores: np.ndarray,
    weight: float,
    k: int,
    threads: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The k best candidates when the trees' probabilities have the given weight, and what was said before the rest."""
    from deepxc.predict.kernels_fusion import keep_best_of_mixed

    with stage("trees"):
        told = forest.probabilities(features, ids, threads=threads)
        best = (
            np.empty((len(ids), min(k, ids.shape[1])), np.int64),
            np.empty((len(ids), min(k, ids.shape[1])), np.float32),
        )
        keep_best_of_mixed(ids, scores, told, np.float32(weight), *best)
        return best

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
    with stage("trees"):
        told = forest.probabilities(features, ids, threads=threads)
        share = np.float32(weight)
        scores = np.where(ids >= 0, (1 - share) * scores + share * told, np.float32(-np.inf))
        order = np.lexsort((ids, -scores), axis=1)[:, :k]
        return np.take_along_axis(ids, order, 1), np.take_along_axis(scores, order, 1)

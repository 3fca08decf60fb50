"""Two views of the same texts: the encoder's dense features, and the sparse tokens that posting lists read."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse

from deepxc.errors import UserError

Reads = Literal["dense", "tokens"]


class Views(NamedTuple):
    """The same texts twice, row by row, for shortlisters that read both (`Hybrid`)."""

    dense: np.ndarray
    tokens: sparse.csr_matrix


Features = np.ndarray | sparse.csr_matrix | Views


def view(features: Features, reads: Reads) -> np.ndarray | sparse.csr_matrix:
    """The view that a shortlister reads, from both or from that one alone."""
    if isinstance(features, Views):
        return features.dense if reads == "dense" else features.tokens
    if sparse.issparse(features) == (reads == "dense"):
        wanted = "dense features" if reads == "dense" else "sparse token weights"
        raise UserError(
            f"this shortlister reads {wanted}, got {type(features).__name__}",
            where="features",
            remedy="Give that view, or both as Views(dense, tokens)",
        )
    return features


def dense(features: Features) -> np.ndarray:
    """The dense view, as float32."""
    return np.asarray(view(features, "dense"), np.float32)


def tokens(features: Features) -> sparse.csr_matrix:
    """The sparse view."""
    return sparse.csr_matrix(view(features, "tokens"), dtype=np.float32)


def row_count(features: Features) -> int:
    """How many texts there are."""
    return len(features.dense) if isinstance(features, Views) else features.shape[0]


def take(features: Features, start: int, stop: int) -> Features:
    """Some rows, of whichever views there are."""
    if isinstance(features, Views):
        return Views(features.dense[start:stop], sparse.csr_matrix(features.tokens[start:stop]))
    part = features[start:stop]
    return part if isinstance(part, np.ndarray) else sparse.csr_matrix(part)

"""The settings of DECAF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LARGEST_FANOUT = 1 << 17
"""Most clusters, as in the paper."""
LABELS_EACH = 2.25
"""Labels to a cluster, at least: with a power of two it gives every number of clusters that the paper names."""


@dataclass(frozen=True)
class DecafSettings:
    """The settings of `Decaf`; see its arguments."""

    dim: int
    start: str
    min_df: int
    ngrams: list
    ngram_min_df: int
    label_rows: bool
    document_rows: bool
    blocks: bool
    parts: Literal["both", "text", "refinement"]
    surrogate_epochs: int
    surrogate_rate: float
    surrogate_dropout: float
    clusters: int
    shortlist: Literal["clusters", "nearest", "tree", "none"]
    shortlist_epochs: int
    shortlist_rate: float
    beam: int
    recall: float
    lite: bool
    refinement: Literal["text", "random", "centroids"]
    text_share: float
    scale: float
    missed: bool
    random: int
    loss: Literal["softmax", "counts", "logistic"]
    epochs: int
    patience: int
    rate: float
    bias_rate: float
    token_rate: float
    batch: int
    dropout: float
    schedule: Literal["halving", "linear"]
    answers: Literal["product", "fused", "classifiers"]
    temperature: float
    nearest_weight: float
    told_texts: bool
    learned_texts: bool
    trees: int
    validation: float
    members: int

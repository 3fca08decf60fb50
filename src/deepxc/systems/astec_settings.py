"""The settings of Astec, and the sizes that go by the amount of data where a setting is 0."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

logger = logging.getLogger(__name__)

_VISITS = 400_000  # texts seen in all epochs, where the number of epochs goes by rule
_EPOCHS = (2, 8)
_BATCHES = 50  # at least so many an epoch, unless they get smaller than
_SMALLEST_BATCH = 32


@dataclass(frozen=True)
class AstecSettings:
    """The settings of `Astec`; see its arguments."""

    dim: int
    start: str
    activation: Literal["relu", "none"]
    min_df: int
    ngrams: list
    ngram_min_df: int
    label_rows: bool
    surrogate_epochs: int
    surrogate_rate: float
    clusters: int
    surrogate_dropout: float
    train_tokens: bool
    bound: float
    hard: int
    random: int
    every_label: bool
    own_shortlists: bool
    loss: Literal["softmax", "logistic"]
    epochs: int
    patience: int
    rate: float
    bias_rate: float
    token_rate: float
    scale: float
    batch: int
    dropout: float
    schedule: Literal["halving", "linear"]
    answers: Literal["shortlist", "fused", "classifiers"]
    temperature: float
    nearest_weight: float
    learned_texts: bool
    trees: int
    validation: float
    members: int
    reranker: bool


def epochs_for(n_texts: int, epochs: int) -> int:
    """As many as the setting says; by rule, fewer where there are more texts."""
    if epochs:
        return epochs
    fewest, most = _EPOCHS
    chosen = min(most, max(fewest, round(_VISITS / max(1, n_texts))))
    logger.info("%d epochs for %d texts", chosen, n_texts)
    return chosen


def batch_for(n_texts: int, batch: int) -> int:
    """The setting, or less where that left too few steps an epoch to learn anything."""
    chosen = min(batch, max(_SMALLEST_BATCH, n_texts // _BATCHES))
    if chosen < batch:
        logger.info("batches of %d, not %d, for %d texts", chosen, batch, n_texts)
    return chosen

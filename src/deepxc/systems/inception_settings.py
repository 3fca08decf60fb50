"""The settings of InceptionXML and InceptionXML+, and the fan-out where a setting is 0."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

logger = logging.getLogger(__name__)

_MOST_CLUSTERS = 1 << 17
_SHORTLISTED = (50, 800)  # clusters on a shortlist, at least and at most
_SHORTLISTED_SHARE = 40  # one of so many clusters is on it, between those


@dataclass(frozen=True)
class InceptionSettings:
    """The settings of `InceptionXML`; see its arguments."""

    word_dim: int
    length: int
    channels: int
    attention: bool
    stop_words: list | str
    start: str
    min_df: int
    word_dropout: float
    conv_dropout: float
    bag: int
    conv_factor: float
    ngrams: list
    ngram_min_df: int
    label_rows: bool
    head: Literal["bounded", "free", "none"]
    loss: Literal["softmax", "logistic"]
    epochs: int
    patience: int
    rate: float
    bias_rate: float
    token_rate: float
    encoder_rate: float
    scale: float
    batch: int
    dropout: float
    head_dropout: float
    schedule: Literal["one_cycle", "linear"]
    answers: Literal["fused", "classifiers"]
    temperature: float
    nearest_weight: float
    learned_texts: bool
    trees: int
    validation: float
    members: int


@dataclass(frozen=True)
class InceptionPlusSettings(InceptionSettings):
    """The settings of `InceptionXMLPlus`; see its arguments."""

    clusters: int
    cluster_size: int
    shortlist: int
    taught: int
    random: int
    own_shortlists: bool
    detached: float


def fan_out(n_labels: int, clusters: int, shortlist: int, cluster_size: int = 10) -> tuple[int, int]:
    """Clusters, and how many of them are on a shortlist: as set, or by rule where a setting is 0.

    The rule takes the largest power of two that leaves `cluster_size` labels to a cluster. The paper has ten (65,536
    clusters of 670,091 labels, 32,768 of 352,072), and shortlists of 800 clusters, one of 40 to 80.
    """
    if not clusters:
        room = max(1, n_labels // cluster_size)
        clusters = min(_MOST_CLUSTERS, 1 << (room.bit_length() - 1))
    clusters = min(clusters, n_labels)
    if not shortlist:
        fewest, most = _SHORTLISTED
        shortlist = min(most, max(fewest, clusters // _SHORTLISTED_SHARE))
    shortlist = min(shortlist, clusters)
    logger.info("%d clusters of %d labels, %d of them on a shortlist", clusters, n_labels, shortlist)
    return clusters, shortlist

"""The settings of DEXA, and what follows from them for the parts."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from deepxc.modules.encoders.dense import DenseFeatures
from deepxc.modules.encoders.token_bag import TokenBag
from deepxc.modules.tables import RowTable
from deepxc.systems.presets import resolve
from deepxc.systems.training_rows import FEW_TEXTS
from deepxc.training.memory_bank import ClusterSchedule
from deepxc.training.optimisers import Group, Optimiser
from deepxc.training.siamese import SiameseTask

if TYPE_CHECKING:
    import torch

    from deepxc.data.dataset import Split
    from deepxc.modules.auxiliary import AuxiliaryVectors

logger = logging.getLogger(__name__)

_NO_DECAY = 2  # parameters of fewer dimensions (biases, layer norms) are not decayed


@dataclass(frozen=True)
class DexaSettings:
    """The settings of `Dexa`; see its arguments."""

    transformer: str
    length: int
    dim: int
    start: str
    min_df: int
    ngrams: list
    ngram_min_df: int
    aux_vectors: int
    own_vector_from: int
    cluster_by: Literal["label_text", "centroids"]
    clusters: Literal["balanced", "plain"]
    regroup_every: int
    aux_start: Literal["random", "gap"]
    encoder_loss: Literal["triplet", "in_batch", "softmax"]
    margin: float
    hardest: int
    negatives: Literal["in_batch", "refreshed"]
    refresh_every: int
    random: int
    scale: float
    encoder_epochs: int
    encoder_batch: int
    encoder_rate: float
    encoder_token_rate: float
    aux_rate: float
    encoder_decay: float
    encoder_dropout: float
    batch_clusters_from: int
    batch_clusters_every: int
    batch_cluster: int
    label_rows: bool
    centroid_weight: float
    classifier_loss: Literal["triplet", "softmax"]
    classifier_margin: float
    classifier_cluster: int
    classifier_random: int
    epochs: int
    batch: int
    rate: float
    bias_rate: float
    token_rate: float
    dropout: float
    joint: bool
    answers: Literal["fused", "encoder", "classifiers"]
    fusion: Literal["fixed", "tree", "logistic"]
    nearest: bool
    learned_texts: bool
    trees: int
    neighbours: int
    candidates: int
    validation: float
    members: int
    beside: str
    beside_epochs: int

    def of_the_one_beside(self) -> DexaSettings:
        """The settings of the transformer beside the members: a preset of its own."""
        given = {"transformer": self.beside, "encoder_epochs": self.beside_epochs, "scale": self.scale}
        given |= {"answers": self.answers, "learned_texts": self.learned_texts, "beside": ""}
        return resolve(DexaSettings, "dexa", "beside", given)

    def make_encoder(self, split: Split, seed: int, threads: int) -> Any:
        """The encoder that the settings describe, for rows of this kind and number."""
        if self.transformer:
            from deepxc.modules.encoders.transformer import TransformerEncoder

            return TransformerEncoder(
                self.transformer,
                max_length=self.length,
                trained=self.encoder_epochs > 0 or self.joint,
                precision="native",
                seed=seed,
            )
        if isinstance(split.X, np.ndarray):
            return DenseFeatures()
        tokens: dict[str, Any] = {"min_df": self.min_df}
        if self.ngrams:
            tokens |= {"ngrams": tuple(self.ngrams), "ngram_min_df": self.ngram_min_df}
        if len(split) < FEW_TEXTS and self.min_df > 1:
            logger.info("fewer than %d texts: every token is kept (min_df 1)", FEW_TEXTS)
            tokens |= {"min_df": 1, "ngram_min_df": 1}
        start: Any = self.start
        return TokenBag(self.dim, start=start, activation="none", tokens=tokens, seed=seed, threads=threads)

    def task(self) -> SiameseTask:
        """What Module I's loss is."""
        return SiameseTask(
            loss=self.encoder_loss,
            margin=self.margin,
            hardest=self.hardest,
            scale=self.scale,
            random=self.random,
            dropout=self.encoder_dropout,
        )

    def batch_schedule(self) -> ClusterSchedule | None:
        """When batches are made of clusters; None for never."""
        if not self.batch_clusters_from:
            return None
        return ClusterSchedule(first=self.batch_clusters_from, every=self.batch_clusters_every, size=self.batch_cluster)

    def classifier_schedule(self) -> ClusterSchedule:
        """How the classifiers' texts are clustered: at the start, and twice as large from the twentieth epoch on."""
        return ClusterSchedule(first=20, every=20, size=self.classifier_cluster, doubling=(20,))

    def encoder_optimiser(self, encoder: torch.nn.Module, auxiliary: AuxiliaryVectors | None) -> Optimiser:
        """What moves encoder and auxiliary vectors in Module I."""
        groups = encoder_groups(encoder, self.encoder_rate, self.encoder_token_rate, self.encoder_decay)
        if auxiliary is not None:
            groups.append(Group(self.aux_rate, tables=[auxiliary.table]))
        return Optimiser(groups)


def encoder_groups(encoder: torch.nn.Module, rate: float, token_rate: float, decay: float) -> list[Group]:
    """An encoder's tables and parameters; matrices decay apart from their gradient (AdamW)."""
    tables = [part for part in encoder.modules() if isinstance(part, RowTable) and part.trained]
    dense = [part for part in encoder.parameters() if part.requires_grad]
    options: dict[str, Any] = {"eps": 1e-6}
    decayed = [part for part in dense if part.dim() >= _NO_DECAY]
    others = [part for part in dense if part.dim() < _NO_DECAY]
    return [
        Group(token_rate, tables=tables),
        Group(
            rate, parameters=decayed, dense_options=options | {"weight_decay": decay, "decoupled_weight_decay": True}
        ),
        Group(rate, parameters=others, dense_options=options),
    ]

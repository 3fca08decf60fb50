"""Module I of DEXA: one encoder for texts and labels, so that a text lies where its labels lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from deepxc.modules.transfers.unit_norm import to_unit
from deepxc.training.dropout import drop
from deepxc.training.learner import LearnerModule
from deepxc.training.losses import Coordinates, pooled_loss
from deepxc.training.pools import PoolSampler
from deepxc.training.triplets import hardest_pairs_loss, in_batch_loss, sampled_positive_loss

if TYPE_CHECKING:
    from scipy import sparse

    from deepxc.modules.auxiliary import AuxiliaryVectors
    from deepxc.modules.classifiers.one_vs_all import OneVsAll
    from deepxc.modules.protocols import Inputs
    from deepxc.training.batches import Batch
    from deepxc.training.memory_bank import MemoryBank

SiameseLoss = Literal["triplet", "in_batch", "softmax"]


@dataclass(frozen=True)
class SiameseTask:
    """What a batch's loss is.

    Attributes:
        loss: `triplet` (DEXA, NGAME) or `in_batch` (DPR) against the positives that were sampled for the batch, or
            `softmax` over a pool of all the batch's positives and random labels.
        margin: Of the triplets.
        hardest: Negatives of a text that count in its triplets.
        temperature: Of the triplets' weights.
        scale: What cosines are multiplied with in a softmax.
        random: Random labels of a pool.
        dropout: Share of the texts' features that a step blanks.
    """

    loss: SiameseLoss = "triplet"
    margin: float = 0.3
    hardest: int = 10
    temperature: float = 0.1
    scale: float = 20.0
    random: int = 0
    dropout: float = 0.0


class SiameseLearner(LearnerModule):
    """Trains an encoder on texts and label texts together, with auxiliary vectors beside the latter.

    Args:
        encoder: The encoder.
        inputs: Texts as the encoder reads them, the label texts behind them, so that both go through it at once.
        Y: Labels of the texts; each row needs at least one.
        auxiliary: Auxiliary vectors; None trains on label text alone.
        task: What the loss is.
        hard: Labels that each text might seem to have (-1 where fewer), which join the batch's labels; None for none.
        bank: Where the texts' embeddings are noted as they come by.
        own: The label that each text is itself (-1 for none), where labels are documents: a text is not pushed away
            from its own words.
    """

    def __init__(
        self,
        encoder: torch.nn.Module,
        inputs: Inputs,
        Y: sparse.csr_matrix,
        auxiliary: AuxiliaryVectors | None = None,
        *,
        task: SiameseTask | None = None,
        hard: np.ndarray | None = None,
        bank: MemoryBank | None = None,
        own: np.ndarray | None = None,
    ) -> None:
        super().__init__()
        self.encoder, self.auxiliary = encoder, auxiliary
        self.task = task or SiameseTask()
        self.inputs, self.Y, self.hard, self.bank, self.own = inputs, Y, hard, bank, own
        self._sampler = PoolSampler(Y, uniform=self.task.random)
        self._cells = PositiveCells(Y)

    def loss(self, batch: Batch) -> torch.Tensor:
        """The loss of a batch of texts."""
        rows, task = batch.rows, self.task
        hard = None if self.hard is None else self.hard[rows]
        if task.loss == "softmax":
            pool = self._sampler.make(rows, batch.rng, hard)
            texts, vectors = self._embed(batch, pool.labels.numpy())
            excluded = None if self.own is None else self._cells.located(self.own[rows], pool.labels.numpy())
            pool = pool.to(texts.device)
            if excluded is not None:
                excluded = excluded.to(texts.device)
            return pooled_loss(texts * task.scale, vectors, None, pool.positives, log_q=pool.log_q, excluded=excluded)
        own = self._cells.one_of_each(rows, batch.rng)
        labels = np.unique(own if hard is None else np.concatenate((own, hard[hard >= 0])))
        texts, vectors = self._embed(batch, labels)
        positive = self._cells.among(rows, labels)  # what is no negative: the text itself too
        if self.own is not None:
            itself = self._cells.located(self.own[rows], labels)
            positive[itself.rows, itself.columns] = True
        positive = positive.to(texts.device)
        place = torch.from_numpy(np.searchsorted(labels, own)).to(texts.device)
        scores = texts @ vectors.T
        if task.loss == "in_batch":
            return in_batch_loss(scores * task.scale, place, positive)
        return sampled_positive_loss(
            scores, place, positive, margin=task.margin, hardest=task.hardest, temperature=task.temperature
        )

    def _embed(self, batch: Batch, labels: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Embeddings of the batch's texts and vectors of these labels, of length 1."""
        rows = batch.rows
        both = self.encoder(self.inputs.take(np.concatenate((rows, self.Y.shape[0] + labels))))
        texts, names = both[: len(rows)], to_unit(both[len(rows) :])
        if self.training and self.task.dropout:
            texts = drop(texts, self.task.dropout, batch.rng)
        texts = to_unit(texts)
        if self.bank is not None and self.training:
            self.bank.remember(rows, texts.detach())
        if self.auxiliary is not None:
            names = self.auxiliary.augmented(names, torch.from_numpy(labels.astype(np.int64)).to(names.device))
        return texts, names


class TripletLearner(LearnerModule):
    """Module II of DEXA: unit label vectors against the union of the batch's positives, on features or an encoder.

    Args:
        encoder: Turns a batch of inputs into features (`AsGiven` where they stand still).
        classifier: The label vectors, scaled to length 1 before they are compared.
        inputs: The train rows as the encoder reads them.
        Y: Labels of the train rows.
        hard: Labels that each row might seem to have (-1 where fewer), which join the pool; None for none.
        margin: Of the hinge.
        dropout: Share of the features that a step blanks.
    """

    def __init__(
        self,
        encoder: torch.nn.Module,
        classifier: OneVsAll,
        inputs: Inputs,
        Y: sparse.csr_matrix,
        *,
        hard: np.ndarray | None = None,
        margin: float = 0.2,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.encoder, self.classifier, self.inputs = encoder, classifier, inputs
        self.hard, self.margin, self.dropout = hard, margin, dropout
        self._sampler = PoolSampler(Y)

    def loss(self, batch: Batch) -> torch.Tensor:
        """The loss of a batch of texts."""
        features = self.encoder(self.inputs.take(batch.rows))
        if self.training:
            features = drop(features, self.dropout, batch.rng)
        hard = None if self.hard is None else self.hard[batch.rows]
        pool = self._sampler.make(batch.rows, batch.rng, hard).to(features.device)
        scores = to_unit(features) @ to_unit(self.classifier.weights(pool.labels)).T
        positive = torch.zeros_like(scores, dtype=torch.bool)
        positive[pool.positives.rows, pool.positives.columns] = True
        return hardest_pairs_loss(scores, positive, margin=self.margin)


class PositiveCells:
    """Which labels of a batch are whose, and one of each text's own at random."""

    def __init__(self, Y: sparse.csr_matrix) -> None:
        self._bounds, self._labels = Y.indptr.astype(np.int64), Y.indices.astype(np.int64)
        self._place = np.full(Y.shape[1], -1, np.int64)

    def one_of_each(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A label of each row, all equally likely."""
        begins, counts = self._bounds[rows], self._bounds[rows + 1] - self._bounds[rows]
        return self._labels[begins + (rng.random(len(rows)) * counts).astype(np.int64)]

    def located(self, wanted: np.ndarray, labels: np.ndarray) -> Coordinates:
        """The cells in which each row's wanted label (-1 for none) is among these labels (distinct ids)."""
        self._place[labels] = np.arange(len(labels))
        columns = np.where(wanted >= 0, self._place[wanted], -1)
        self._place[labels] = -1
        rows = np.flatnonzero(columns >= 0)
        return Coordinates(torch.from_numpy(rows), torch.from_numpy(columns[rows]))

    def among(self, rows: np.ndarray, labels: np.ndarray) -> torch.Tensor:
        """True where a label (distinct ids) is one of the row's, shape (rows, labels)."""
        counts = self._bounds[rows + 1] - self._bounds[rows]
        owner = np.repeat(np.arange(len(rows)), counts)
        entries = np.arange(counts.sum()) + np.repeat(self._bounds[rows] - np.cumsum(counts) + counts, counts)
        self._place[labels] = np.arange(len(labels))
        columns = self._place[self._labels[entries]]
        self._place[labels] = -1
        found = columns >= 0
        cells = torch.zeros(len(rows), len(labels), dtype=torch.bool)
        cells[torch.from_numpy(owner[found]), torch.from_numpy(columns[found])] = True
        return cells

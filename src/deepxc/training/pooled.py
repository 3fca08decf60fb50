"""The learner of every shortlisted system: encoder, final features and one vector a label, against pools of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from deepxc.modules.tables import RowTable
from deepxc.training.chunked import chunked_logistic_loss
from deepxc.training.dropout import drop
from deepxc.training.learner import LearnerModule
from deepxc.training.losses import Coordinates, Kind, pooled_loss
from deepxc.training.optimisers import Group

if TYPE_CHECKING:
    from scipy import sparse

    from deepxc.modules.classifiers.one_vs_all import OneVsAll
    from deepxc.modules.protocols import Inputs
    from deepxc.training.batches import Batch
    from deepxc.training.pools import Pool, PoolSampler


class AsGiven(torch.nn.Module):
    """In an encoder's place: features that were computed once, because nothing below them moves any more."""

    def __init__(self, device: torch.device | str = "cpu") -> None:
        super().__init__()
        self.device = device

    def forward(self, batch: np.ndarray) -> torch.Tensor:
        """The batch as a tensor."""
        return torch.from_numpy(batch).to(self.device)


class PooledLearner(LearnerModule):
    """Learns features and label vectors together, each batch against the labels of its pool.

    Args:
        encoder: Turns a batch of inputs into features.
        block: What makes the features final (dropout, a residual block, nothing).
        classifier: The label vectors.
        inputs: The train rows as the encoder reads them.
        sampler: Makes the pool of a batch; None trains every text against every label.
        Y: Labels of the train rows, needed where there is no sampler.
        hard: Labels that each train row might seem to have, -1 where fewer; None for none.
        loss: `softmax`, whose targets share each text's weight among its labels; `counts`, the same with a weight of 1
            for every label, so that labels rank by how often they are right whatever comes with them; or `logistic`.
        dropout: Share of the encoder's features that a step blanks.
        own: The label that each train row is itself, -1 where it is none: it is no negative of that row.
        own_shortlists: With `logistic`, a text counts only against its own hard labels (and the random ones), not
            against those of the others in the batch.
    """

    def __init__(
        self,
        encoder: torch.nn.Module,
        block: torch.nn.Module,
        classifier: OneVsAll,
        inputs: Inputs,
        *,
        sampler: PoolSampler | None = None,
        Y: sparse.csr_matrix | None = None,
        hard: np.ndarray | None = None,
        loss: Kind | Literal["counts"] = "softmax",
        dropout: float = 0.0,
        own: np.ndarray | None = None,
        own_shortlists: bool = False,
    ) -> None:
        super().__init__()
        self.encoder, self.block, self.classifier = encoder, block, classifier
        self.inputs, self.sampler, self.hard = inputs, sampler, hard
        self.kind: Kind = "softmax" if loss == "counts" else loss
        self.counts = loss == "counts"
        self.dropout = dropout
        self.own = own
        self.own_shortlists = own_shortlists
        self._Y = Y

    def loss(self, batch: Batch) -> torch.Tensor:
        """The pooled loss of a batch."""
        features = self.encoder(self.inputs.take(batch.rows))
        if self.training:
            features = drop(features, self.dropout, batch.rng)
        features = self.block(features)
        own = None if self.own is None else self.own[batch.rows]
        if self.sampler is None:
            assert self._Y is not None
            return loss_over_all(features, self.classifier, self._Y, batch.rows, self.kind, counts=self.counts, own=own)
        hard = None if self.hard is None else self.hard[batch.rows]
        pool = self.sampler.make(batch.rows, batch.rng, hard, own_shortlist=self.own_shortlists)
        shortlists = self.own_shortlists
        return loss_over_pool(
            features, self.classifier, pool, self.kind, own_shortlists=shortlists, counts=self.counts, own=own
        )

    def groups(self, rate: float, *, bias_rate: float = 0.0, encoder_rate: float = 0.0) -> list[Group]:
        """What moves at which rate.

        Args:
            rate: Of the classifier's table and of all small parameters but the encoder's.
            bias_rate: Of the labels' biases; 0: as `rate`.
            encoder_rate: Of the encoder's tables and parameters, where they train; 0: as `rate`.
        """
        classifier = self.classifier
        parameters = [p for part in (classifier, self.block) for p in part.parameters() if p.requires_grad]
        groups = [Group(rate, tables=[classifier.table] if classifier.table.trained else [], parameters=parameters)]
        if classifier.bias is not None:
            groups.append(Group(bias_rate or rate, tables=[classifier.bias]))
        tables = [part for part in self.encoder.modules() if isinstance(part, RowTable) and part.trained]
        parameters = [p for p in self.encoder.parameters() if p.requires_grad]
        if tables or parameters:
            groups.append(Group(encoder_rate or rate, tables=tables, parameters=parameters))
        return groups


def loss_over_all(
    features: torch.Tensor,
    classifier: OneVsAll,
    Y: sparse.csr_matrix,
    rows: np.ndarray,
    kind: Kind,
    *,
    counts: bool = False,
    own: np.ndarray | None = None,
) -> torch.Tensor:
    """The loss of a batch, given as rows of Y, against all of Y's labels; `counts` and `own` as in `loss_over_pool`."""
    part: sparse.csr_matrix = Y[rows]  # pyrefly: ignore[bad-assignment] (rows of CSR are CSR)
    cells = np.repeat(np.arange(len(rows)), np.diff(part.indptr)), part.indices.astype(np.int64)
    positives = Coordinates(*map(torch.from_numpy, cells)).to(features.device)
    weights, bias = classifier.every_weight()
    if kind == "logistic" and own is None:
        return chunked_logistic_loss(features, weights, bias, positives)
    return pooled_loss(
        features,
        weights,
        bias,
        _counted(positives) if counts else positives,
        kind=kind,
        excluded=None if own is None else _cells_of(own, torch.arange(Y.shape[1], device=features.device)),
        normalise="positives" if counts else "batch",
        # Every slice of the batch adds to a gradient as large as the table: with as many logits at once as the table
        # has numbers, or twice that, those additions cost little beside the products (measured: half a step's time).
        most_cells=2 * max(weights.numel(), 1 << 21),
    )


def loss_over_pool(
    features: torch.Tensor,
    classifier: OneVsAll,
    pool: Pool,
    kind: Kind,
    *,
    own_shortlists: bool,
    counts: bool = False,
    own: np.ndarray | None = None,
) -> torch.Tensor:
    """The loss of a batch against its pool, or each text's own part of it.

    Args:
        features: Final features of the batch.
        classifier: The label vectors.
        pool: The pool.
        kind: `softmax` or `logistic`.
        own_shortlists: Each text counts against its own shortlist and the random labels only.
        counts: Each positive weighs the same, however many a text has.
        own: The label that each text is itself, -1 for none: no negative of it.
    """
    pool = pool.to(features.device)
    bias = classifier.bias
    return pooled_loss(
        features,
        classifier.weights(pool.labels),
        bias.rows(pool.labels) if bias is not None else None,
        _counted(pool.positives) if counts else pool.positives,
        kind=kind,
        shortlist=_with_random(pool.shortlist, pool.counts, len(features)) if own_shortlists else None,
        excluded=None if own is None else _cells_of(own, pool.labels),
        log_q=pool.log_q if kind == "softmax" else None,
        normalise="positives" if counts else "batch",
    )


def _counted(positives: Coordinates) -> Coordinates:
    """The same cells, each with target 1."""
    return positives._replace(values=torch.ones(len(positives.rows), device=positives.rows.device))


def _cells_of(own: np.ndarray, pool: torch.Tensor) -> Coordinates:
    """Where in the pool the label of each text of the batch is, for those (-1 is none) that are in it."""
    labels = pool.cpu().numpy()
    order = np.argsort(labels)
    place = order[np.minimum(np.searchsorted(labels, own, sorter=order), len(labels) - 1)]
    rows = np.flatnonzero((labels[place] == own) & (own >= 0))
    return Coordinates(torch.from_numpy(rows), torch.from_numpy(place[rows])).to(pool.device)


def _with_random(own: Coordinates | None, counts: tuple[int, int, int], n_rows: int) -> Coordinates:
    """Each text's own hard labels, and the pool's random ones for every text (DeepXML adds both)."""
    assert own is not None
    positives, hard, random = counts
    device = own.rows.device
    columns = torch.arange(positives + hard, positives + hard + random, device=device)
    rows = torch.arange(n_rows, device=device).repeat_interleave(random)
    return Coordinates(torch.cat((own.rows, rows)), torch.cat((own.columns, columns.repeat(n_rows))))

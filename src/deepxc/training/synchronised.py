"""InceptionXML+'s learner: a head for clusters of labels and a head for labels, taught together (section 5).

The head for clusters says which clusters a text could belong to; the labels of the best of them, and the text's own,
are what the head for labels is taught to tell apart. Both read the same encoder's features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from deepxc.training.dropout import drop
from deepxc.training.learner import LearnerModule
from deepxc.training.pooled import loss_over_all, loss_over_pool
from deepxc.training.precision import matmul

if TYPE_CHECKING:
    import numpy as np
    from scipy import sparse

    from deepxc.modules.classifiers.one_vs_all import OneVsAll
    from deepxc.modules.protocols import Inputs
    from deepxc.modules.shortlists.label_groups import LabelGroups
    from deepxc.training.batches import Batch
    from deepxc.training.losses import Kind
    from deepxc.training.pools import Pool, PoolSampler


class Head(torch.nn.Module):
    """What makes features final, and the vectors that score them.

    Args:
        block: From features to final features.
        classifier: One vector a label, or a cluster.
    """

    def __init__(self, block: torch.nn.Module, classifier: OneVsAll) -> None:
        super().__init__()
        self.block, self.classifier = block, classifier

    @torch.no_grad()
    def scores(self, final: torch.Tensor) -> torch.Tensor:
        """Scores of final features against every vector, without gradients."""
        weights, bias = self.classifier.table.weight, self.classifier.bias
        scores = matmul(final.detach(), weights.T)
        return scores if bias is None else scores + bias.weight[:, 0]


class SynchronisedLearner(LearnerModule):
    """Learns encoder and both heads from the sum of their losses.

    All texts of a batch share one pool, the union of their candidates and positives, and one product; with
    `own_shortlists` a text's loss counts its own candidates only.

    Args:
        encoder: Turns a batch of inputs into features.
        meta: The head for clusters.
        extreme: The head for labels.
        inputs: The train rows as the encoder reads them.
        Y: Labels of the train rows.
        groups: Which labels the clusters hold.
        top: Clusters whose labels are a text's candidates.
        sampler: Makes the pools; it may draw random labels too.
        loss: `softmax` or `logistic`, of both heads.
        dropout: Share of the encoder's features that a step blanks, for each head anew.
        own_shortlists: A text counts only against its own candidates.
        detached: Steps from the first one in which the head for labels does not teach the encoder.
        steps: Steps of an epoch.
    """

    def __init__(
        self,
        encoder: torch.nn.Module,
        meta: Head,
        extreme: Head,
        inputs: Inputs,
        Y: sparse.csr_matrix,
        groups: LabelGroups,
        *,
        top: int,
        sampler: PoolSampler,
        loss: Kind = "logistic",
        dropout: float = 0.0,
        own_shortlists: bool = True,
        detached: int = 0,
        steps: int = 1,
    ) -> None:
        super().__init__()
        self.encoder, self.meta, self.extreme = encoder, meta, extreme
        self.inputs, self.groups, self.sampler = inputs, groups, sampler
        self.top, self.dropout = min(top, len(groups)), dropout
        self.kind: Kind = loss
        self.own_shortlists, self.detached, self.steps = own_shortlists, detached, steps
        self._clusters_of = groups.targets(Y)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Loss over the clusters plus loss over the candidates."""
        features = self.encoder(self.inputs.take(batch.rows))
        for_meta = self.meta.block(drop(features, self.dropout, batch.rng) if self.training else features)
        of_clusters = loss_over_all(for_meta, self.meta.classifier, self._clusters_of, batch.rows, self.kind)
        if batch.epoch * self.steps + batch.number < self.detached:
            features = features.detach()
        for_labels = self.extreme.block(drop(features, self.dropout, batch.rng) if self.training else features)
        pool = self.pool(for_meta, batch)
        of_labels = loss_over_pool(
            for_labels, self.extreme.classifier, pool, self.kind, own_shortlists=self.own_shortlists
        )
        return of_clusters + of_labels

    def pool(self, for_meta: torch.Tensor, batch: Batch) -> Pool:
        """The batch's positives and the labels of each text's best clusters."""
        best = torch.topk(self.meta.scores(for_meta), self.top, dim=1, sorted=False).indices
        candidates: np.ndarray = self.groups.candidates(best.cpu().numpy())
        return self.sampler.make(batch.rows, batch.rng, candidates, own_shortlist=self.own_shortlists)

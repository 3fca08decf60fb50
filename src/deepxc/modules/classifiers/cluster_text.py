"""Classifiers of label clusters, made of the texts of the clusters' labels and of refinements (DECAF, Module II).

h_m = sigma(alpha) * sum of E_L(z_l) over the labels l of the cluster + sigma(beta) * the cluster's own refinement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepxc.modules.classifiers.label_text import LabelText
from deepxc.modules.transfers.embedding_block import EmbeddingBlock

if TYPE_CHECKING:
    from deepxc.modules.protocols import Encoder, Inputs


class ClusterText(LabelText):
    """A vector a cluster.

    Args:
        encoder: As for `LabelText`.
        texts: Of the labels.
        block: Over the encoder's vector of a label's text, an `EmbeddingBlock` or none.
        clusters: The cluster of each label, -1 for none.
        count: How many clusters there are.
        **named: As for `LabelText`.
    """

    def __init__(
        self,
        encoder: Encoder,
        texts: Inputs,
        block: torch.nn.Module | None,
        clusters: np.ndarray,
        count: int,
        **named: Any,  # noqa: ANN401 (passed on)
    ) -> None:
        super().__init__(encoder, texts, block, **named)
        inside = np.flatnonzero(clusters >= 0)
        self._labels = inside[np.argsort(clusters[inside], kind="stable")]
        self._sizes = np.bincount(clusters[inside], minlength=count)
        self._starts = np.cumsum(self._sizes) - self._sizes

    def bags(self, labels: torch.Tensor) -> torch.Tensor:
        """The sums of E z_l over the labels of each cluster, differentiable."""
        rows, owners = self._opened(labels)
        return rows.new_zeros(len(labels), rows.shape[1]).index_add(0, owners, rows)

    def texts(self, labels: torch.Tensor) -> torch.Tensor:
        """The sums of E_L(z_l) over the labels of each cluster, differentiable."""
        if not isinstance(self.block, EmbeddingBlock):
            return self.block(self.bags(labels))
        rows, owners = self._opened(labels)
        return self.block.summed(rows, owners, len(labels))

    def _opened(self, clusters: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The encoder's vectors of all labels of these clusters, and the place of each one's cluster among them."""
        encoder, texts = self._shared
        numbers = clusters.cpu().numpy()
        sizes = self._sizes[numbers]
        owners = np.repeat(np.arange(len(numbers)), sizes)
        place = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        labels = self._labels[self._starts[numbers][owners] + place]
        return encoder(texts.take(labels)), torch.from_numpy(owners).to(clusters.device)

    def _count(self) -> int:
        return len(self._sizes)

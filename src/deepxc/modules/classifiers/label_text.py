"""DECAF's classifiers: what a label's text says, and what the text leaves to be learned (section 3).

w_l = sigma(alpha_L) * E_L(z_l) + sigma(beta_L) * u_l. The text goes through the same encoder as the texts to be
labelled, so a step that moves one label's classifier moves the vectors of its words, and with them the classifiers of
all labels that share a word with it. The refinement u_l is the label's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from deepxc.errors import DataError, UserError
from deepxc.modules.classifiers.one_vs_all import OneVsAll
from deepxc.modules.tables import RowTable
from deepxc.modules.transfers.embedding_block import Combination

if TYPE_CHECKING:
    from deepxc.modules.protocols import Encoder, Inputs

Parts = Literal["both", "text", "refinement"]
Start = Literal["text", "random"]

_LABELS_AT_ONCE = 4096


class LabelText(OneVsAll):
    """A vector a label, made of the label's text and of a refinement; the `table` holds the refinements.

    The encoder is shared, not owned: its tables and parameters belong to whoever trains it, and get gradients from
    here as well.

    Args:
        encoder: Reads the labels' texts, as it reads the texts to be labelled.
        texts: The label texts, as the encoder reads them.
        block: Over the encoder's vector of a label's text; none where that is the embedding already.
        parts: `both`, or the text or the refinement alone, which then is the whole classifier.
        start: Where refinements start: at the encoder's vector of the label's `text`, or at `random`.
        scale: What the classifiers are multiplied with: features of about unit length need long ones.
        bias: Learn one number a label beside its vector.
    """

    def __init__(
        self,
        encoder: Encoder,
        texts: Inputs,
        block: torch.nn.Module | None = None,
        *,
        parts: Parts = "both",
        start: Start = "text",
        scale: float = 1.0,
        bias: bool = True,
    ) -> None:
        super().__init__(bias=bias)
        self._shared: Any = (encoder, texts)  # in a tuple, so that it is no submodule
        self.block = torch.nn.Identity() if block is None else block
        self.parts: Parts = parts
        self.beginning: Start = start
        self.scale = scale

    def start(
        self,
        n_labels: int,
        dim: int,
        seed: int,
        vectors: np.ndarray | None = None,
        bias: np.ndarray | None = None,
    ) -> None:
        """Make the gates, half open, and the refinements.

        Args:
            n_labels: Number of labels.
            dim: Length of a feature vector.
            seed: Of a random start.
            vectors: Classifiers to start from: refinements are then what the texts leave to be added.
            bias: One number a label; 0 by default.
        """
        if self._count() != n_labels:
            raise DataError(f"texts of {self._count()} labels for {n_labels} labels")
        if vectors is not None and self.parts == "text":
            raise UserError("text alone cannot start from given vectors", where="vectors", remedy="Use parts='both'")
        self.combination = Combination(dim)
        if vectors is not None:
            vectors = self._left_by_texts(np.asarray(vectors, np.float32))
        elif self.parts != "text" and self.beginning == "text":
            vectors = self._in_blocks(self.bags)
        super().start(n_labels, dim, seed, vectors, bias)
        if self.parts == "text":
            self.table = RowTable(torch.empty(n_labels, 0), trained=False)
        self.combination.to(self.table.weight.device)

    def weights(self, labels: torch.Tensor) -> torch.Tensor:
        """The classifiers of a pool's labels, differentiable in refinements, gates, block and encoder."""
        return self.scale * self._combined(labels, self._started().rows)

    def every_weight(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The classifiers of all labels and, if there are any, their biases (labels x 1), differentiable."""
        labels = torch.arange(self._count(), device=self._started().weight.device)
        return self.weights(labels), None if self.bias is None else self.bias.every_row()

    def bags(self, labels: torch.Tensor) -> torch.Tensor:
        """The encoder's vectors of the labels' texts, E z_l, differentiable."""
        encoder, texts = self._shared
        return encoder(texts.take(labels.cpu().numpy()))

    def texts(self, labels: torch.Tensor) -> torch.Tensor:
        """The embeddings of the labels' texts, E_L(z_l), differentiable."""
        return self.block(self.bags(labels))

    def vectors(self) -> np.ndarray:
        """One vector a label, some thousand at a time."""
        table = self._started().weight
        return self._in_blocks(lambda labels: self.scale * self._combined(labels, lambda rows: table[rows]))

    def add(self, vectors: np.ndarray, bias: np.ndarray | None = None) -> None:  # noqa: ARG002 (as its base)
        """Not possible: what a new label says is not among the texts."""
        raise UserError(
            "labels with texts cannot be added to the classifier", where="add", remedy="Add their vectors to the model"
        )

    def _count(self) -> int:
        return len(self._shared[1])

    def _combined(self, labels: torch.Tensor, refinements: Any) -> torch.Tensor:  # noqa: ANN401 (a function)
        if self.parts == "text":
            return self.texts(labels)
        own = refinements(labels)
        return own if self.parts == "refinement" else self.combination(self.texts(labels), own)

    def _left_by_texts(self, vectors: np.ndarray) -> np.ndarray:
        """The refinements that make these vectors the classifiers."""
        vectors = vectors / np.float32(self.scale)
        if self.parts == "refinement":
            return vectors
        texts = self._in_blocks(self.texts)
        if texts.shape != vectors.shape:
            raise DataError(f"vectors of shape {vectors.shape} for {len(texts)} labels of {texts.shape[1]} features")
        with torch.no_grad():
            alpha, beta = (torch.sigmoid(gate).cpu().numpy() for gate in self.combination.parameters())
        return (vectors - alpha * texts) / beta

    @torch.no_grad()
    def _in_blocks(self, compute: Any) -> np.ndarray:  # noqa: ANN401 (a function)
        """What a function gives for each label, as in prediction."""
        training = self.training
        self.eval()
        device = next((p.device for p in self.parameters()), torch.device("cpu"))
        labels = torch.arange(self._count(), device=device)
        parts = [compute(some).float().cpu().numpy() for some in labels.split(_LABELS_AT_ONCE)]
        self.train(training)
        return np.concatenate(parts)

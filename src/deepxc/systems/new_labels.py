"""Labels that a trained model gets to know from a text or a few examples, without training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from deepxc.data.label_space import LabelSpace
from deepxc.errors import UserError
from deepxc.labels.centroids import label_centroids

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepxc.systems.estimator import XmcEstimator


@dataclass(frozen=True, eq=False)
class FreshLabels:
    """New labels with their texts.

    Attributes:
        names: What they are called.
        rows: Their rows in the label space, the first after the last known one.
        texts: All their texts.
        owners: For each text, the place of its label among the names.
    """

    names: list[str]
    rows: np.ndarray
    texts: list[str]
    owners: np.ndarray

    def means(self, features: Any) -> Any:
        """The centroid of each label's texts, of length 1."""
        return label_centroids(self._indicator(len(self.names), self.owners), features)

    def vectors(self, features: np.ndarray, best: np.ndarray, bias: float) -> np.ndarray:
        """Label vectors that point at the texts, as long as it takes to match the best known labels there.

        A vector of the centroid's direction scores highest on its own texts; its length is set so that, on average,
        it scores on them what the best of the known labels does.

        Args:
            features: Final features of the texts.
            best: The score of the best known label of each.
            bias: What the new labels get as their bias.

        Returns:
            One vector a label, its bias at the end, rounded to half precision.
        """
        directions = np.asarray(self.means(features))
        along = np.einsum("ij,ij->i", features, directions[self.owners])
        counts = np.bincount(self.owners, minlength=len(self.names))
        wanted = np.bincount(self.owners, best - bias, len(self.names)) / counts
        reached = np.bincount(self.owners, along, len(self.names)) / counts
        lengths = np.maximum(wanted, 1e-3) / np.maximum(reached, 1e-6)
        vectors = np.column_stack((directions * lengths[:, None], np.full(len(directions), bias)))
        return vectors.astype(np.float16).astype(np.float32)

    def of_texts(self, n_labels: int) -> sparse.csr_matrix:
        """The texts' labels, texts x all labels."""
        return self._indicator(n_labels, self.rows[self.owners])

    def _indicator(self, width: int, columns: np.ndarray) -> sparse.csr_matrix:
        n = len(self.texts)
        parts = (np.ones(n, np.float32), columns.astype(np.int32), np.arange(n + 1, dtype=np.int32))
        return sparse.csr_matrix(parts, shape=(n, width))


def fresh_labels(model: XmcEstimator, labels: Mapping[str, str | Sequence[str]]) -> FreshLabels:
    """Check what a user gave: names that are new, each with at least one text that says something."""
    if hasattr(model, "n_features_in_"):
        raise UserError(
            "new labels come with texts, but the model was trained on features",
            where="add_labels",
            remedy="Train on texts",
        )
    known = model.labels_.index
    names, texts, owners = list(labels), [], []
    if not names:
        raise UserError("no labels", where="add_labels", remedy='Give {"name": "a text that says what it is"}')
    for place, name in enumerate(names):
        own = labels[name]
        own = [own] if isinstance(own, str) else list(own)
        if name in known:
            raise UserError(f"the label {name!r} is known already", where="add_labels", remedy="Choose another name")
        if not own or not all(isinstance(text, str) and text.strip() for text in own):
            raise UserError(f"the label {name!r} has an empty text", where="add_labels", remedy="Say what it is")
        texts += own
        owners += [place] * len(own)
    first = len(model.labels_)
    return FreshLabels(names, np.arange(first, first + len(names)), texts, np.array(owners))


def extended(labels: LabelSpace, fresh: FreshLabels) -> LabelSpace:
    """The label space with the new labels at its end; their first text is their label text."""
    firsts = [fresh.texts[np.flatnonzero(fresh.owners == place)[0]] for place in range(len(fresh.names))]
    counts = np.bincount(fresh.owners, minlength=len(fresh.names))
    return LabelSpace(
        ids=[*labels.ids, *fresh.names],
        names=[*labels.names, *fresh.names],
        texts=None if labels.texts is None else [*labels.texts, *firsts],
        frequencies=None if labels.frequencies is None else np.concatenate((labels.frequencies, counts)),
    )

"""Train texts and label texts read by one encoder, so that both speak of the same tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from deepxc.data.checks.reciprocal import own_labels
from deepxc.data.dataset import Split
from deepxc.errors import UserError
from deepxc.labels.weighted_sums import weighted_sums
from deepxc.modules.encoders.bags import BagInputs
from deepxc.systems.training_rows import labels_are_documents, told_labels

if TYPE_CHECKING:
    from deepxc.modules.encoders.token_bag import TokenBag


@dataclass(frozen=True)
class TextsAndLabels:
    """What an encoder read.

    Attributes:
        inputs: The train rows; behind them the texts of some labels as rows of those labels, where that was asked for.
        Y: Labels of these rows.
        labels: The text of every label; empty where a label has none, or none that holds a known token.
        own: The label that each row is itself, -1 where it is none; None where labels are no documents.
    """

    inputs: BagInputs
    Y: sparse.csr_matrix
    labels: BagInputs
    own: np.ndarray | None = None

    def cluster_texts(self, clusters: np.ndarray, count: int) -> BagInputs:
        """One text a cluster: the sum of its labels' texts. A label of cluster -1 is in none."""
        inside = np.flatnonzero(clusters >= 0)
        cells = (np.ones(len(inside), np.float32), (clusters[inside], inside))
        members = sparse.csr_matrix(cells, shape=(count, len(clusters)))
        return BagInputs(weighted_sums(members, self.labels.matrix))


def read_with_labels(encoder: TokenBag, split: Split, *, label_rows: bool, documents: bool = False) -> TextsAndLabels:
    """Learn the tokens of texts and label texts together, and read both.

    Args:
        encoder: Learns.
        split: Train rows; their label space has texts, or features where the rows have features.
        label_rows: Let label texts be further rows of their labels.
        documents: Also where labels are documents themselves.
    """
    check_label_texts(split)
    n, n_labels = len(split), len(split.labels)
    nothing = sparse.csr_matrix((n_labels, n_labels), dtype=np.float32)
    everything = Split(split.labels, sparse.csr_matrix(sparse.vstack((split.Y, nothing))), **_stacked(split))
    matrix = encoder.learn(everything).matrix
    labels = BagInputs(sparse.csr_matrix(matrix[n:]))
    told = told_labels(split, documents=documents) if label_rows else np.empty(0, np.int64)
    itself = _themselves(split) if labels_are_documents(split) else None
    if not len(told):
        return TextsAndLabels(BagInputs(sparse.csr_matrix(matrix[:n])), split.Y, labels, itself)
    rows = np.concatenate((np.arange(n), n + told))
    own = sparse.identity(n_labels, np.float32, "csr")[told]
    Y = sparse.csr_matrix(sparse.vstack((split.Y, own)))
    if itself is not None:
        itself = np.concatenate((itself, np.full(len(told), -1)))
    return TextsAndLabels(BagInputs(sparse.csr_matrix(matrix[rows])), Y, labels, itself)


def _themselves(split: Split) -> np.ndarray:
    """The label that each document is, -1 where it is none, or has itself among its labels."""
    own = own_labels(split)
    known = np.flatnonzero(own >= 0)
    own[known[np.asarray(split.Y[known, own[known]]).ravel() > 0]] = -1
    return own


def check_label_texts(split: Split) -> None:
    """Refuse labels that say nothing."""
    labels = split.labels
    if split.texts is not None:
        told = labels.texts is not None and any(text.strip() for text in labels.texts)
    else:
        told = labels.features is not None and labels.features.nnz > 0
    if not told:
        kind = "text" if split.texts is not None else "features"
        raise UserError(
            f"the {len(labels):,} labels have no {kind}, which DECAF reads",
            where="labels",
            remedy="Train Astec, which needs none, or give the labels texts",
        )


def _stacked(split: Split) -> dict[str, Any]:
    """Texts and label texts in one list, or features of both in one matrix."""
    if split.texts is not None:
        assert split.labels.texts is not None
        return {"texts": [*split.texts, *split.labels.texts]}
    features: Any = split.X
    of_labels: Any = split.labels.features
    if not sparse.issparse(features) or features.shape[1] != of_labels.shape[1]:
        raise UserError(
            "labels and texts do not have the same sparse features",
            where="X",
            remedy="Give sparse matrices with as many columns for texts as for labels",
        )
    return {"X": sparse.csr_matrix(sparse.vstack((features, of_labels)))}

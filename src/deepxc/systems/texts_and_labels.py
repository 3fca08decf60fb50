"""Texts with the label texts behind them, for encoders that read both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from deepxc.data.dataset import Split
from deepxc.modules.encoders.chosen_rows import ChosenRows
from deepxc.systems.training_rows import with_label_rows

if TYPE_CHECKING:
    from deepxc.modules.protocols import Inputs


def label_part(inputs: Inputs, n_labels: int) -> ChosenRows:
    """The label texts of what `with_labels_behind` gave."""
    return ChosenRows(inputs, np.arange(len(inputs) - n_labels, len(inputs)))


def text_part(inputs: Inputs, n_labels: int) -> ChosenRows:
    """The texts before them."""
    return ChosenRows(inputs, np.arange(len(inputs) - n_labels))


def labels_say_something(split: Split) -> bool:
    """Whether labels have texts, or features of the kind that the rows have."""
    if split.texts is None:
        return split.labels.features is not None
    return split.labels.texts is not None and any(text.strip() for text in split.labels.texts)


def with_labels_behind(split: Split) -> Split:
    """The rows, and behind them one for each label: its text, or its features; empty where it has none."""
    labels, n = split.labels, len(split.labels)
    Y = sparse.csr_matrix(sparse.vstack((split.Y, sparse.csr_matrix((n, n), dtype=np.float32))))
    if split.texts is not None:
        return Split(labels, Y, [*split.texts, *(labels.texts or [""] * n)])
    assert split.X is not None
    own: Any = labels.features
    if sparse.issparse(split.X):
        own = sparse.csr_matrix((n, split.X.shape[1]), dtype=np.float32) if own is None else own
        return Split(labels, Y, X=sparse.csr_matrix(sparse.vstack((split.X, own))))
    own = np.zeros((n, split.X.shape[1]), np.float32) if own is None else np.asarray(own.todense())
    rows: Any = split.X
    return Split(labels, Y, X=np.vstack((rows, own)))


def taught_rows(split: Split, *, label_rows: bool) -> tuple[np.ndarray, sparse.csr_matrix]:
    """The rows of `with_labels_behind` that classifiers learn from, and their labels.

    With `label_rows` label texts are among them, where they stand for their labels (see `with_label_rows`).
    """
    n = len(split)
    if not label_rows:
        return np.arange(n), split.Y
    Y = with_label_rows(split).Y
    return np.concatenate((np.arange(n), n + Y.indices[Y.indptr[n] :])), Y

"""Which rows a system trains on: some are held out to choose weights, label texts may become further rows."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from scipy import sparse

from deepxc.data.dataset import Split
from deepxc.data.splits import validation_rows

FEW_TEXTS = 1_000
"""Below this every token counts: one that occurs once may be all that a label has."""
_LEAST_HELD_OUT, _MOST_HELD_OUT = 2_000, 5_000
_DOCUMENTS = 2 / 3  # share of the label texts among the train texts from which labels count as documents
_OWN = 0.05  # share of those documents that are their own label up to which none is meant to be

logger = logging.getLogger(__name__)


def held_out(split: Split, share: float, seed: int) -> np.ndarray:
    """Rows to choose weights on: this share of all, up to one in 20 where that is less than 2,000, 5,000 at most.

    Below a thousand texts it is one in 10: a few rows choose badly, but leave something to learn from.
    """
    if share == 0:
        return np.empty(0, np.int64)
    few = len(split) // 10 if len(split) < FEW_TEXTS else min(_LEAST_HELD_OUT, max(FEW_TEXTS // 10, len(split) // 20))
    size = min(_MOST_HELD_OUT, max(round(share * len(split)), few))
    return validation_rows(split.Y, size, seed) if size else np.empty(0, np.int64)


def labels_are_documents(split: Split) -> bool:
    """Whether labels are documents like the texts, and no document is its own label: packages, pages, products.

    There a label's text must not stand for the label, or it would teach every document to answer itself.
    """
    found, own = _label_texts_among(split)
    documents = found.sum() > _DOCUMENTS * len(split.labels) and own.sum() < _OWN * found.sum()
    if documents:
        logger.info("labels are documents themselves: their texts do not stand for them")
    return bool(documents)


def with_label_rows(split: Split, *, documents: bool = False) -> Split:
    """The split with every label's text as one more text of that label.

    A label whose text is a train text of its own already needs none.

    Args:
        split: Train rows.
        documents: Let labels that are documents have rows too.
    """
    texts, told = split.labels.texts, told_labels(split, documents=documents)
    if split.texts is None or texts is None or not len(told):
        return split
    eye = sparse.identity(len(texts), np.float32, "csr")[told]
    Y = sparse.csr_matrix(sparse.vstack((split.Y, eye)))
    return Split(split.labels, Y, [*split.texts, *(texts[i] for i in told.tolist())])


def told_labels(split: Split, *, documents: bool = False) -> np.ndarray:
    """The labels whose texts become train rows: see `with_label_rows`."""
    texts = split.labels.texts
    if split.texts is None or texts is None or (not documents and labels_are_documents(split)):
        return np.empty(0, np.int64)
    _, own = _label_texts_among(split)
    return np.flatnonzero([bool(text.strip()) and not known for text, known in zip(texts, own, strict=True)])


def _label_texts_among(split: Split) -> tuple[np.ndarray, np.ndarray]:
    """For each label, whether its text is a train text, and whether one that has the label."""
    texts = split.labels.texts
    found, own = (np.zeros(len(split.labels), np.bool_) for _ in range(2))
    if split.texts is None or texts is None:
        return found, own
    labels_of: dict[str, list[int]] = {}
    for label, text in enumerate(texts):
        labels_of.setdefault(text, []).append(label)
    pairs = [(row, label) for row, text in enumerate(split.texts) for label in labels_of.get(text, ())]
    if pairs:
        rows, labels = np.array(pairs).T
        found[labels] = True
        own[labels[np.asarray(split.Y[rows, labels]).ravel() > 0]] = True
    return found, own


def listed_positives(Y: sparse.csr_matrix, candidates: np.ndarray) -> sparse.csr_matrix:
    """The labels of each row that are on its shortlist (-1 after its last)."""
    rows, places = np.nonzero(candidates >= 0)
    cells = (np.ones(len(rows), np.float32), (rows, candidates[rows, places]))
    kept = sparse.csr_matrix(Y.multiply(sparse.csr_matrix(cells, shape=Y.shape)))
    kept.sort_indices()
    return kept


def unit_centroids(features: np.ndarray, Y: sparse.csr_matrix, threads: int) -> Any:
    """Label centroids of unit features, of length 1."""
    from deepxc.labels.centroids import label_centroids

    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    return label_centroids(Y, features / np.maximum(lengths, np.float32(1e-9)), threads=threads)


def not_itself(own: np.ndarray | None, ids: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores without the one that each text is itself (see `own_labels`): its place is left empty."""
    if own is None:
        return ids, scores
    out = (ids == own[:, None]) & (ids >= 0)
    return np.where(out, -1, ids), np.where(out, -np.inf, scores).astype(np.float32)


def without_own(own: np.ndarray | None, ids: np.ndarray, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The first k answers of each text without the label that the text itself is; one more than k must be given."""
    kept, told = not_itself(own, ids, scores)
    order = np.argsort(kept < 0, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(kept, order, 1), np.take_along_axis(told, order, 1)

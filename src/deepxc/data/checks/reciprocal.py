"""Trivial pairs where texts are labels themselves (products, articles, packages).

A row that is itself a label can be "right" by naming itself, or by turning round a pair that train holds. Data sets of
that kind list such pairs as filter pairs; these checks find the pairs that the list forgot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepxc.data.checks.finding import Finding, label_example, row_example

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepxc.data.checks.finding import Severity
    from deepxc.data.dataset import Split
    from deepxc.data.label_space import LabelSpace

_MANY = 0.1  # share of rows that are labels from which the data set is taken to be of that kind


def own_labels(split: Split) -> np.ndarray:
    """The label that each row is itself, -1 where it is none.

    A row is a label where their ids are the same; in data sets whose ids never meet, where their texts are the same,
    whatever their case, and no other label has that text.
    """
    own = np.full(len(split), -1, np.int64)
    if split.ids is not None:
        rows = {label: i for i, label in enumerate(split.labels.ids)}
        own = np.fromiter((rows.get(name, -1) for name in split.ids), np.int64, len(split))
    if split.texts is not None and not (own >= 0).any():
        by_text = _unique_texts(split.labels)
        own = np.fromiter((by_text.get(_plain(text), -1) for text in split.texts), np.int64, len(split))
    return own


def reciprocal_findings(part: str, split: Split, train: Split) -> Iterator[Finding]:
    """Self pairs and reciprocal pairs of a split that its filter pairs do not list; `split` may be train."""
    own = own_labels(split)
    rows = np.flatnonzero(own >= 0)
    width = len(split.labels)
    truth = np.sort(_keys(_entry_rows(split), split.Y.indices, width))
    filtered = np.sort(_keys(split.filter_pairs[:, 0], split.filter_pairs[:, 1], width))
    severity: Severity = "warning" if len(rows) >= _MANY * len(split) else "note"
    itself = _keys(rows, own[rows], width)
    in_truth = _among(itself, truth)
    self_pairs = np.flatnonzero(~in_truth & ~_among(itself, filtered))
    if len(self_pairs):
        row = rows[self_pairs[0]]
        yield Finding(
            "self-pair",
            severity,
            f"{part} rows are labels themselves, and nothing keeps a model from predicting a row as itself",
            len(self_pairs),
            f"{row_example(split, row)} is {label_example(split.labels, own[row])}",
            "Add (row, label) to the filter pairs if a text must not be its own answer",
        )
    yield from _filtered_truth(part, split, truth, filtered)
    if split is train:
        return
    trivial = np.flatnonzero(in_truth & ~_among(itself, filtered))
    if len(trivial):
        row = rows[trivial[0]]
        yield Finding(
            "self-truth",
            "note",
            f"{part} rows have the label that they are themselves among their labels",
            len(trivial),
            f"{row_example(split, row)} is {label_example(split.labels, own[row])}",
            "Leave such pairs out of the truth if naming a text by itself is no achievement",
        )
    yield from _reversed(part, split, train, own, filtered, severity)


def reversed_pairs(split: Split, train: Split, own: np.ndarray) -> np.ndarray:
    """The (row, label) pairs of a split that stand in train the other way round.

    Args:
        split: Rows.
        train: Train rows.
        own: The label that each row of the split is itself (`own_labels`).
    """
    width = len(split.labels)
    train_own = own_labels(train)[_entry_rows(train)]
    there = train_own >= 0
    known = np.unique(_keys(train_own[there], train.Y.indices[there], width))
    row = _entry_rows(split)
    mine = np.flatnonzero(own[row] >= 0)
    row, label = row[mine], split.Y.indices[mine].astype(np.int64)
    back = _among(_keys(label, own[row], width), known) & (own[row] != label)
    return np.column_stack((row[back], label[back]))


def _reversed(
    part: str, split: Split, train: Split, own: np.ndarray, filtered: np.ndarray, severity: Severity
) -> Iterator[Finding]:
    """Pairs of the split whose reverse train holds."""
    row, label = reversed_pairs(split, train, own).T
    found = np.flatnonzero(~_among(_keys(row, label, len(split.labels)), filtered))
    if len(found):
        first = found[0]
        yield Finding(
            "reciprocal-pair",
            severity,
            f"{part} pairs stand in train the other way round",
            len(found),
            f"{row_example(split, row[first])} and {label_example(split.labels, label[first])}",
            "Leave them out of the truth and add them to the filter pairs",
        )


def _filtered_truth(part: str, split: Split, truth: np.ndarray, filtered: np.ndarray) -> Iterator[Finding]:
    both = np.intersect1d(truth, filtered)
    if len(both):
        row, label = divmod(int(both[0]), max(len(split.labels), 1))
        yield Finding(
            "filtered-truth",
            "note" if part == "train" else "warning",
            f"{part} labels are filter pairs as well, so no prediction of them ever counts",
            len(both),
            f"{row_example(split, row)}: {label_example(split.labels, label)}",
            "Remove them from the labels or from the filter pairs",
        )


def _unique_texts(labels: LabelSpace) -> dict[str, int]:
    """Label by plain text, for the texts that one label alone has."""
    if labels.texts is None:
        return {}
    found: dict[str, int] = {}
    for label, text in enumerate(labels.texts):
        plain = _plain(text)
        found[plain] = -1 if plain in found else label
    found.pop("", None)
    return found


def _plain(text: str) -> str:
    return text.strip().casefold()


def _entry_rows(split: Split) -> np.ndarray:
    """Row of every entry of the label matrix."""
    return np.repeat(np.arange(len(split), dtype=np.int64), np.diff(split.Y.indptr))


def _keys(rows: np.ndarray, labels: np.ndarray, width: int) -> np.ndarray:
    """One number for each (row, label) pair."""
    return np.asarray(rows, np.int64) * max(width, 1) + np.asarray(labels, np.int64)


def _among(keys: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Which keys are in `known`, which is ascending."""
    if not len(known):
        return np.zeros(len(keys), bool)
    return known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys

"""Faults of the labels: of the label space itself, and of the label matrices and filter pairs that point into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepxc.data.checks.finding import Finding, label_example, row_example

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepxc.data.checks.finding import Severity
    from deepxc.data.dataset import Split
    from deepxc.data.label_space import LabelSpace


def label_space_findings(labels: LabelSpace) -> Iterator[Finding]:
    """Labels that cannot be told apart, or that say nothing."""
    yield from _repeated(
        labels,
        labels.ids,
        "duplicate-label-ids",
        "error",
        "label ids repeat an earlier one",
        "Give each its own",
    )
    if list(labels.names) != list(labels.ids):
        yield from _repeated(
            labels,
            labels.names,
            "duplicate-label-names",
            "note",
            "label names repeat an earlier one",
            "Refer to such labels by id, or make their names tell them apart",
        )
    if labels.texts is None:
        return
    if list(labels.texts) not in (list(labels.names), list(labels.ids)):
        yield from _repeated(
            labels,
            labels.texts,
            "duplicate-label-texts",
            "note",
            "label texts repeat an earlier one",
            "Add words that tell such labels apart: systems that read label text see one label",
        )
    empty = [label for label, text in enumerate(labels.texts) if not text.strip()]
    if empty:
        yield Finding(
            "empty-label-text",
            "warning",
            "labels have an empty text",
            len(empty),
            label_example(labels, empty[0]),
            "Fill in their texts, or use a system that does not read label text",
        )


def matrix_findings(part: str, split: Split) -> Iterator[Finding]:
    """What is wrong with the label matrix and the filter pairs of a split, as far as single entries go."""
    Y, width = split.Y, len(split.labels)
    outside = np.flatnonzero((Y.indices < 0) | (Y.indices >= width))
    yield from _entries(
        split,
        outside,
        "label-out-of-range",
        "error",
        f"{part} labels are not in the label space of {width:,}",
        "Count label ids from 0 and list every label",
    )
    bad = np.flatnonzero(~(np.isfinite(Y.data) & (Y.data > 0)))
    yield from _entries(
        split,
        bad,
        "bad-weight",
        "error",
        f"{part} label weights are negative, zero or not a number",
        "Give weights above 0, and leave out labels that do not hold",
    )
    row = _rows(split)
    key = row * max(width, 1) + Y.indices
    order = np.argsort(key, kind="stable")
    yield from _entries(
        split,
        np.sort(order[1:][key[order][1:] == key[order][:-1]]),
        "repeated-label",
        "error",
        f"{part} labels stand twice in a row",
        "List every label once a row",
    )
    unlabelled = np.flatnonzero(np.diff(Y.indptr) == 0)
    if len(unlabelled):
        yield Finding(
            "no-labels",
            "warning",
            f"{part} rows have no labels",
            len(unlabelled),
            row_example(split, unlabelled[0]),
            "Remove them: they teach nothing and count as misses" if part != "train" else "Remove them or add labels",
        )
    pairs = split.filter_pairs
    lost = np.flatnonzero((pairs < 0).any(axis=1) | (pairs[:, 0] >= len(split)) | (pairs[:, 1] >= width))
    if len(lost):
        first = pairs[lost[0]].tolist()
        yield Finding(
            "filter-pair-out-of-range",
            "error",
            f"{part} filter pairs point past the rows or labels",
            len(lost),
            f"pair {int(lost[0])}: row {first[0]}, label {first[1]}",
            "Write filter pairs as row and label, both from 0, for this very split",
        )


def coverage_findings(part: str, split: Split, train: Split) -> Iterator[Finding]:
    """Labels that train never shows; `split` is train itself or one that is measured on."""
    labels = split.labels
    unseen = np.bincount(train.Y.indices, minlength=len(labels)) == 0
    if split is train:
        missing = np.flatnonzero(unseen)
        if len(missing):
            yield Finding(
                "label-without-train-texts",
                "note" if labels.texts is not None else "warning",
                "labels have no train text",
                len(missing),
                label_example(labels, missing[0]),
                "Add texts for them or drop them; only systems that read label text can predict them",
            )
        return
    entries = np.flatnonzero(unseen[split.Y.indices])
    yield from _entries(
        split,
        entries,
        "unseen-truth",
        "note" if labels.texts is not None else "warning",
        f"{part} labels never occur in train",
        "Know that only systems that read label text can get them right",
    )


def _entries(
    split: Split, entries: np.ndarray, code: str, severity: Severity, what: str, remedy: str
) -> Iterator[Finding]:
    """A finding on entries of the label matrix."""
    if len(entries):
        entry = int(entries[0])
        row = int(np.searchsorted(split.Y.indptr, entry, side="right")) - 1
        label = int(split.Y.indices[entry])
        known = label_example(split.labels, label) if 0 <= label < len(split.labels) else f"label {label}"
        yield Finding(code, severity, what, len(entries), f"{row_example(split, row)}: {known}", remedy)


def _repeated(
    labels: LabelSpace, values: Sequence[str], code: str, severity: Severity, what: str, remedy: str
) -> Iterator[Finding]:
    first: dict[str, int] = {}
    repeated = [label for label, value in enumerate(values) if first.setdefault(value, label) != label]
    if repeated:
        label = repeated[0]
        example = f"{label_example(labels, label)}, as label {first[values[label]]}"
        yield Finding(code, severity, what, len(repeated), example, remedy)


def _rows(split: Split) -> np.ndarray:
    """Row of every entry of the label matrix."""
    return np.repeat(np.arange(len(split), dtype=np.int64), np.diff(split.Y.indptr))

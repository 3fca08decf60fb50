"""Texts that stand in a data set more than once, within a split and across train and another split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepxc.data.checks.finding import Finding, row_example

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deepxc.data.checks.finding import Severity
    from deepxc.data.dataset import Split


def repeated_findings(part: str, split: Split) -> Iterator[Finding]:
    """Exact duplicates within one split."""
    if split.texts is None:
        return
    first = first_rows(split.texts)
    repeated = [row for row, text in enumerate(split.texts) if first[text] != row and text.strip()]
    if repeated:
        row = repeated[0]
        yield Finding(
            f"duplicate-{part}",
            "note" if part == "train" else "warning",
            f"{part} texts repeat an earlier one exactly",
            len(repeated),
            f"{row_example(split, row)}, first at {split.at(first[split.texts[row]])}",
            "Merge such rows and unite their labels, unless the repetition carries meaning",
        )


def leak_findings(part: str, split: Split, train: Split, threshold: float | None) -> Iterator[Finding]:
    """Texts of a split that train holds too, exactly or nearly."""
    if split.texts is None or train.texts is None:
        return
    first = first_rows(train.texts)
    exact = np.fromiter((first.get(text, -1) if text.strip() else -1 for text in split.texts), np.int64, len(split))
    yield from _across(
        f"duplicate-train-{part}",
        f"{part} texts stand in train too, letter by letter",
        "Remove them from train or from the other split: what is learnt by heart is not a measure",
        split,
        train,
        exact,
    )
    if threshold is None:
        return
    from deepxc.data.checks.near_duplicates import near_duplicates

    near = near_duplicates(split.texts, train.texts, threshold)
    same = np.where(exact < 0, near.same_words, -1)
    yield from _across(
        f"same-words-train-{part}",
        f"{part} texts stand in train too but for case, spaces or punctuation",
        "Remove them from one side, as exact duplicates",
        split,
        train,
        same,
    )
    yield from _across(
        f"near-duplicate-train-{part}",
        f"{part} texts are nearly the same as a train text",
        "Look at some: numbered series and editions are natural, copies with small edits are a leak",
        split,
        train,
        np.where((exact < 0) & (same < 0), near.similar, -1),
        severity="note",
    )


def first_rows(texts: Sequence[str]) -> dict[str, int]:
    """Where each text stands first."""
    return dict(zip(reversed(texts), range(len(texts) - 1, -1, -1), strict=True))


def _across(
    code: str, what: str, remedy: str, split: Split, train: Split, match: np.ndarray, severity: Severity = "warning"
) -> Iterator[Finding]:
    rows = np.flatnonzero(match >= 0)
    if len(rows):
        example = f"{row_example(split, rows[0])} and {row_example(train, match[rows[0]])}"
        yield Finding(code, severity, what, len(rows), example, remedy)

"""The figures that one wants to know of a data set before anything else."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scipy import sparse

    from deepxc.data.dataset import Dataset, Split
    from deepxc.data.label_space import LabelSpace

TAIL_BELOW, HEAD_FROM = 10, 50  # train texts below which a label is tail, and from which it is head
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class SplitStats:
    """Figures of one split; those of words are None where it has no texts.

    Attributes:
        rows: Texts.
        pairs: (text, label) pairs.
        labels_per_text: Mean number of labels of a text.
        texts_per_label: Mean number of texts of a label, over the labels that occur.
        labels_used: Labels that occur.
        unlabelled: Texts without labels.
        filter_pairs: Pairs left out of scoring.
        features: Columns of the feature matrix, None where there is none.
        words_per_text: Mean number of words of a text.
        longest_text: Words of the longest text.
        vocabulary: Different words, whatever their case.
        memory: Bytes that the split takes.
    """

    rows: int
    pairs: int
    labels_per_text: float
    texts_per_label: float
    labels_used: int
    unlabelled: int
    filter_pairs: int
    features: int | None
    words_per_text: float | None
    longest_text: int | None
    vocabulary: int | None
    memory: int


@dataclass(frozen=True)
class FrequencyBand:
    """Labels of a kind: head, torso, tail, or without train texts."""

    labels: int
    share_of_labels: float
    share_of_pairs: float


@dataclass(frozen=True)
class Stats:
    """Figures of a data set.

    Attributes:
        name: Name of the data set.
        labels: Size of the label space.
        labels_with_text: Labels that have a text.
        words_per_label: Mean number of words of a label's text; None where labels have none.
        frequency_quantiles: Train texts per label at some quantiles of the labels, by the quantile in percent.
        bands: Labels by train frequency: `head` has 50 texts or more, `torso` 10 or more, `tail` fewer, `unseen`
            none; with their shares of labels and of train pairs.
        splits: Figures of each split by name.
        memory: Bytes that the data set takes.
    """

    name: str
    labels: int
    labels_with_text: int
    words_per_label: float | None
    frequency_quantiles: dict[str, float]
    bands: dict[str, FrequencyBand]
    splits: dict[str, SplitStats]
    memory: int

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(_table(self))


def dataset_stats(dataset: Dataset) -> Stats:
    """Count a data set."""
    named = {"train": dataset.train, "validation": dataset.validation, "test": dataset.test}
    splits = {part: split_stats(split) for part, split in named.items() if split is not None}
    labels = dataset.labels
    frequencies = np.bincount(dataset.train.Y.indices, minlength=len(labels))
    words = None if labels.texts is None else _words(labels.texts)
    quantiles = np.quantile(frequencies, QUANTILES, method="lower") if len(frequencies) else np.zeros(len(QUANTILES))
    return Stats(
        name=dataset.name,
        labels=len(labels),
        labels_with_text=0 if labels.texts is None else sum(1 for text in labels.texts if text.strip()),
        words_per_label=None if words is None else _mean(words[0]),
        frequency_quantiles={f"{100 * q:g}": float(n) for q, n in zip(QUANTILES, quantiles, strict=True)},
        bands=_bands(frequencies),
        splits=splits,
        memory=_label_memory(labels) + sum(split.memory for split in splits.values()),
    )


def split_stats(split: Split) -> SplitStats:
    """Count a split."""
    per_row = np.diff(split.Y.indptr)
    used = int(np.count_nonzero(np.bincount(split.Y.indices, minlength=len(split.labels))))
    words = None if split.texts is None else _words(split.texts)
    pairs = int(split.Y.nnz)
    return SplitStats(
        rows=len(split),
        pairs=pairs,
        labels_per_text=_mean(per_row),
        texts_per_label=pairs / used if used else 0.0,
        labels_used=used,
        unlabelled=int(np.count_nonzero(per_row == 0)),
        filter_pairs=len(split.filter_pairs),
        features=None if split.X is None else int(split.X.shape[1]),
        words_per_text=None if words is None else _mean(words[0]),
        longest_text=None if words is None else int(words[0].max(initial=0)),
        vocabulary=None if words is None else words[1],
        memory=_split_memory(split),
    )


def _bands(frequencies: np.ndarray) -> dict[str, FrequencyBand]:
    kinds = {
        "head": frequencies >= HEAD_FROM,
        "torso": (frequencies >= TAIL_BELOW) & (frequencies < HEAD_FROM),
        "tail": (frequencies > 0) & (frequencies < TAIL_BELOW),
        "unseen": frequencies == 0,
    }
    labels, pairs = max(len(frequencies), 1), max(int(frequencies.sum()), 1)
    return {
        kind: FrequencyBand(int(among.sum()), float(among.sum() / labels), float(frequencies[among].sum() / pairs))
        for kind, among in kinds.items()
    }


def _words(texts: Sequence[str]) -> tuple[np.ndarray, int]:
    """Words of each text, and how many different ones there are."""
    vocabulary: set[str] = set()
    counts = np.empty(len(texts), np.int64)
    for row, text in enumerate(texts):
        words = _WORD.findall(text.lower())
        vocabulary.update(words)
        counts[row] = len(words)
    return counts, len(vocabulary)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0


def _split_memory(split: Split) -> int:
    return (
        _string_memory(split.texts, split.ids)
        + _array_memory(split.Y)
        + (0 if split.X is None else _array_memory(split.X))
        + split.filter_pairs.nbytes
    )


def _label_memory(labels: LabelSpace) -> int:
    frequencies = 0 if labels.frequencies is None else labels.frequencies.nbytes
    features = 0 if labels.features is None else _array_memory(labels.features)
    return _string_memory(labels.ids, labels.names, labels.texts) + frequencies + features


def _string_memory(*parts: Iterable[str] | None) -> int:
    """Bytes of lists of strings; a list that occurs twice counts once."""
    total = 0
    for part in {id(part): part for part in parts if part is not None}.values():
        total += sys.getsizeof(part) + sum(map(sys.getsizeof, part))
    return total


def _array_memory(matrix: sparse.csr_matrix | np.ndarray) -> int:
    if isinstance(matrix, np.ndarray):
        return matrix.nbytes
    return matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes


def _table(stats: Stats) -> list[str]:
    """The figures for a reader."""
    parts = list(stats.splits)
    lines = [f"{stats.name}: {stats.labels:,} labels, {stats.labels_with_text:,} with text"]
    if stats.words_per_label is not None and stats.labels_with_text:
        lines[0] += f" ({stats.words_per_label:.1f} words each)"
    lines += ["", " " * 20 + "".join(f"{part:>14}" for part in parts)]
    rows: tuple[tuple[str, str, str], ...] = (
        ("texts", "rows", ",d"),
        ("pairs", "pairs", ",d"),
        ("labels per text", "labels_per_text", ".2f"),
        ("texts per label", "texts_per_label", ".2f"),
        ("labels that occur", "labels_used", ",d"),
        ("texts without label", "unlabelled", ",d"),
        ("filter pairs", "filter_pairs", ",d"),
        ("features", "features", ",d"),
        ("words per text", "words_per_text", ".1f"),
        ("longest text", "longest_text", ",d"),
        ("vocabulary", "vocabulary", ",d"),
    )
    for title, field, form in rows:
        values = [getattr(stats.splits[part], field) for part in parts]
        if any(value is not None for value in values):
            lines.append(f"{title:<20}" + "".join(f"{'-' if v is None else format(v, form):>14}" for v in values))
    lines.append(f"{'memory, MiB':<20}" + "".join(f"{stats.splits[part].memory / 2**20:>14.1f}" for part in parts))
    lines += ["", f"{'labels':<20}{'number':>14}{'of labels':>14}{'of pairs':>14}"]
    wide = {"head": f"head ({HEAD_FROM}+ texts)", "torso": f"torso ({TAIL_BELOW}-{HEAD_FROM - 1})"}
    wide |= {"tail": f"tail (1-{TAIL_BELOW - 1})", "unseen": "without train text"}
    for kind, band in stats.bands.items():
        shares = f"{band.share_of_labels:>14.1%}{band.share_of_pairs:>14.1%}"
        lines.append(f"{wide[kind]:<20}{band.labels:>14,}{shares}")
    lines += ["", "train texts per label at percentile"]
    lines.append("".join(f"{name:>8}" for name in stats.frequency_quantiles))
    lines.append("".join(f"{value:>8,.0f}" for value in stats.frequency_quantiles.values()))
    lines += ["", f"memory in all: {stats.memory / 2**20:,.1f} MiB"]
    return lines

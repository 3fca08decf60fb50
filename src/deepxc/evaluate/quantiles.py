"""Where a score comes from: labels binned by how often they occur in train, rarest bin first.

Two ways to bin. *Equal volume*: labels in order of frequency are cut so that each bin holds about the same number of
train occurrences, which puts a handful of labels into the last bin and most labels into the first. *Head, torso,
tail*: by thresholds on the frequency itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deepxc.errors import UserError
from deepxc.evaluate.judging import checked_ks, judge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from deepxc.evaluate.judging import Judged
    from deepxc.evaluate.ranking import Predictions, Sparse


@dataclass(frozen=True, eq=False)
class LabelBins:
    """A bin for every label.

    Attributes:
        names: What each bin is called, rarest labels first.
        of_label: Bin of each label, shape (L,).
        frequencies: Train texts per label, shape (L,).
    """

    names: tuple[str, ...]
    of_label: np.ndarray
    frequencies: np.ndarray

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> np.ndarray:
        """Labels per bin."""
        return np.bincount(self.of_label, minlength=len(self))

    @property
    def volumes(self) -> np.ndarray:
        """Train occurrences per bin."""
        return np.bincount(self.of_label, weights=self.frequencies, minlength=len(self)).astype(np.int64)


def equal_volume_bins(frequencies: ArrayLike, n_bins: int = 5) -> LabelBins:
    """Bins that each hold about the same share of the train occurrences.

    A label goes where the middle of its occurrences lies, so no bin misses its share by more than the occurrences of
    the labels at its two edges. Equally frequent labels are told apart by label id. Labels that never occur in train
    join the rarest bin.

    Args:
        frequencies: Train texts per label.
        n_bins: How many bins.
    """
    counts = _checked_frequencies(frequencies)
    if n_bins < 1:
        raise UserError(f"{n_bins} bins hold no labels", where="n_bins", remedy="Give 1 or more")
    if not counts.sum():
        raise UserError("no label occurs in train", where="frequencies", remedy="Count them over the train split")
    order = np.argsort(counts, kind="stable")
    middle = np.cumsum(counts[order]) - counts[order] / 2
    of_label = np.empty(len(counts), np.int64)
    of_label[order] = np.minimum(middle * n_bins / counts.sum(), n_bins - 1).astype(np.int64)
    return LabelBins(tuple(str(b + 1) for b in range(n_bins)), of_label, counts)


def head_torso_tail(frequencies: ArrayLike, *, tail_below: int = 10, head_from: int = 50) -> LabelBins:
    """Tail labels occur in fewer than `tail_below` train texts, head labels in `head_from` or more.

    The defaults are those of the DEXA paper, which calls labels with fewer than 10 train texts tail and gives a
    cluster of their own to those with 50 or more.
    """
    counts = _checked_frequencies(frequencies)
    if not 0 < tail_below <= head_from:
        raise UserError(
            f"tail below {tail_below} and head from {head_from} leave no order",
            where="head_torso_tail",
            remedy="Give 0 < tail_below <= head_from",
        )
    return LabelBins(("tail", "torso", "head"), np.searchsorted((tail_below, head_from), counts, side="right"), counts)


@dataclass(frozen=True, eq=False)
class BinReport:
    """Metrics split by bin; every array has one entry per bin, in percent.

    Attributes:
        bins: The bins.
        contribution: What a bin's labels add to the whole metric (`P@k`, `R@k`): the bins sum to the metric.
        within: The metric among a bin's labels alone. `P@k`: hits among the answers that name a label of the bin.
            `R@k`: the share of a text's true labels in the bin that were answered, averaged over the texts that have
            such labels. 0 where there is nothing to average.
        answers: Answers at the largest k that name a label of the bin.
        positives: True labels of the bin.
    """

    bins: LabelBins
    contribution: dict[str, np.ndarray]
    within: dict[str, np.ndarray]
    answers: np.ndarray
    positives: np.ndarray

    def as_dict(self) -> dict[str, Any]:
        """Plain lists, ready for JSON."""
        return {
            "bins": list(self.bins.names),
            "labels": self.bins.sizes.tolist(),
            "train_occurrences": self.bins.volumes.tolist(),
            "positives": self.positives.tolist(),
            "contribution": {key: value.tolist() for key, value in self.contribution.items()},
            "within": {key: value.tolist() for key, value in self.within.items()},
        }

    def table(self, digits: int = 2) -> str:
        """Contributions as text, a row per bin and a last row with the sums."""
        keys = list(self.contribution)
        lines = [f"{'bin':8}{'labels':>10}{'volume':>12}" + "".join(f"{key:>9}" for key in keys)]
        for b, name in enumerate(self.bins.names):
            cells = "".join(f"{self.contribution[key][b]:9.{digits}f}" for key in keys)
            lines.append(f"{name:8}{self.bins.sizes[b]:10,}{self.bins.volumes[b]:12,}{cells}")
        sums = "".join(f"{self.contribution[key].sum():9.{digits}f}" for key in keys)
        lines.append(f"{'all':8}{len(self.bins.of_label):10,}{self.bins.volumes.sum():12,}{sums}")
        return "\n".join(lines)


def evaluate_bins(
    predictions: Predictions,
    Y: Sparse,
    bins: LabelBins,
    *,
    ks: Iterable[int] = (1, 3, 5, 10),
    filter_pairs: ArrayLike | None = None,
    filter_truth: bool = False,
) -> BinReport:
    """Split precision and recall by label frequency.

    Args:
        predictions: As for `deepxc.evaluate.metrics.evaluate`.
        Y: Sparse truth.
        bins: A bin for every label of the truth.
        ks: Cut-offs.
        filter_pairs: (row, label) pairs that are no answers.
        filter_truth: Take the pairs out of the truth too.
    """
    ks = checked_ks(ks)
    judged = judge(predictions, Y, ks[-1], filter_pairs=filter_pairs, filter_truth=filter_truth)
    if len(bins.of_label) != judged.n_labels:
        raise UserError(
            f"bins of {len(bins.of_label)} labels for a truth of {judged.n_labels}",
            where="bins",
            remedy="Count the frequencies over the train split of the same label space",
        )
    hit = _Tally(judged, bins, judged.hits)
    named = _Tally(judged, bins, judged.ids >= 0)
    true_in_bin = _true_per_text_and_bin(judged, bins)
    has_any = np.maximum((true_in_bin > 0).sum(axis=0), 1)
    n = len(judged.ids)
    contribution: dict[str, np.ndarray] = {}
    within: dict[str, np.ndarray] = {}
    for k in ks:
        contribution[f"P@{k}"] = 100.0 * hit.total(k) / (n * k)
        within[f"P@{k}"] = 100.0 * hit.total(k) / np.maximum(named.total(k), 1)
    share_all = 1.0 / np.maximum(judged.positives, 1)
    share_own = 1.0 / np.maximum(true_in_bin, 1)
    for k in ks:
        contribution[f"R@{k}"] = 100.0 * hit.total(k, share_all[hit.row]) / n
        within[f"R@{k}"] = 100.0 * hit.total(k, share_own[hit.row, hit.bin]) / has_any
    return BinReport(bins, contribution, within, named.total(ks[-1]), true_in_bin.sum(axis=0))


class _Tally:
    """Some of the answers, as flat arrays, to be counted per bin."""

    def __init__(self, judged: Judged, bins: LabelBins, chosen: np.ndarray) -> None:
        self.row, self.rank = np.nonzero(chosen)
        self.bin = bins.of_label[judged.ids[chosen]]
        self.n_bins = len(bins)

    def total(self, k: int, weight: np.ndarray | None = None) -> np.ndarray:
        """Answers (or their summed weights) at ranks up to k, per bin."""
        top = self.rank < k
        return np.bincount(self.bin[top], None if weight is None else weight[top], minlength=self.n_bins)


def _true_per_text_and_bin(judged: Judged, bins: LabelBins) -> np.ndarray:
    """True labels of each text in each bin, shape (n, bins)."""
    n, n_bins = len(judged.ids), len(bins)
    rows = np.repeat(np.arange(n), judged.positives)
    cells = rows * n_bins + bins.of_label[judged.truth.indices]
    return np.bincount(cells, minlength=n * n_bins).reshape(n, n_bins)


def _checked_frequencies(frequencies: ArrayLike) -> np.ndarray:
    counts = np.asarray(frequencies)
    if counts.ndim != 1 or counts.dtype.kind not in "iuf" or not (np.isfinite(counts) & (counts >= 0)).all():
        raise UserError(
            f"{counts.dtype} array of shape {counts.shape} holds no label frequencies",
            where="frequencies",
            remedy="Give one count of 0 or more a label, such as LabelSpace.frequencies",
        )
    return counts.astype(np.float64).round().astype(np.int64)

"""Ranking metrics of extreme classification, in percent.

With hit_ij = 1 where the j-th answer of text i is true, d_j = 1 / log2(j + 1), y_i true labels and inverse
propensities p_l, each metric at k is

| key     | meaning                                                                                           |
|---------|---------------------------------------------------------------------------------------------------|
| P@k     | mean_i of sum_j hit_ij / k                                                                        |
| nDCG@k  | mean_i of sum_j hit_ij d_j / I_ik, with I_ik = d_1 + ... + d_min(k, y_i)                          |
| PSP@k   | mean_i of sum_j p hit_ij, divided by mean_i of the same sum for the best possible answers         |
| PSnDCG@k| mean_i of sum_j p hit_ij d_j / I_ik, divided by the same mean for the best possible answers       |
| R@k     | mean_i of sum_j hit_ij / y_i                                                                      |
| C@k     | distinct labels answered correctly at least once, divided by distinct labels in the truth         |

Means run over *all* texts: one without true labels counts 0. A text with fewer than k answers has misses in the free
places. PSP and PSnDCG are ratios of means, never means of ratios, so they cannot exceed 100.
Ties: score descending, then label id ascending. A ratio whose denominator is 0 is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from deepxc.errors import UserError
from deepxc.evaluate.judging import checked_ks, judge
from deepxc.evaluate.ranking import best_stored

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from deepxc.evaluate.judging import Judged
    from deepxc.evaluate.ranking import Predictions, Sparse


@dataclass(frozen=True, eq=False)
class RowValues:
    """What each text adds to one metric, so that texts can be resampled.

    Attributes:
        gained: Per text, shape (n,).
        attainable: What the best possible answers would gain, for ratios of means; None for plain means.
    """

    gained: np.ndarray
    attainable: np.ndarray | None = None

    def value(self) -> float:
        """The metric over all texts, in percent."""
        if self.attainable is None:
            return 100.0 * float(self.gained.mean())
        return 100.0 * _ratio(float(self.gained.mean()), float(self.attainable.mean()))


@dataclass(frozen=True, eq=False)
class Report:
    """Metrics of one run.

    Attributes:
        values: Percent by key, such as `P@1`, `nDCG@5`, `PSP@3`, `R@10`, `C@5`.
        rows: What each text adds, by the same keys except coverage, which is no sum over texts.
        n_texts: Texts measured.
        short_texts: Texts with fewer answers than the largest k.
        truth: Fingerprint of the truth that was measured against.
    """

    values: dict[str, float]
    rows: dict[str, RowValues] = field(repr=False)
    n_texts: int
    short_texts: int
    truth: str

    def __getitem__(self, key: str) -> float:
        return self.values[key]

    def as_dict(self) -> dict[str, float]:
        """The values alone, ready for JSON."""
        return dict(self.values)

    def table(self, digits: int = 2) -> str:
        """The values as text, a row per metric and a column per k."""
        names = list(dict.fromkeys(key.split("@")[0] for key in self.values))
        ks = list(dict.fromkeys(key.split("@")[1] for key in self.values))
        lines = [f"{'':8}" + "".join(f"{'@' + k:>9}" for k in ks)]
        lines += [f"{name:8}" + "".join(f"{self.values[f'{name}@{k}']:9.{digits}f}" for k in ks) for name in names]
        lines.append(f"{self.n_texts:,} texts, percent")
        if self.short_texts:
            lines.append(f"{self.short_texts:,} texts have fewer than {ks[-1]} answers")
        return "\n".join(lines)


def evaluate(
    predictions: Predictions,
    Y: Sparse,
    *,
    ks: Iterable[int] = (1, 3, 5, 10),
    inverse_propensity: ArrayLike | None = None,
    filter_pairs: ArrayLike | None = None,
    filter_truth: bool = False,
) -> Report:
    """Measure predictions against the truth.

    Args:
        predictions: A `TopK`; or sparse scores (n x L), of which stored entries are ranked, zeros included; or an
            integer array of ids (n x k), best first, padded with -1.
        Y: Sparse truth (n x L); any weight above 0 makes a label true.
        ks: Cut-offs.
        inverse_propensity: One weight per label, counted on train; PSP and PSnDCG are left out where it is None.
        filter_pairs: (row, label) pairs that are no answers. They leave before the cut at k, so predict
            `needed_k(max(ks), filter_pairs)` labels a text.
        filter_truth: Take the pairs out of the truth too, for data whose truth still holds them.

    Raises:
        UserError: The arguments do not fit together; the message names both sides.
    """
    ks = checked_ks(ks)
    judged = judge(predictions, Y, ks[-1], filter_pairs=filter_pairs, filter_truth=filter_truth)
    discount = 1.0 / np.log2(np.arange(ks[-1]) + 2.0)
    level = np.ones(ks[-1])
    ideal = _ideal_gain(judged.positives, ks, discount)

    found = _sums(judged.hits, level, ks)
    tables: dict[str, tuple[np.ndarray, np.ndarray | None]] = {
        "P": (found / np.array(ks)[:, None], None),
        "nDCG": (_sums(judged.hits, discount, ks) / ideal, None),
        "R": (found / np.maximum(judged.positives, 1), None),
    }
    if inverse_propensity is not None:
        weight = _checked_weights(inverse_propensity, judged.n_labels)
        gain, best = judged.hits * weight[judged.ids], _best_gain(judged, weight, ks[-1])
        tables["PSP"] = (_sums(gain, level, ks), _sums(best, level, ks))
        tables["PSnDCG"] = (_sums(gain, discount, ks) / ideal, _sums(best, discount, ks) / ideal)

    rows: dict[str, RowValues] = {}
    for name in (name for name in _ORDER if name in tables):
        gained, attainable = tables[name]
        for j, k in enumerate(ks):
            rows[f"{name}@{k}"] = RowValues(gained[j], None if attainable is None else attainable[j])
    values = {key: row.value() for key, row in rows.items()}
    values |= {f"C@{k}": value for k, value in zip(ks, _coverage(judged, ks), strict=True)}
    return Report(values, rows, len(judged.ids), int((judged.ids[:, -1] < 0).sum()), judged.truth_fingerprint())


_ORDER = ("P", "nDCG", "PSP", "PSnDCG", "R")


def _sums(values: np.ndarray, weights: np.ndarray, ks: tuple[int, ...]) -> np.ndarray:
    """Weighted sum of the first k columns for each k, shape (ks, n).

    Rank by rank rather than as a matrix product: the arrays are thin, and threads that start for so little work cost
    more than they give on a busy machine.
    """
    sums = np.empty((len(ks), len(values)))
    running = np.zeros(len(values))
    done = 0
    for j, k in enumerate(ks):
        for rank in range(done, k):
            running += values[:, rank] * weights[rank]
        sums[j], done = running, k
    return sums


def _ideal_gain(positives: np.ndarray, ks: tuple[int, ...], discount: np.ndarray) -> np.ndarray:
    """Discounted gain of a perfect ranking at each k, shape (ks, n); 1 for texts without true labels."""
    total = np.r_[1.0, np.cumsum(discount)]
    return total[np.minimum(positives, np.array(ks)[:, None])]


def _best_gain(judged: Judged, weight: np.ndarray, k: int) -> np.ndarray:
    """Weights of the k most valuable true labels of each text, descending, 0 where there are fewer; shape (n, k)."""
    truth = judged.truth
    valued = sparse.csr_matrix((weight[truth.indices], truth.indices, truth.indptr), shape=truth.shape)
    best = best_stored(valued, k)
    return weight[best] * (best >= 0)


def _coverage(judged: Judged, ks: tuple[int, ...]) -> list[float]:
    """Share of the truth's labels that are answered correctly at least once, in percent, for each k."""
    known = np.zeros(judged.n_labels, bool)
    known[judged.truth.indices] = True
    first = np.full(judged.n_labels, ks[-1])  # best rank at which each label was a hit
    for rank in range(ks[-1] - 1, -1, -1):
        first[judged.ids[judged.hits[:, rank], rank]] = rank
    return [100.0 * _ratio(int((first < k).sum()), int(known.sum())) for k in ks]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _checked_weights(inverse_propensity: ArrayLike, n_labels: int) -> np.ndarray:
    weight = np.asarray(inverse_propensity, dtype=np.float64)
    if weight.shape != (n_labels,):
        raise UserError(
            f"{weight.shape} inverse propensities for {n_labels} labels",
            where="inverse_propensity",
            remedy="Give one number a label, counted on the train split",
        )
    if not (np.isfinite(weight) & (weight > 0)).all():
        label = int(np.flatnonzero(~(np.isfinite(weight) & (weight > 0)))[0])
        raise UserError(
            f"label {label} has inverse propensity {weight[label]}",
            where="inverse_propensity",
            remedy="Give finite numbers above 0",
        )
    return weight

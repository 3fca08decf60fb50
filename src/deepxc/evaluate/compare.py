"""Is run B better than run A, or was it luck? A paired bootstrap over the texts.

Texts are drawn with replacement, the same draw for both runs, and each metric's difference is measured on every draw.
Ratios of means (PSP, PSnDCG) resample numerator and denominator together. Coverage is no sum over texts and is left
out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepxc.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deepxc.evaluate.metrics import Report

_BLOCK = 1 << 22  # drawn texts held at a time


@dataclass(frozen=True)
class Difference:
    """One metric of two runs, in percent.

    Attributes:
        metric: Its key, such as `P@1`.
        first: Value of the first run.
        second: Value of the second run.
        difference: Second minus first.
        low: Lower end of the confidence interval of the difference.
        high: Upper end.
        p_value: Two-sided: how easily resampling turns the difference to zero or its other side.
    """

    metric: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side.

    Attributes:
        differences: One entry a metric.
        confidence: Share of resamples that each interval spans.
        resamples: How often the texts were drawn.
        seed: Seed of the draws.
    """

    differences: tuple[Difference, ...]
    confidence: float
    resamples: int
    seed: int

    def __getitem__(self, metric: str) -> Difference:
        for entry in self.differences:
            if entry.metric == metric:
                return entry
        raise KeyError(metric)

    def as_dict(self) -> dict[str, dict[str, float]]:
        """Plain numbers by metric, ready for JSON."""
        parts = ("first", "second", "difference", "low", "high", "p_value")
        return {e.metric: {part: getattr(e, part) for part in parts} for e in self.differences}

    def table(self, names: tuple[str, str] = ("first", "second")) -> str:
        """The differences as text, a row per metric."""
        interval = f"{100 * self.confidence:g} % interval"
        lines = [f"{'':10}{names[0][:11]:>12}{names[1][:11]:>12}{'difference':>12}{interval:>20}{'p':>9}"]
        for e in self.differences:
            span = f"[{e.low:+.2f}, {e.high:+.2f}]"
            lines.append(f"{e.metric:10}{e.first:12.2f}{e.second:12.2f}{e.difference:+12.2f}{span:>20}{e.p_value:9.4f}")
        lines.append(f"{self.resamples:,} paired resamples of the texts, seed {self.seed}")
        return "\n".join(lines)


def compare(
    first: Report,
    second: Report,
    *,
    metrics: Iterable[str] | None = None,
    resamples: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Compare two runs on the same texts.

    Args:
        first: Report of the first run.
        second: Report of the second run, on the same truth.
        metrics: Keys to compare, such as `P@1`; all that both runs have, where None.
        resamples: How often to draw the texts.
        confidence: Share of resamples that the intervals span, between 0 and 1.
        seed: Seed of the draws.

    Raises:
        UserError: The runs were not measured on the same ground, or lack a metric that was asked for.
    """
    keys = _shared_metrics(first, second, metrics)
    if not (0 < confidence < 1 and resamples >= 1):
        raise UserError(
            f"confidence {confidence} with {resamples} resamples is no interval",
            where="compare",
            remedy="Give a confidence between 0 and 1 and at least 1 resample",
        )
    gains, wholes = _columns(first, second, keys)
    drawn = _resampled(gains, wholes, resamples, seed)
    edge = (1 - confidence) / 2
    low, high = np.quantile(drawn, (edge, 1 - edge), axis=0)
    below, above = (drawn <= 0).sum(axis=0), (drawn >= 0).sum(axis=0)
    p = np.minimum(2 * (1 + np.minimum(below, above)) / (1 + resamples), 1.0)
    entries = []
    for j, key in enumerate(keys):
        a, b = first.values[key], second.values[key]
        entries.append(Difference(key, a, b, b - a, float(low[j]), float(high[j]), float(p[j])))
    return Comparison(tuple(entries), confidence, resamples, seed)


def _shared_metrics(first: Report, second: Report, metrics: Iterable[str] | None) -> list[str]:
    if first.n_texts != second.n_texts:
        raise UserError(
            f"the first run has {first.n_texts} texts and the second {second.n_texts}",
            where="compare",
            remedy="Measure both runs on the same texts",
        )
    if first.truth != second.truth:
        raise UserError(
            "the two runs were measured against different truths",
            where="compare",
            remedy="Measure both runs against the same labels, filtered alike",
        )
    keys = [key for key in first.rows if key in second.rows] if metrics is None else list(metrics)
    for key in keys:
        if key not in first.rows or key not in second.rows:
            remedy = f"Choose among {', '.join(key for key in first.rows if key in second.rows)}"
            raise UserError(f"{key} cannot be compared", where="metrics", remedy=remedy)
    if not keys:
        raise UserError("the two runs have no metric in common", where="metrics", remedy="Measure both at the same k")
    return keys


def _columns(first: Report, second: Report, keys: list[str]) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """What the second run gains over the first, per text and metric, and the denominators of the ratios."""
    gains = np.empty((first.n_texts, len(keys)))
    wholes: dict[int, np.ndarray] = {}
    for j, key in enumerate(keys):
        a, b = first.rows[key], second.rows[key]
        np.subtract(b.gained, a.gained, out=gains[:, j])
        if a.attainable is not None and b.attainable is not None:
            if not np.array_equal(a.attainable, b.attainable):
                raise UserError(
                    f"{key} was measured with different inverse propensities",
                    where="compare",
                    remedy="Measure both runs with the propensities of the same train split",
                )
            wholes[j] = a.attainable
    return gains, wholes


def _resampled(gains: np.ndarray, wholes: dict[int, np.ndarray], resamples: int, seed: int) -> np.ndarray:
    """Difference of each metric in percent on each draw, shape (resamples, metrics)."""
    n, m = gains.shape
    columns = np.column_stack([gains, *wholes.values()])
    sums = np.concatenate([times @ columns for times in _draws(n, resamples, seed)])
    whole = np.full((resamples, m), float(n))
    whole[:, list(wholes)] = sums[:, m:]
    difference = np.divide(sums[:, :m], whole, out=np.zeros((resamples, m)), where=whole > 0)
    # Thread counts change the order of summation and with it the last bits; what is left does not depend on them.
    return np.round(100.0 * difference, 9)


def _draws(n: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each text is drawn, in blocks of shape (draws, n)."""
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK // n)
    for start in range(0, resamples, block):
        times = np.empty((min(block, resamples - start), n))
        for row in times:  # counted draw by draw: the counts of one fit the cache
            row[:] = np.bincount(rng.integers(0, n, size=n, dtype=np.int32), minlength=n)
        yield times

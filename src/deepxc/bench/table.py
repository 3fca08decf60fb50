"""The comparison as text: one table in three bands over the same contestants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepxc.bench.outcome import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepxc.bench.outcome import Comparison, Outcome

_COSTS = (
    ("train s", "fit_s"),
    ("no tokens", "train_s"),
    ("CPU s", "fit_cpu_s"),
    ("p50 us", "p50_us"),
    ("p99 us", "p99_us"),
    ("texts/s", "queries_per_s"),
    ("peak MiB", "peak_mib"),
    ("model MiB", "model_mib"),
)
_NONE = "-"
_STATUS = {"missing": "not installed", "failed": "failed"}


def table(comparison: Comparison) -> str:
    """Accuracy, costs, and training time as a multiple of each peer's; who has no figures says why."""
    lines = [_headline(comparison), ""]
    width = max(len("percent"), *(len(outcome.name) for outcome in comparison.outcomes)) + 1
    lines += _band("percent", width, METRICS, comparison, _metric_cells)
    lines += ["", *_band("cost", width, [title for title, _ in _COSTS], comparison, _cost_cells)]
    peers = [peer.name for peer in comparison.peers]
    if peers:
        heads = [*peers, "best peer"]
        lines += ["", *_band("time as multiple of", max(width, 20), heads, comparison, _ratio_cells(comparison))]
        best = comparison.best_peer
        assert best is not None
        lines.append(f"best peer: {best.name}, which has the highest P@1 of them")
    problems = [outcome for outcome in comparison.outcomes if outcome.status != "ok"]
    if problems:
        lines += ["", *(_problem(outcome) for outcome in problems)]
    return "\n".join(lines)


def _headline(comparison: Comparison) -> str:
    sizes = comparison.sizes
    words = [f"{comparison.data}"]
    if sizes:
        words.append(f"{sizes['train_texts']:,} train texts")
        words.append(f"{sizes['texts']:,} {comparison.part} texts")
        words.append(f"{sizes['labels']:,} labels")
        if sizes["filter_pairs"]:
            words.append(f"{sizes['filter_pairs']:,} pairs filtered")
    words.append(f"{comparison.threads} thread{'s' if comparison.threads > 1 else ''}")
    if comparison.repeat > 1:
        words.append(f"medians of {comparison.repeat} rounds")
    return ", ".join(words)


def _band(
    corner: str,
    width: int,
    heads: list[str] | tuple[str, ...],
    comparison: Comparison,
    cells: Callable[[Outcome], list[str]],
) -> list[str]:
    columns = [max(len(head), 7) + 2 for head in heads]
    lines = [f"{corner:{width}}" + "".join(f"{head:>{size}}" for head, size in zip(heads, columns, strict=True))]
    for outcome in comparison.outcomes:
        if outcome.status != "ok":
            lines.append(f"{outcome.name:{width}}  {_STATUS[outcome.status]}")
            continue
        filled = zip(cells(outcome), columns, strict=True)
        lines.append(f"{outcome.name:{width}}" + "".join(f"{cell:>{size}}" for cell, size in filled))
    return lines


def _metric_cells(outcome: Outcome) -> list[str]:
    return [f"{outcome.metrics[name]:.2f}" if name in outcome.metrics else _NONE for name in METRICS]


def _cost_cells(outcome: Outcome) -> list[str]:
    return [_number(outcome.costs.get(key)) for _, key in _COSTS]


def _ratio_cells(comparison: Comparison) -> Callable[[Outcome], list[str]]:
    best = comparison.best_peer
    assert best is not None
    name_of_best = best.name

    def cells(outcome: Outcome) -> list[str]:
        ratios = comparison.ratios(outcome)
        return [f"{ratios[name]:.2f}x" for name in (*ratios, name_of_best)]

    return cells


def _number(value: float | None) -> str:
    """Three digits that matter, thousands apart."""
    if value is None or value != value:
        return _NONE
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _problem(outcome: Outcome) -> str:
    remedy = f". {outcome.remedy}" if outcome.remedy else ""
    return f"{outcome.name}: {outcome.problem}{remedy}"

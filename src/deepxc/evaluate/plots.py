"""Pictures of reports. Needs matplotlib, which is not installed with deepxc itself."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deepxc.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepxc.evaluate.quantiles import BinReport


def plot_bins(reports: Mapping[str, BinReport], path: str | Path, *, metric: str = "P@5") -> None:
    """Draw what each frequency bin adds to a metric, one group of bars per bin and one bar per run.

    Args:
        reports: Reports by the name of their run, all over the same bins.
        path: The PNG to write; it appears under its name only when it is whole.
        metric: `P@k` or `R@k`, as measured in every report.
    """
    _check(reports, metric)
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("plots need matplotlib", remedy="Install it with: pip install 'deepxc[bench]'") from None
    bins = next(iter(reports.values())).bins
    figure = Figure(figsize=(1.5 + 1.3 * len(bins), 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    width = 0.8 / len(reports)
    for i, (name, report) in enumerate(reports.items()):
        shares = report.contribution[metric]
        axes.bar(np.arange(len(bins)) + (i - (len(reports) - 1) / 2) * width, shares, width, label=name)
    axes.set_xticks(
        np.arange(len(bins)), [f"{b}\n{size:,} labels" for b, size in zip(bins.names, bins.sizes, strict=True)]
    )
    axes.set_xlabel("labels by train frequency, rarest first")
    axes.set_ylabel(f"contribution to {metric} (points)")
    axes.legend()
    target = Path(path)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as own:
            figure.savefig(Path(own) / "plot.png", dpi=150, format="png")
            (Path(own) / "plot.png").replace(target)
    except OSError as fault:
        raise UserError(
            f"could not be written ({fault.strerror})", where=str(target), remedy="Give a file in a folder with space"
        ) from fault


def _check(reports: Mapping[str, BinReport], metric: str) -> None:
    if not reports:
        raise UserError("there is no run to draw", where="reports", remedy="Give at least one report")
    first = next(iter(reports.values()))
    for name, report in reports.items():
        if metric not in report.contribution:
            known = ", ".join(report.contribution)
            raise UserError(f"run {name} has no {metric}", where="metric", remedy=f"Choose among {known}")
        if not np.array_equal(report.bins.of_label, first.bins.of_label):
            raise UserError(
                f"run {name} is split by other bins", where="reports", remedy="Use one LabelBins for all runs"
            )

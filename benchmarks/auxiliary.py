"""What auxiliary vectors give an encoder: nearest label embedding alone, by the number of vectors.

    python benchmarks/auxiliary.py [--data icd10 FOLDER ...] [--part 50000] [--preset fast] [--write]

The same encoder is trained without auxiliary vectors and with five numbers of them (shares of the labels), then every
test text gets the labels whose embeddings are nearest. `--set name=value` changes any setting of the preset; `--part`
trains on so many texts, drawn at random.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deepxc import Dataset, Dexa
from deepxc.cli.options import parse_settings
from deepxc.data.samples import load_sample
from deepxc.evaluate.scoring import score_model
from report import RESULTS, SHARED_DATA, write_result

if TYPE_CHECKING:
    from deepxc.data.dataset import Split

SHARES = (0.02, 0.07, 0.2, 0.5, 1.0)
METRICS = ("P@1", "P@5", "PSP@1", "PSP@5", "R@10")


def read(name: str, part: int) -> tuple[Split, Split]:
    """Train and test rows."""
    data = Dataset.read(name) if Path(name).exists() else load_sample(name)
    train = data.train
    if 0 < part < len(train):
        train = train.take(np.sort(np.random.default_rng(0).choice(len(train), part, replace=False)))
    assert data.test is not None
    return train, data.test


def sweep(train: Split, test: Split, arguments: argparse.Namespace) -> list[tuple[int, float, float, list[float]]]:
    """Of each number of vectors: the number, megabytes while training, seconds, and the metrics."""
    settings = parse_settings(tuple(arguments.set))
    found = []
    for count in (0, *(max(1, round(share * len(train.labels))) for share in SHARES)):
        model = Dexa(arguments.preset, threads=arguments.threads, answers="encoder", aux_vectors=count, **settings)
        begun = time.perf_counter()
        model.fit(train)
        seconds = time.perf_counter() - begun
        report = score_model(model, test, ks=(1, 5, 10))
        dim = model.answers_.embeddings[0].vectors.shape[1]
        megabytes = 3 * 4 * count * dim / 1e6  # vectors and both moments of Adam
        found.append((count, megabytes, seconds, [report[metric] for metric in METRICS]))
        print(f"{count:>8} vectors, {seconds:6.1f} s, P@1 {report['P@1']:.2f}", flush=True)
    return found


def table(name: str, found: list[tuple[int, float, float, list[float]]]) -> list[str]:
    """The sweep in Markdown."""
    lines = [f"## {name}", "", f"| vectors | MB while training | train s | {' | '.join(METRICS)} |"]
    lines.append("|---" * (3 + len(METRICS)) + "|")
    for count, megabytes, seconds, values in found:
        figures = " | ".join(f"{value:.2f}" for value in values)
        lines.append(f"| {count} | {megabytes:.1f} | {seconds:.0f} | {figures} |")
    return [*lines, ""]


def plot(sweeps: dict[str, list[tuple[int, float, float, list[float]]]], path: Path) -> None:
    """P@1 and PSP@1 over the share of labels that have a vector."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, metric in zip(figure.subplots(1, 2), ("P@1", "PSP@1"), strict=True):
        for name, found in sweeps.items():
            values = [row[3][METRICS.index(metric)] for row in found]
            axes.plot((0, *SHARES), values, marker="o", label=name)
        axes.set_xlabel("auxiliary vectors a label")
        axes.set_ylabel(metric)
        axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Every data set in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["icd10", str(SHARED_DATA / "yso-en")])
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/auxiliary.md and .png")
    arguments = parser.parse_args()
    sweeps = {}
    for data in arguments.data:
        if "/" in data and not Path(data).exists():
            print(f"skipped: there is no {data}")
            continue
        name = Path(data).name
        train, test = read(data, arguments.part)
        print(f"{name}: {len(train)} train texts, {len(train.labels)} labels", flush=True)
        sweeps[name] = sweep(train, test, arguments)
        print("\n".join(table(name, sweeps[name])), flush=True)
    if arguments.write:
        names = " ".join(Path(data).name for data in arguments.data)
        options = "".join(f" --{name} {getattr(arguments, name)}" for name in ("part", "preset", "threads"))
        changed = f" --set {' '.join(arguments.set)}" if arguments.set else ""
        lines = [line for name, found in sweeps.items() for line in table(name, found)]
        write_result("auxiliary", f"python benchmarks/auxiliary.py --write --data {names}{options}{changed}", lines)
        plot(sweeps, RESULTS / "auxiliary.png")


if __name__ == "__main__":
    main()

"""DECAF beside Astec and the label trees: accuracy and costs in one run, and the gain by label frequency.

    python benchmarks/decaf.py table DATA [--name NAME] [--systems decaf,astec] [--peers omikuji-bonsai,...] [--write]
    python benchmarks/decaf.py quantiles DATA [--name NAME] [--systems astec:label_rows=false,astec,decaf] [--write]
    python benchmarks/decaf.py ablations DATA [--name NAME] [--texts 20000] [--write]

DATA is a sample's name or a folder. `table` is `deepxc bench`, filter pairs of the test part left out for all alike.
`quantiles` trains the systems in this process and splits P@5 and R@10 by five bins of equal volume, rarest labels
first; with `--write` a picture (PNG) stands beside the table. `ablations` trains the paper's variants on a part.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deepxc import Dataset
from deepxc.cli.bench import split_specs
from deepxc.cli.options import Run, make_model, parse_settings
from deepxc.evaluate.plots import plot_bins
from deepxc.evaluate.quantiles import equal_volume_bins, evaluate_bins
from deepxc.evaluate.ranking import needed_k
from deepxc.evaluate.scoring import score_model
from report import RESULTS, write_result

if TYPE_CHECKING:
    from deepxc.data.dataset import Split
    from deepxc.evaluate.quantiles import BinReport

PEERS = "omikuji-bonsai,omikuji-parabel,pecos-xrl,napkin-plt"
METRICS = ("P@1", "P@5", "PSP@1", "PSP@5", "R@10")
ABLATIONS = ("paper", "8k", "no_init", "text_only", "refinement_only", "lite", "hnsw", "tree", "fft")


def table(arguments: argparse.Namespace) -> list[str]:
    """`deepxc bench` on the data set."""
    options = ["--systems", arguments.systems or "decaf,astec", "--peers", arguments.peers]
    options += ["--threads", str(arguments.threads)]
    command = [sys.executable, "-c", "from deepxc.cli.main import main; main()", "bench", arguments.data, *options]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return ["```", text.replace(arguments.data, arguments.name).rstrip(), "```"]


def made(spec: str, threads: int) -> object:
    """The model that `name:preset,setting=value` names."""
    name, _, tail = spec.partition(":")
    pieces = [piece for piece in tail.split(",") if piece]
    preset = pieces.pop(0) if pieces and "=" not in pieces[0] else "fast"
    return make_model(Run(model=name, preset=preset, threads=threads, settings=parse_settings(tuple(pieces))))


def binned(spec: str, data: Dataset, threads: int) -> BinReport:
    """One system's hits by the frequency of labels."""
    test = data.test
    assert test is not None
    model = made(spec, threads).fit(data.train)
    bins = equal_volume_bins(model.labels_.frequencies)
    top = model.predict_topk(test.inputs, min(needed_k(10, test.filter_pairs), len(model.labels_)))
    return evaluate_bins(top, test.Y, bins, ks=(1, 5, 10), filter_pairs=test.filter_pairs)


def quantiles(arguments: argparse.Namespace) -> list[str]:
    """Contributions of each bin, system by system, and what the last gains over the others."""
    data = Dataset.read(arguments.data)
    specs = split_specs((arguments.systems or "astec:label_rows=false,astec,decaf",))
    reports = {spec: binned(spec, data, arguments.threads) for spec in specs}
    lines = []
    for spec, report in reports.items():
        lines += [f"{spec}: contribution to the metric, percent, rarest labels in bin 1", "", "```"]
        lines += [report.table(), "```", ""]
    last = specs[-1]
    for spec in specs[:-1]:
        lines += [f"Gain of {last} over {spec}, in points and in percent of what {spec} has", "", "```"]
        lines += [gain(reports[spec], reports[last]), "```", ""]
    if arguments.write:
        picture = RESULTS / f"decaf-quantiles-{arguments.name}.png"
        plot_bins(reports, picture, metric="P@5")
        lines += [f"![contribution to P@5 by bin]({picture.name})"]
    return lines


def gain(first: BinReport, second: BinReport) -> str:
    """Differences bin by bin."""
    lines = [f"{'bin':6}" + "".join(f"{key:>9}{'':>9}" for key in first.contribution)]
    for b, name in enumerate(first.bins.names):
        cells = ""
        for key, before in first.contribution.items():
            more = second.contribution[key][b] - before[b]
            cells += f"{more:+9.2f}{100 * more / max(before[b], 1e-9):+8.1f}%"
        lines.append(f"{name:6}{cells}")
    return "\n".join(lines)


def part_of(split: Split, texts: int) -> Split:
    """Some rows, with the frequencies of labels counted anew."""
    rows = np.sort(np.random.default_rng(0).permutation(len(split))[:texts])
    part = split.take(rows)
    return replace(part, labels=part.labels.counted(part.Y))


def ablations(arguments: argparse.Namespace) -> list[str]:
    """The paper's variants, one instance each."""
    data = Dataset.read(arguments.data)
    assert data.test is not None
    train = part_of(data.train, arguments.texts)
    lines = ["```", f"{len(train):,} train texts, one instance", ""]
    lines += [f"{'variant':18}" + "".join(f"{name:>8}" for name in METRICS) + f"{'beam':>7}{'train s':>9}"]
    for preset in arguments.presets.split(","):
        model = make_model(Run(model="decaf", preset=preset, threads=arguments.threads, settings={"members": 1}))
        began = time.perf_counter()
        checkpoint = None if arguments.checkpoint is None else arguments.checkpoint / preset
        model.fit(train, checkpoint=checkpoint)
        seconds = time.perf_counter() - began
        report = score_model(model, data.test).values
        beam = getattr(model.answers_.shortlisters[0], "beam", 0)
        line = f"{preset:18}" + "".join(f"{report[name]:8.2f}" for name in METRICS) + f"{beam:7}{seconds:9.0f}"
        print(line, flush=True)
        lines.append(line)
    return [*lines, "```"]


def main() -> None:
    """One of the three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["table", "quantiles", "ablations"])
    parser.add_argument("data")
    parser.add_argument("--name", help="what the result is called [default: DATA]")
    parser.add_argument("--systems", default="")
    parser.add_argument("--peers", default=PEERS)
    parser.add_argument("--presets", default=",".join(ABLATIONS))
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--checkpoint", type=Path, help="folder; a run of ablations that was stopped goes on from it")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write into benchmarks/results")
    arguments = parser.parse_args()
    arguments.name = arguments.name or arguments.data
    lines = {"table": table, "quantiles": quantiles, "ablations": ablations}[arguments.what](arguments)
    print("\n".join(lines))
    if arguments.write:
        tail = f" --systems {arguments.systems}" if arguments.systems else ""
        if arguments.what == "table" and arguments.peers != PEERS:
            tail += f" --peers {arguments.peers}"
        if arguments.what == "ablations":
            tail += f" --texts {arguments.texts}"
        command = f"python benchmarks/decaf.py {arguments.what} {arguments.name}{tail} --write"
        write_result(f"decaf-{arguments.what}-{arguments.name}", command, lines)


if __name__ == "__main__":
    main()

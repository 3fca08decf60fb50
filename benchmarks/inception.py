"""The studies of InceptionXML's paper, on the built-in diagnoses: what it claims, and what is measured here.

    python benchmarks/inception.py systems [--data FOLDER] [--write]  beside Astec and a label tree
    python benchmarks/inception.py times [--data FOLDER] [--write]    seconds an epoch, and to the best validation score
    python benchmarks/inception.py words [--write]        test words in random order (its table 4)
    python benchmarks/inception.py fan-out [--write]      clusters, detaching, LightXML's framework (its table 3)
    python benchmarks/inception.py dimensions [--write]   dimensions of word vectors in random order (its figure 5)
    python benchmarks/inception.py encoders [--write]     parts swapped (its table 3 and figure 4)

The paper's recipe is trained in fewer epochs, at a rate that suits those, on a part of the train texts, the same for
whatever is compared.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from deepxc import Astec, Dataset, InceptionXML, InceptionXMLPlus
from deepxc.evaluate.metrics import evaluate
from deepxc.evaluate.scoring import score_model
from deepxc.modules.encoders import InceptionEncoder, TokenBag
from deepxc.text.bag import BagOfTokens
from deepxc.text.word_vectors import spectral
from report import write_result

if TYPE_CHECKING:
    from deepxc.data.dataset import Split

FAN_OUTS = ((256, 12), (512, 25), (1024, 50), (2048, 100))
VARIANTS = {"synchronised": {}, "not detached": {"detached": 0.0}, "LightXML's framework": {"preset": "lightxml"}}
RUNS = 10


def recipe(options: argparse.Namespace) -> dict:
    """What every training of a study has in common."""
    return {
        "preset": "paper",
        "epochs": options.epochs,
        "rate": 0.02,
        "word_dim": 128,
        "length": 16,
        "dropout": 0.3,
        "word_dropout": 0.1,
        "conv_dropout": 0.1,
        "clusters": 1024,
        "shortlist": 50,
        "threads": options.threads,
    }


def part_of(data: Dataset, rows: int) -> Split:
    """So many train texts, inclusion terms and descriptions in the proportion of all."""
    drawn = np.random.default_rng(0).permutation(len(data.train))[:rows]
    return data.train.take(np.sort(drawn))


def words(data: Dataset, options: argparse.Namespace) -> list[str]:
    """P@3 and P@5 of test texts as they are, and with their words permuted by ten seeds."""
    lines = [
        "Claim: permuting the words of test texts costs little (paper: 0.5 to 1.0 points, at most 3 % of P@3).",
        "",
        "| model | words | P@1 | P@3 | P@5 | P@3 kept |",
        "|---|---|---|---|---|---|",
    ]
    train = part_of(data, options.rows)
    models = {
        "InceptionXML+, paper's recipe": InceptionXMLPlus(**recipe(options)),
        "InceptionXML+ fast": InceptionXMLPlus(threads=options.threads),
        "Astec fast (peer: a bag, which has no order but its n-grams)": Astec(threads=options.threads),
    }
    for name, model in models.items():
        model.fit(train)
        plain = score_model(model, data.test).as_dict()
        rows = [[plain[f"P@{k}"] for k in (1, 3, 5)]]
        for seed in range(RUNS):
            rng = np.random.default_rng(seed)
            texts = [" ".join(rng.permutation(text.split())) for text in data.test.texts or ()]
            report = evaluate(model.predict_topk(texts, 5).ids, data.test.Y, ks=(1, 3, 5))
            rows.append([report[f"P@{k}"] for k in (1, 3, 5)])
        permuted = np.array(rows[1:])
        mean, sd = permuted.mean(0), permuted.std(0)
        lines.append(f"| {name} | in order | {rows[0][0]:.2f} | {rows[0][1]:.2f} | {rows[0][2]:.2f} | |")
        cells = " | ".join(f"{m:.2f} +- {s:.2f}" for m, s in zip(mean, sd, strict=True))
        lines.append(f"| | permuted, {RUNS} seeds | {cells} | {100 * mean[1] / rows[0][1]:.1f} % |")
        print(lines[-2], lines[-1], sep="\n", flush=True)
    return lines


def fan_out(data: Dataset, options: argparse.Namespace) -> list[str]:
    """Four numbers of clusters, as many labels on every shortlist, three ways to train."""
    lines = [
        "Claims: more clusters are better in the paper's framework; so is detaching, the more so the more clusters;",
        "LightXML's framework is below both. Shortlists hold as many labels throughout.",
        "",
        "| clusters, on a shortlist | framework | P@1 | P@5 | PSP@1 | PSP@5 | train s |",
        "|---|---|---|---|---|---|---|",
    ]
    train = part_of(data, options.rows)
    for clusters, shortlist in FAN_OUTS:
        for name, change in VARIANTS.items():
            settings = recipe(options) | {"clusters": clusters, "shortlist": shortlist} | change
            lines.append(f"| {clusters}, {shortlist} | {name} | {trained(InceptionXMLPlus(**settings), train, data)} |")
            print(lines[-1], flush=True)
    return lines


def dimensions(data: Dataset, options: argparse.Namespace) -> list[str]:
    """The dimensions of the word vectors permuted before training, by several seeds."""
    lines = [
        "Claim: the order of the dimensions has little or no effect, although filters see neighbours only.",
        "",
        "| order of the dimensions | P@1 | P@5 | PSP@1 | PSP@5 | train s |",
        "|---|---|---|---|---|---|",
    ]
    train = part_of(data, options.rows)
    settings = recipe(options)
    dim = settings["word_dim"]
    bag = BagOfTokens(min_df=2)
    vectors = spectral(bag.fit_transform(list(train.texts or ())), dim, 0)
    scores = []
    for seed in range(options.orders):
        order = np.random.default_rng(seed).permutation(dim) if seed else np.arange(dim)
        encoder = InceptionEncoder(
            word_dim=dim, length=16, start=vectors[:, order] * (0.25 / vectors.std()), word_dropout=0.1, dropout=0.1
        )
        cells = trained(InceptionXMLPlus(**settings, encoder=encoder), train, data)
        scores.append(float(cells.split(" | ")[0]))
        lines.append(f"| {f'permuted by seed {seed}' if seed else 'as they came'} | {cells} |")
        print(lines[-1], flush=True)
    lines += ["", f"P@1 {np.mean(scores):.2f} +- {np.std(scores):.2f}, from {min(scores):.2f} to {max(scores):.2f}"]
    print(lines[-1])
    return lines


def encoders(data: Dataset, options: argparse.Namespace) -> list[str]:
    """With and without attention; Astec's bag in the encoder's place, and the encoder in Astec's."""
    lines = [
        "Claims: attention is worth at most 1 % (figure 4); in DeepXML's pipeline the encoder does worse than in the",
        "paper's own framework (table 3, last row).",
        "",
        "| model | P@1 | P@5 | PSP@1 | PSP@5 | train s |",
        "|---|---|---|---|---|---|",
    ]
    train = part_of(data, options.rows)
    settings = recipe(options)
    encoder = InceptionEncoder(word_dim=128, length=16, word_dropout=0.1, dropout=0.1)
    pipeline = {"preset": "paper", "epochs": options.epochs, "surrogate_epochs": options.epochs, "reranker": False}
    pipeline |= {"hard": 250, "threads": options.threads, "validation": 0.0}
    models = {
        "InceptionXML+": InceptionXMLPlus(**settings),
        "InceptionXML+ without attention": InceptionXMLPlus(**settings | {"attention": False}),
        "Astec's bag in InceptionXML+": InceptionXMLPlus(**settings, encoder=TokenBag(300)),
        "InceptionXML's encoder in Astec": Astec(**pipeline, encoder=encoder),
        "Astec": Astec(**pipeline),
    }
    for name, model in models.items():
        lines.append(f"| {name} | {trained(model, train, data)} |")
        print(lines[-1], flush=True)
    return lines


def systems(data: Dataset, options: argparse.Namespace) -> list[str]:
    """`deepxc bench` of both systems, Astec and a label tree, and the seconds of our epochs."""
    ours, peers = "inceptionxml+,inceptionxml,astec", "omikuji-bonsai"
    place = options.data or "icd10"
    arguments = ["bench", place, "--systems", ours, "--peers", peers, "--threads", str(options.threads)]
    command = [sys.executable, "-c", "from deepxc.cli.main import main; main()", *arguments]
    table = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = ["```", table.replace(place, data.name).rstrip(), "```"]
    print("\n".join(lines))
    return lines


def times(data: Dataset, options: argparse.Namespace) -> list[str]:
    """Seconds of each epoch and P@1 on held-out train rows after it, by the classifiers alone."""
    lines = [
        "P@1 is that of the classifiers alone on rows held out of train, none of the other voices among them.",
        "",
        "| system | epoch | seconds | seconds so far | held-out P@1 |",
        "|---|---|---|---|---|",
    ]
    for kind in (InceptionXMLPlus, InceptionXML, Astec):
        model = kind(threads=options.threads, patience=1_000).fit(data.train)
        (history,) = model.history_.values()
        total = 0.0
        best = max(record["P@1"] for record in history["epochs"])
        for record in history["epochs"]:
            total += record["seconds"]
            mark = " (best)" if record["P@1"] == best else ""
            cells = f"{record['seconds']:.0f} | {total:.0f} | {record['P@1']:.2f}{mark}"
            lines.append(f"| {kind.__name__} | {record['epoch']} | {cells} |")
            print(lines[-1], flush=True)
    return lines


def trained(model: InceptionXMLPlus | Astec, train: Split, data: Dataset) -> str:
    """A row's cells: accuracy on test, and the seconds of training."""
    began = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - began
    report = score_model(model, data.test).as_dict()
    return " | ".join(f"{report[key]:.2f}" for key in ("P@1", "P@5", "PSP@1", "PSP@5")) + f" | {seconds:.0f}"


STUDIES = {
    "systems": systems,
    "times": times,
    "words": words,
    "fan-out": fan_out,
    "dimensions": dimensions,
    "encoders": encoders,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--data", help="data of `systems` and `times` [default: icd10]")
    parser.add_argument("--rows", type=int, default=15_000, help="train texts [default: 15,000]")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--orders", type=int, default=RUNS, help="orders of the dimensions")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="save the table in benchmarks/results")
    options = parser.parse_args()
    whole = options.study in ("systems", "times")
    data = Dataset.read(options.data if whole and options.data else "icd10")
    lines = STUDIES[options.study](data, options)
    name = f"inception-{options.study}"
    if whole:
        name += f"-{data.name}"
    else:
        texts = min(options.rows, len(data.train))
        lines = [f"{texts:,} train texts, {len(data.labels):,} labels, {options.epochs} epochs, one run.", "", *lines]
    if options.write:
        command = shlex.join(["python", *sys.argv]).replace(options.data or "icd10", data.name)
        print(write_result(name, command, lines))


if __name__ == "__main__":
    main()

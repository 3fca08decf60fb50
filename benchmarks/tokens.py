"""Tokens: bags of tokens and token vectors against scikit-learn, `tokenizers` and scipy, on the same titles.

    python benchmarks/tokens.py [--write] [--data FOLDER] [--repeats 3]

Each figure is the best of the repeats, and the parties take turns, so that a busy machine slows all alike.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deepxc.text.bag import BagOfTokens
from deepxc.text.word_vectors import embed, random_projection, spectral
from report import SHARED_DATA, machine, write_result

if TYPE_CHECKING:
    from collections.abc import Callable

CPU = " [CPU]"  # figure of CPU time, which neighbours on the machine disturb less


def read_titles(folder: Path) -> list[str]:
    with gzip.open(folder / "trn.json.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["title"] for line in lines]


def best_of(repeats: int, tasks: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Least seconds of each task, the tasks taking turns: on the clock, and of the CPU (`name [CPU]`)."""
    seconds = {name + clock: float("inf") for name in tasks for clock in ("", CPU)}
    for _ in range(repeats):
        for name, task in tasks.items():
            begun, worked = time.perf_counter(), time.process_time()
            task()
            seconds[name] = min(seconds[name], time.perf_counter() - begun)
            seconds[name + CPU] = min(seconds[name + CPU], time.process_time() - worked)
    return seconds


def rival_vectorizer():
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", min_df=2, sublinear_tf=True, dtype=np.float32)


def measure_batches(texts: list[str], repeats: int) -> dict[str, float]:
    tokenizer = BagOfTokens().fit(texts).definition.tokenizer
    state: dict[str, object] = {}

    def fitted(name: str, made: object) -> None:
        state[name] = made
        state[name].fit_transform(texts)

    def ids_alone() -> None:
        for encoded in tokenizer.encode_batch_fast(texts):
            _ = encoded.ids

    def cold() -> None:
        BagOfTokens.from_definition(state["ours"].definition).transform(texts)

    return best_of(
        repeats,
        {
            "deepxc fit_transform": lambda: fitted("ours", BagOfTokens()),
            "scikit-learn fit_transform": lambda: fitted("rival", rival_vectorizer()),
            "deepxc transform": lambda: state["ours"].transform(texts),
            "deepxc transform, nothing remembered": cold,
            "scikit-learn transform": lambda: state["rival"].transform(texts),
            "tokenizers encode_batch_fast, ids alone": ids_alone,
        },
    )


def measure_singles(texts: list[str], repeats: int, n_titles: int = 2_000) -> dict[str, float]:
    """Microseconds a title, one call each, over titles that were and were not met before."""
    some, others = texts[:n_titles], texts[-n_titles:]
    known = texts[:-n_titles]
    bag, rival = BagOfTokens().fit(known), rival_vectorizer().fit(known)
    fresh = [BagOfTokens.from_definition(bag.definition) for _ in range(repeats)]
    tokenizer = bag.definition.tokenizer
    calls = {
        "deepxc transform([title])": lambda: [bag.transform([text]) for text in some],
        "deepxc transform_one(title)": lambda: [bag.transform_one(text) for text in some],
        "deepxc transform([title]), nothing remembered": lambda: (
            [fresh[-1].transform([t]) for t in others] and fresh.pop()
        ),
        "scikit-learn transform([title])": lambda: [rival.transform([text]) for text in some],
        "tokenizers encode(title).ids": lambda: [tokenizer.encode(text).ids for text in some],
    }
    return {name: seconds / n_titles * 1e6 for name, seconds in best_of(repeats, calls).items()}


def measure_vectors(texts: list[str], repeats: int) -> dict[str, float]:
    X = BagOfTokens().fit_transform(texts)
    vectors = random_projection(X.shape[1], 256)
    embed(X[:1_000], vectors)  # loads the compiled loop
    return best_of(
        repeats,
        {
            "deepxc random_projection, 256-d": lambda: random_projection(X.shape[1], 256),
            "deepxc embed, 256-d": lambda: embed(X, vectors, normalize=False),
            "scipy X @ vectors, 256-d": lambda: X @ vectors,
            "deepxc spectral, 256-d": lambda: spectral(X, 256),
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED_DATA / "yso-en", help="folder with trn.json.gz")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="save the table under benchmarks/results")
    given = parser.parse_args()
    if not (given.data / "trn.json.gz").exists():
        print(f"skipped: no trn.json.gz in {given.data}")
        return
    texts = read_titles(given.data)
    batches = measure_batches(texts, given.repeats)
    singles = measure_singles(texts, given.repeats)
    vectors = measure_vectors(texts, given.repeats)
    print(json.dumps({"n_texts": len(texts), "seconds": batches | vectors, "microseconds": singles}))
    ratio = batches["scikit-learn fit_transform"] / batches["deepxc fit_transform"]
    lines = [f"{len(texts):,} titles; best of {given.repeats}", "", "| what | time | CPU time |", "|---|---|---|"]
    for figures, unit in ((batches | vectors, "s"), (singles, "µs")):
        names = [name for name in figures if not name.endswith(CPU)]
        lines += [f"| {name} | {figures[name]:.2f} {unit} | {figures[name + CPU]:.2f} {unit} |" for name in names]
    lines += ["", f"fit and transform: {ratio:.2f} times as fast as scikit-learn"]
    print(machine(), *lines, sep="\n")
    if given.write:
        write_result("tokens", "python benchmarks/tokens.py --write", lines)


if __name__ == "__main__":
    main()

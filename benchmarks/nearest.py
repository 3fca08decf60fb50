"""NearestLabels: training time, accuracy and time a query, with and without the nearest train texts.

    python benchmarks/nearest.py [--data ../shared/data/yso-en] [--write]

The peer is scikit-learn: the same label vectors (centroid + half the label text) over its own TF-IDF, scored exactly,
texts x labels in blocks, which is what one writes without this library.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from deepxc import Dataset, NearestLabels
from deepxc.evaluate.metrics import evaluate
from deepxc.evaluate.scoring import score_model
from deepxc.labels.propensity import Propensity
from report import SHARED_DATA, write_result

KEYS = ("P@1", "P@5", "PSP@1", "PSP@5", "R@10")
VARIANTS = {
    "fast": {},
    "fast, no nearest texts": {"neighbours": 0},
    "fast, random projection": {"vectors": "random"},
    "best": {"preset": "best"},
}


def row(name: str, train: float, batch: float, single: list[float], values: dict[str, float]) -> str:
    cells = " | ".join(f"{values[key]:.2f}" for key in KEYS)
    p50 = f"{1e6 * float(np.median(single)):.0f}" if single else "-"
    return f"| {name} | {train:.1f} | {cells} | {batch:.0f} | {p50} |"


def ours(name: str, settings: dict, data: Dataset, rounds: int) -> str:
    began = time.perf_counter()
    model = NearestLabels(**settings).fit(data.train)
    trained = time.perf_counter() - began
    texts = data.test.texts
    model.predict_topk(texts[:50], 10)
    began = time.perf_counter()
    report = score_model(model, data.test)
    batch = 1e6 * (time.perf_counter() - began) / len(texts)
    model.threads = 1
    single = []
    for text in texts[:rounds]:
        began = time.perf_counter()
        model.predict_topk([text], 5)
        single.append(time.perf_counter() - began)
    return row(f"NearestLabels {name}", trained, batch, single, report.as_dict())


def scikit_learn(data: Dataset) -> str:
    began = time.perf_counter()
    bag = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", min_df=2, sublinear_tf=True, dtype=np.float32)
    X = bag.fit_transform(data.train.texts)
    labels = normalize(data.train.Y.T.tocsr() @ X) + 0.5 * normalize(bag.transform(data.labels.texts))
    labels = normalize(labels).T.tocsr()
    trained = time.perf_counter() - began
    began = time.perf_counter()
    queries, ids = bag.transform(data.test.texts), []
    for start in range(0, queries.shape[0], 500):
        scores = (queries[start : start + 500] @ labels).toarray()
        best = np.argpartition(-scores, 10, axis=1)[:, :10]
        order = np.argsort(-np.take_along_axis(scores, best, 1), axis=1, kind="stable")
        ids.append(np.take_along_axis(best, order, 1))
    batch = 1e6 * (time.perf_counter() - began) / queries.shape[0]
    inverse = Propensity().inverse(np.bincount(data.train.Y.indices, minlength=len(data.labels)), len(data.train))
    report = evaluate(np.vstack(ids), data.test.Y, inverse_propensity=inverse)
    return row("scikit-learn, centroids + label text, exact", trained, batch, [], report.as_dict())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=None)
    parser.add_argument("--rounds", type=int, default=2000, help="single queries timed")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    folder = options.data or SHARED_DATA / "yso-en"
    try:
        data = Dataset.read(folder)
    except ValueError as fault:
        sys.exit(f"skipped: {fault}")
    NearestLabels().fit(data.train.take(np.arange(2000)))  # compiled loops are loaded before anything is timed
    lines = [
        f"{len(data.train):,} train and {len(data.test):,} test texts, {len(data.labels):,} labels. Train seconds",
        "include tokenising; us/text is a batch on all threads, us/query one text at a time on one thread.",
        "",
        "| model | train s | " + " | ".join(KEYS) + " | us/text | p50 us/query |",
        "|---|---|" + "---|" * (len(KEYS) + 2),
    ]
    print("\n".join(lines))
    for name, settings in VARIANTS.items():
        lines.append(ours(name, settings, data, options.rounds))
        print(lines[-1], flush=True)
    lines.append(scikit_learn(data))
    print(lines[-1])
    if options.write:
        print(write_result("nearest", shlex.join(["python", *sys.argv]), lines))


if __name__ == "__main__":
    main()

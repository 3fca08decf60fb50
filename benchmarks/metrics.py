"""Time of all metrics at k = 1, 3, 5, 10 for 60,000 texts over 26,643 labels, beside two peers.

    python benchmarks/metrics.py [--write] [--texts 60000] [--labels 26643] [--wide 100]

Answers and truth are generated (Zipf label frequencies, about five true labels a text, a third of the answers right).
Peers: the usual scipy way, written here (rank row by row, look the answers up by fancy indexing), and napkinXC's
metrics, skipped where the package is not installed. Every peer's values are checked against ours before it is timed.
"""

from __future__ import annotations

import argparse
import json
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from deepxc.data.label_space import LabelSpace
from deepxc.evaluate.compare import compare
from deepxc.evaluate.metrics import evaluate
from deepxc.evaluate.per_label import per_label
from deepxc.evaluate.quantiles import equal_volume_bins, evaluate_bins
from deepxc.predict.topk import TopK
from report import machine, write_result

if TYPE_CHECKING:
    from collections.abc import Callable

KS = (1, 3, 5, 10)


def make(n: int, n_labels: int, width: int, seed: int) -> tuple[TopK, sparse.csr_matrix]:
    """Ranked answers and a truth that they partly match."""
    rng = np.random.default_rng(seed)
    chance = 1.0 / np.arange(1, n_labels + 1) ** 0.9
    drawn = rng.choice(n_labels, size=n * 5, p=chance / chance.sum())
    Y = sparse.csr_matrix((np.ones(n * 5, np.float32), (np.repeat(np.arange(n), 5), drawn)), shape=(n, n_labels))
    Y.data[:] = 1.0
    guess = rng.choice(n_labels, size=n * (width - 2), p=chance / chance.sum())
    right = drawn.reshape(n, 5)[:, :2]
    answers = np.column_stack((right, guess.reshape(n, width - 2)))
    scores = sparse.csr_matrix(
        (rng.random(answers.size, dtype=np.float32), (np.repeat(np.arange(n), width), answers.ravel())),
        shape=(n, n_labels),
    )
    return TopK.from_csr(scores, width, LabelSpace.numbered(n_labels)), Y


def scipy_way(scores: sparse.csr_matrix, Y: sparse.csr_matrix, inverse: np.ndarray) -> dict[str, float]:
    """All metrics with a Python loop for the ranking and scipy's fancy indexing for the hits."""
    n, n_labels = Y.shape
    k = max(KS)

    def rank(matrix: sparse.csr_matrix) -> np.ndarray:
        ids = np.full((n, k), n_labels)
        for i in range(n):
            start, stop = matrix.indptr[i], matrix.indptr[i + 1]
            best = np.argsort(-matrix.data[start:stop], kind="stable")[:k]
            ids[i, : len(best)] = matrix.indices[start:stop][best]
        return ids

    padded = sparse.hstack((Y, sparse.csr_matrix((n, 1)))).tocsr()
    weight = np.r_[inverse, 0.0]
    valued = sparse.csr_matrix((inverse[Y.indices], Y.indices, Y.indptr), shape=Y.shape)
    ids, best = rank(scores), rank(valued)
    rows = np.arange(n)[:, None]
    hits = np.asarray(padded[np.broadcast_to(rows, ids.shape), ids].todense())
    gain, attainable = hits * weight[ids], weight[best]
    discount = 1.0 / np.log2(np.arange(k) + 2.0)
    positives = np.diff(Y.indptr)
    known = np.unique(Y.indices).size
    values = {}
    for cut in KS:
        ideal = np.r_[1.0, np.cumsum(discount)][np.minimum(positives, cut)]
        values[f"P@{cut}"] = hits[:, :cut].sum(axis=1).mean() / cut
        values[f"nDCG@{cut}"] = (hits[:, :cut] @ discount[:cut] / ideal).mean()
        values[f"PSP@{cut}"] = gain[:, :cut].sum() / attainable[:, :cut].sum()
        values[f"PSnDCG@{cut}"] = (gain[:, :cut] @ discount[:cut] / ideal).mean() / (
            attainable[:, :cut] @ discount[:cut] / ideal
        ).mean()
        values[f"R@{cut}"] = (hits[:, :cut].sum(axis=1) / np.maximum(positives, 1)).mean()
        values[f"C@{cut}"] = np.unique(ids[:, :cut][hits[:, :cut] > 0]).size / known
    return {key: 100.0 * float(value) for key, value in values.items()}


def napkinxc_way(scores: sparse.csr_matrix, Y: sparse.csr_matrix, inverse: np.ndarray) -> dict[str, float]:
    """Those of our metrics that napkinXC defines alike (its discounted PS metric divides otherwise)."""
    from napkinxc import metrics

    k = max(KS)
    found = {
        "P": metrics.precision_at_k(Y, scores, k=k),
        "nDCG": metrics.ndcg_at_k(Y, scores, k=k),
        "PSP": metrics.psprecision_at_k(Y, scores, inverse, k=k),
        "R": metrics.recall_at_k(Y, scores, k=k, zero_division=0),
        "C": metrics.coverage_at_k(Y, scores, k=k),
    }
    return {f"{name}@{cut}": 100.0 * float(values[cut - 1]) for name, values in found.items() for cut in KS}


def best_of(repeats: int, run: Callable[[], object]) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def agreement(ours: dict[str, float], theirs: dict[str, float]) -> float:
    """Largest difference in percentage points over the metrics that both have."""
    return max(abs(ours[key] - value) for key, value in theirs.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=60_000)
    parser.add_argument("--labels", type=int, default=26_643)
    parser.add_argument("--wide", type=int, default=100, help="stored scores a text in the wide case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="save the table under benchmarks/results/")
    args = parser.parse_args()

    top, Y = make(args.texts, args.labels, 10, args.seed)
    wide = make(args.texts, args.labels, args.wide, args.seed)[0].to_csr()
    csr = top.to_csr()
    frequencies = np.bincount(Y.indices, minlength=args.labels)
    inverse = 1.0 + (np.log(args.texts) - 1) * 2.5**0.55 * (frequencies + 1.5) ** -0.55
    ours = evaluate(top, Y, ks=KS, inverse_propensity=inverse)
    other = evaluate(wide, Y, ks=KS, inverse_propensity=inverse)
    bins = equal_volume_bins(frequencies)

    lines = [f"{args.texts:,} texts, {args.labels:,} labels, k = {KS}, seconds (best of 5; peers best of 1)", ""]
    figures: dict[str, float] = {}

    def row(name: str, seconds: float, note: str = "") -> None:
        figures[name] = round(seconds, 4)
        lines.append(f"{name:46}{seconds:10.3f}  {note}".rstrip())

    row("evaluate, TopK", best_of(5, lambda: evaluate(top, Y, ks=KS, inverse_propensity=inverse)), "target 0.5")
    row("evaluate, CSR", best_of(5, lambda: evaluate(csr, Y, ks=KS, inverse_propensity=inverse)), "target 0.5")
    row(
        f"evaluate, CSR of {args.wide} scores a text",
        best_of(5, lambda: evaluate(wide, Y, ks=KS, inverse_propensity=inverse)),
    )
    peers = {"scipy, row by row": scipy_way}
    if find_spec("napkinxc"):
        peers["napkinXC (without PSnDCG)"] = napkinxc_way
    for name, way in peers.items():
        gap = agreement(ours.values, way(csr, Y, inverse))
        seconds = best_of(1, lambda way=way: way(csr, Y, inverse))
        note = f"{seconds / figures['evaluate, CSR']:.0f} x ours; values differ by at most {gap:.1e}"
        row(f"{name}, CSR", seconds, note)
    if not find_spec("napkinxc"):
        lines.append("napkinXC: skipped, not installed (pip install napkinxc)")
    row("evaluate_bins", best_of(5, lambda: evaluate_bins(top, Y, bins, ks=KS)))
    row("per_label", best_of(5, lambda: per_label(top, Y)))
    row("compare, 2,000 resamples, 20 metrics", best_of(1, lambda: compare(ours, other)))

    print("\n".join([machine(), *lines, "", json.dumps(figures)]))
    if args.write:
        print(write_result("metrics", "python benchmarks/metrics.py --write", ["```", *lines, "```"]))


if __name__ == "__main__":
    main()

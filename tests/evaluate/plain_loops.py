"""The metrics once more, written to be read: plain loops, no sharing with the library.

`scores` is a list of dicts label -> score, `truth` a list of sets, `weights` a list of inverse propensities.
"""

from __future__ import annotations

import math


def ranked(scores: list[dict[int, float]], filtered: set[tuple[int, int]]) -> list[list[int]]:
    """Labels of each row, score descending, then label ascending."""
    answers = []
    for i, row in enumerate(scores):
        kept = [(label, score) for label, score in row.items() if (i, label) not in filtered]
        answers.append([label for label, _ in sorted(kept, key=lambda pair: (-pair[1], pair[0]))])
    return answers


def discount(rank: int) -> float:
    """Gain at a rank that counts from 1."""
    return 1.0 / math.log2(rank + 1)


def metrics(
    answers: list[list[int]], truth: list[set[int]], ks: tuple[int, ...], weights: list[float] | None
) -> dict[str, float]:
    """Every metric at every k, in percent."""
    n = len(truth)
    out: dict[str, float] = {}
    for k in ks:
        precision = recall = ndcg = 0.0
        ps_gain = ps_best = psn_gain = psn_best = 0.0
        found: set[int] = set()
        known: set[int] = set()
        for row, true in zip(answers, truth, strict=True):
            known |= true
            hits = [(rank, label) for rank, label in enumerate(row[:k], start=1) if label in true]
            found |= {label for _, label in hits}
            precision += len(hits) / k
            if not true:
                continue
            recall += len(hits) / len(true)
            ideal = sum(discount(rank) for rank in range(1, min(k, len(true)) + 1))
            ndcg += sum(discount(rank) for rank, _ in hits) / ideal
            if weights is None:
                continue
            best = sorted((weights[label] for label in true), reverse=True)[:k]
            ps_gain += sum(weights[label] for _, label in hits)
            ps_best += sum(best)
            psn_gain += sum(weights[label] * discount(rank) for rank, label in hits) / ideal
            psn_best += sum(weight * discount(rank) for rank, weight in enumerate(best, start=1)) / ideal
        out[f"P@{k}"] = 100 * precision / n
        out[f"R@{k}"] = 100 * recall / n
        out[f"nDCG@{k}"] = 100 * ndcg / n
        out[f"C@{k}"] = 100 * len(found) / len(known) if known else 0.0
        if weights is not None:
            out[f"PSP@{k}"] = 100 * ps_gain / ps_best if ps_best else 0.0
            out[f"PSnDCG@{k}"] = 100 * psn_gain / psn_best if psn_best else 0.0
    return out

"""What comes out of one contestant, and of the whole run: plain values that go to JSON and come back."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal

METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "nDCG@5", "R@10")
"""What the table shows, in percent; the JSON holds all."""


@dataclass(frozen=True)
class Outcome:
    """One contestant's figures, or why there are none.

    Attributes:
        name: As in its entry.
        kind: `ours` or `peer`.
        status: `ok`, `missing` (a library that is not installed) or `failed`.
        problem: What went wrong.
        remedy: What to do about it.
        metrics: Percent by name.
        costs: See `COSTS`.
        truth: Fingerprint of the labels that the answers were held against.
    """

    name: str
    kind: Literal["ours", "peer"]
    status: Literal["ok", "missing", "failed"] = "ok"
    problem: str | None = None
    remedy: str | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    truth: str | None = None


COSTS = {
    "fit_s": "wall seconds of training, tokenising included",
    "train_s": "the same without tokenising",
    "tokenise_s": "wall seconds of turning train texts into tokens",
    "convert_s": "wall seconds of writing the file that a library trains from; not part of fit_s",
    "fit_cpu_s": "CPU seconds of training, tokenising included",
    "read_s": "wall seconds of reading the data set; not part of fit_s",
    "save_s": "wall seconds of saving the model",
    "open_s": "wall seconds of opening the saved model",
    "first_ms": "milliseconds to the first answer after that",
    "p50_us": "median microseconds from one text to its 5 best labels, one thread",
    "p99_us": "the same, 99th percentile",
    "queries_per_s": "texts ranked a second, all at once, all threads",
    "peak_mib": "peak memory of the process up to the end of training, reading the data included",
    "model_mib": "size of the saved model, tokens included",
}
"""Key -> what it says."""


@dataclass(frozen=True)
class Comparison:
    """Everything of one run of the bench.

    Attributes:
        data: What was read, as it was named.
        part: The part that was scored.
        sizes: `train_texts`, `texts` (scored), `labels`, `filter_pairs`.
        threads: Threads that every contestant had.
        repeat: Rounds; costs are their medians.
        outcomes: In the order in which they were asked for.
    """

    data: str
    part: str
    sizes: dict[str, int]
    threads: int
    repeat: int
    outcomes: list[Outcome]

    @property
    def peers(self) -> list[Outcome]:
        """The peers that have figures."""
        return [outcome for outcome in self.outcomes if outcome.kind == "peer" and outcome.status == "ok"]

    @property
    def best_peer(self) -> Outcome | None:
        """The peer with the highest P@1."""
        return max(self.peers, key=lambda outcome: outcome.metrics["P@1"], default=None)

    def ratios(self, outcome: Outcome, cost: str = "fit_s") -> dict[str, float]:
        """One contestant's cost as a multiple of each peer's."""
        if outcome.status != "ok":
            return {}
        return {peer.name: outcome.costs[cost] / peer.costs[cost] for peer in self.peers}

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON: rounded, and with the ratios of training time to each peer."""
        best = self.best_peer
        results = []
        for outcome in self.outcomes:
            row = asdict(outcome)
            row["metrics"] = {name: round(value, 4) for name, value in outcome.metrics.items()}
            row["costs"] = {name: round(value, 4) for name, value in outcome.costs.items() if math.isfinite(value)}
            row["fit_ratios"] = {name: round(value, 4) for name, value in self.ratios(outcome).items()}
            results.append(row)
        return {
            "data": self.data,
            "part": self.part,
            "sizes": self.sizes,
            "threads": self.threads,
            "repeat": self.repeat,
            "best_peer": best.name if best else None,
            "units": COSTS,
            "results": results,
        }


def merged(rounds: list[Outcome]) -> Outcome:
    """One contestant's rounds as one outcome: the first's metrics, each cost's median; a round that failed wins."""
    for outcome in rounds:
        if outcome.status != "ok":
            return outcome
    first = rounds[0]
    costs = {name: median(outcome.costs[name] for outcome in rounds) for name in first.costs}
    return Outcome(first.name, first.kind, metrics=first.metrics, costs=costs, truth=first.truth)

"""One contestant from reading the data to its score."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from deepxc.bench.contestant import Stages, Trial
from deepxc.bench.measure import answer_seconds, folder_mib, peak_mib
from deepxc.bench.outcome import Outcome
from deepxc.data.dataset import Dataset
from deepxc.errors import DataError
from deepxc.evaluate.metrics import evaluate
from deepxc.evaluate.ranking import needed_k
from deepxc.labels.propensity import Propensity

if TYPE_CHECKING:
    from pathlib import Path

    from deepxc.bench.contestant import Contestant, Entry, Inputs
    from deepxc.data.dataset import Split
    from deepxc.evaluate.metrics import Report

KS = (1, 3, 5, 10)
_ONE_K = 5
_SINGLES = 1_000
_WARM_ROWS = 256


class Scored(NamedTuple):
    """An outcome and the sizes of the data behind it."""

    outcome: Outcome
    sizes: dict[str, int]


def read_parts(data: str, part: str) -> tuple[Split, Split]:
    """The train part and the part to score.

    Raises:
        UserError: No such data, or no such part, or nothing to measure in it.
    """
    dataset = Dataset.read(data)
    scored = getattr(dataset, part)
    if scored is None:
        raise DataError(f"there is no {part} part", where=data, remedy="Choose another part")
    if not scored.Y.nnz:
        raise DataError(f"no text of the {part} part has labels", where=data, remedy="Choose another part")
    return dataset.train, scored


def hold(entry: Entry, contestant: Contestant, train: Split, scored: Split, threads: int, folder: Path) -> Scored:
    """Train, save, open again, rank and score.

    Args:
        entry: Who takes part.
        contestant: What the entry made.
        train: What is trained on.
        scored: What is scored on; its filter pairs leave before the cut at k.
        threads: Threads for training and for ranking all at once; single answers have one.
        folder: An empty folder for the model.
    """
    stages = Stages()
    with stages.stage("fit"):
        contestant.fit(train, Trial(folder, threads, stages))
    costs = _training_costs(stages)
    with stages.stage("save"):
        contestant.save(folder)
    costs |= {"save_s": stages.wall["save"], "model_mib": folder_mib(folder)}
    ids, ranking = _rank_all(contestant, scored, threads, folder)
    costs |= ranking | _ask_singly(contestant, scored, folder)
    report = _score(ids, train, scored)
    sizes = {
        "train_texts": len(train),
        "texts": len(scored),
        "labels": len(train.labels),
        "filter_pairs": len(scored.filter_pairs),
    }
    return Scored(Outcome(entry.name, entry.kind, metrics=report.as_dict(), costs=costs, truth=report.truth), sizes)


def _training_costs(stages: Stages) -> dict[str, float]:
    """Seconds of training. Writing a file for a library is taken out: its own users may have one already."""
    wall, cpu = stages.wall, stages.cpu
    tokenise, convert = wall.get("tokenise", 0.0), wall.get("convert", 0.0)
    return {
        "fit_s": wall["fit"] - convert,
        "train_s": wall["fit"] - convert - tokenise,
        "tokenise_s": tokenise,
        "convert_s": convert,
        "fit_cpu_s": cpu["fit"] - cpu.get("convert", 0.0),
        "peak_mib": peak_mib(),
    }


def _rank_all(contestant: Contestant, scored: Split, threads: int, folder: Path) -> tuple[np.ndarray, dict[str, float]]:
    """Ids of every text's best labels, and what it cost, with the saved model freshly opened."""
    k = min(needed_k(max(KS), scored.filter_pairs), len(scored.labels))
    gc.collect()
    began = time.perf_counter()
    contestant.open(folder, threads)
    opened = time.perf_counter()
    contestant.rank_one(_item(scored, 0), min(_ONE_K, k))
    answered = time.perf_counter()
    contestant.rank(cast("Inputs", scored.inputs[:_WARM_ROWS]), k)
    ready = time.perf_counter()
    ids = contestant.rank(scored.inputs, k)
    seconds = time.perf_counter() - ready
    return ids, {
        "open_s": opened - began,
        "first_ms": 1e3 * (answered - opened),
        "queries_per_s": len(scored) / seconds,
    }


def _ask_singly(contestant: Contestant, scored: Split, folder: Path) -> dict[str, float]:
    """One text after the other, on one thread."""
    from threadpoolctl import threadpool_limits

    k = min(_ONE_K, len(scored.labels))
    contestant.open(folder, 1)
    rows = np.linspace(0, len(scored) - 1, min(_SINGLES, len(scored))).astype(np.int64)
    items = [_item(scored, row) for row in rows.tolist()]
    with threadpool_limits(1):
        seconds = answer_seconds(lambda item: contestant.rank_one(item, k), items)  # pyrefly: ignore[bad-argument-type]
    p50, p99 = np.percentile(seconds, [50, 99])
    return {"p50_us": 1e6 * float(p50), "p99_us": 1e6 * float(p99)}


def _item(split: Split, row: int) -> Any:  # noqa: ANN401 (a text, or one row of a matrix)
    if split.texts is not None:
        return split.texts[row]
    assert split.X is not None
    return split.X[row : row + 1]


def _score(ids: np.ndarray, train: Split, scored: Split) -> Report:
    frequencies = train.labels.counted(train.Y).frequencies
    assert frequencies is not None
    inverse = Propensity().inverse(frequencies, len(train))
    ks = [k for k in KS if k <= ids.shape[1]] if ids.shape[1] < max(KS) else list(KS)
    return evaluate(ids, scored.Y, ks=ks, inverse_propensity=inverse, filter_pairs=scored.filter_pairs)

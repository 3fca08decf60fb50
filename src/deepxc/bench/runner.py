"""Runs the contestants one after the other, each in a process of its own, and gathers what they say.

A process each makes peak memory that contestant's alone, gives none a warm start from another, and lets the run go
on when one dies.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepxc.bench.outcome import Comparison, Outcome, merged
from deepxc.errors import DataError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepxc.bench.contestant import Entry

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
)


def compare(
    data: str,
    entries: Sequence[Entry],
    *,
    threads: int,
    part: str = "test",
    repeat: int = 1,
    told: Callable[[str, int, Outcome | None], None] | None = None,
) -> Comparison:
    """Train and score every contestant on the same data with the same number of threads.

    Args:
        data: A folder, a file, or a sample's name.
        entries: Who takes part.
        threads: Threads for each.
        part: The part to score: test, validation or train.
        repeat: Rounds. A round is everyone once, so that a machine that slows down slows all.
        told: Called with a contestant's name and the round, before it starts (None) and with its outcome.

    Raises:
        UserError: Nobody takes part, two have one name, or the data cannot be read.
    """
    names = [entry.name for entry in entries]
    if not names:
        raise UserError("there is nobody to compare", remedy="Name a system or a peer")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"{twice!r} takes part twice", remedy="Name it once")
    if repeat < 1:
        raise UserError(f"{repeat} rounds", where="repeat", remedy="Ask for at least one")
    rounds: dict[str, list[Outcome]] = {name: [] for name in names}
    sizes: dict[str, int] = {}
    for number in range(1, repeat + 1):
        for entry in entries:
            if any(outcome.status != "ok" for outcome in rounds[entry.name]):
                continue
            if told:
                told(entry.name, number, None)
            outcome, found = _run(entry, data, part, threads)
            sizes = found or sizes
            rounds[entry.name].append(outcome)
            if told:
                told(entry.name, number, outcome)
    outcomes = [merged(rounds[name]) for name in names]
    if len({outcome.truth for outcome in outcomes if outcome.status == "ok"}) > 1:
        raise DataError("the data changed while the bench ran", where=data, remedy="Run it again")
    return Comparison(data, part, sizes, threads, repeat, outcomes)


def _run(entry: Entry, data: str, part: str, threads: int) -> tuple[Outcome, dict[str, int]]:
    """One contestant in its own process."""
    with tempfile.TemporaryDirectory(prefix="deepxc-bench-", ignore_cleanup_errors=True) as name:
        place = Path(name)
        (place / "trial").mkdir()
        job, result, log = place / "job.json", place / "result.json", place / "log.txt"
        asked = {"entry": asdict(entry), "data": data, "part": part, "threads": threads, "folder": str(place / "trial")}
        job.write_text(json.dumps(asked), encoding="utf-8")
        command = [sys.executable, "-P", "-m", "deepxc.bench.worker", str(job), str(result)]
        environment = os.environ | dict.fromkeys(_THREAD_VARIABLES, str(threads))
        with log.open("wb") as out:
            ended = subprocess.run(  # noqa: S603 (this very interpreter)
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=environment, check=False
            )
        if result.exists():
            return _read(entry, json.loads(result.read_text(encoding="utf-8")))
        return Outcome(entry.name, entry.kind, "failed", _death(ended.returncode, log), None), {}


def _read(entry: Entry, answer: dict[str, Any]) -> tuple[Outcome, dict[str, int]]:
    if answer["status"] == "ok":
        return Outcome(**answer["outcome"]), answer["sizes"]
    if answer["status"] == "bad data":
        raise DataError(answer["what"], where=answer["where"], remedy=answer["remedy"])
    return Outcome(entry.name, entry.kind, answer["status"], answer["problem"], answer["remedy"]), {}


def _death(code: int, log: Path) -> str:
    """What killed a process that left no result, with the last thing that it said."""
    if code < 0:
        try:
            cause = f"its process was killed by {signal.Signals(-code).name}"
        except ValueError:
            cause = f"its process was killed by signal {-code}"
        if -code == getattr(signal, "SIGKILL", 9):
            cause += ", which is how a system that is out of memory ends one"
    else:
        cause = f"its process ended with code {code}"
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return f"{cause}; it last said: {lines[-1][:200]}" if lines else cause

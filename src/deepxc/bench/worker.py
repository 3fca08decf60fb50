"""A contestant's own process: `python -m deepxc.bench.worker JOB RESULT`, both JSON files.

The process that runs the bench learns from RESULT how it went. Where there is none, this process has died.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deepxc.bench.contestant import Entry, MissingPackage
from deepxc.errors import UserError


def main(job: Path, result: Path) -> None:
    """Do the job and write the result."""
    asked = json.loads(job.read_text(encoding="utf-8"))
    answer = work(asked)
    result.write_text(json.dumps(answer), encoding="utf-8")


def work(asked: dict[str, Any]) -> dict[str, Any]:
    """What became of a job: figures, a missing library, or a failure. Never raises for what a contestant does."""
    from deepxc.bench.trial import hold, read_parts

    entry = Entry(**asked["entry"])
    try:
        contestant = entry.make()
        began = time.perf_counter()
        try:
            train, scored = read_parts(asked["data"], asked["part"])
        except UserError as fault:
            return {"status": "bad data", "what": fault.what, "where": fault.where, "remedy": fault.remedy}
        read = time.perf_counter() - began
        done = hold(entry, contestant, train, scored, asked["threads"], Path(asked["folder"]))
    except MissingPackage as fault:
        return {"status": "missing", "problem": fault.what, "remedy": fault.remedy}
    except MemoryError:
        return {"status": "failed", "problem": "out of memory", "remedy": "Use a machine with more, or less data"}
    except Exception as fault:  # noqa: BLE001 (whatever a library raises is its row in the table)
        traceback.print_exc()
        problem = " ".join(f"{type(fault).__name__}: {fault}".split())
        return {"status": "failed", "problem": problem, "remedy": None}
    done.outcome.costs["read_s"] = read
    return {"status": "ok", "outcome": asdict(done.outcome), "sizes": done.sizes}


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

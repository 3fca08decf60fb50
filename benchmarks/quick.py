"""A guard against lost ground: today's accuracy and ratios on ICD-10 against the committed ones, in some minutes.

    python benchmarks/quick.py [--write] [--repeat N]

Ours and one label tree are trained in one run. Ratios, not times, are compared: a slow day slows both. It fails where
P@1 or R@10 lost more than ACCURACY_LOST points, or where training time or a single query, as a multiple of the peer's,
grew by more than RATIO_GROWN. `--write` makes today's figures the committed ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from report import RESULTS, machine

COMMITTED = RESULTS / "quick.json"
SYSTEMS = ("nearest", "nearest:trees", "astec")
PEER = "omikuji-parabel"
ACCURACY = ("P@1", "R@10")
COSTS = ("fit_s", "p50_us")
ACCURACY_LOST = 0.5
RATIO_GROWN = 1.4


def measured(repeat: int) -> dict[str, dict[str, float]]:
    """Accuracy of each system, and its costs as multiples of the peer's."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        options = ["--systems", ",".join(SYSTEMS), "--peers", PEER, "--threads", "2", "--repeat", str(repeat)]
        command = [sys.executable, "-c", "from deepxc.cli.main import main; main()", "bench", "icd10", *options]
        subprocess.run([*command, "--json", str(file)], stdout=subprocess.DEVNULL, check=True)
        outcomes = json.loads(file.read_text(encoding="utf-8"))["results"]
    found = {outcome["name"]: outcome for outcome in outcomes}
    failed = [f"{name}: {outcome['problem']}" for name, outcome in found.items() if outcome["status"] != "ok"]
    if failed:
        raise SystemExit("\n".join(failed))
    peer = found[PEER]["costs"]
    return {
        name: {metric: round(found[name]["metrics"][metric], 2) for metric in ACCURACY}
        | {cost: round(found[name]["costs"][cost] / peer[cost], 3) for cost in COSTS}
        for name in SYSTEMS
    }


def lost(before: dict[str, float], now: dict[str, float]) -> list[str]:
    """What got worse by more than is let pass."""
    worse = [name for name in ACCURACY if now[name] < before[name] - ACCURACY_LOST]
    return worse + [name for name in COSTS if now[name] > before[name] * RATIO_GROWN]


def main() -> int:
    """Print today's figures beside the committed ones; 1 where something was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"commit to today's figures in {COMMITTED.name}")
    parser.add_argument("--repeat", type=int, default=1, help="rounds; costs are medians")
    arguments = parser.parse_args()
    today = measured(arguments.repeat)
    if arguments.write:
        about = {"machine": machine(), "peer": PEER, "systems": today}
        COMMITTED.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    if not COMMITTED.exists():
        raise SystemExit(f"{COMMITTED} is not there: write it with --write, on code that is known to be good")
    committed = json.loads(COMMITTED.read_text(encoding="utf-8"))["systems"]
    names = (*ACCURACY, *COSTS)
    print(f"fit_s and p50_us as multiples of {PEER}'s; committed figures in brackets")
    print(f"{'':16}" + "".join(f"{name:>20}" for name in names))
    status = 0
    for system, now in today.items():
        before = committed[system]
        print(f"{system:16}" + "".join(f"{now[name]:10.2f} {f'({before[name]:.2f})':>9}" for name in names))
        for name in lost(before, now):
            print(f"  {system}: {name} is worse than is let pass")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())

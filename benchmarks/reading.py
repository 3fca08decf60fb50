"""How fast data come in: raw JSON lines against `json` alone, XC sparse text against scikit-learn's svmlight reader.

    python benchmarks/reading.py [--write] [--repeat 3] [--megabytes 100]

The JSON part reads `../shared/data/yso-en` and is skipped where that is not there. `json` alone parses the lines that
are already unpacked and in memory; deepxc's time is `Dataset.read` of the folder, unpacking and building included.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import orjson

from deepxc.data.dataset import Dataset
from deepxc.data.sparse_text import read_sparse_text
from report import SHARED_DATA, write_result

if TYPE_CHECKING:
    from collections.abc import Callable


def best(call: Callable[[], object], repeat: int) -> float:
    """Seconds of the fastest of some runs, results discarded."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
        del result
    return min(times)


def measure_raw(folder: Path, repeat: int) -> dict[str, float]:
    """Seconds to read a folder of raw JSON, and what parsing its lines alone takes."""
    lines = [line for path in folder.glob("*.json.gz") for line in gzip.decompress(path.read_bytes()).splitlines()]
    return {
        "deepxc, Dataset.read": best(lambda: Dataset.read(folder), repeat),
        "json.loads of the lines alone": best(lambda: [json.loads(line) for line in lines], repeat),
        "orjson.loads of the lines alone": best(lambda: [orjson.loads(line) for line in lines], repeat),
    }


def make_sparse(folder: Path, megabytes: int) -> tuple[Path, Path, float]:
    """The same random rows as XC sparse text and as svmlight text, and the size of the former in MB."""
    rng = np.random.default_rng(7)
    rows, blocks = [], megabytes * 20  # rows are repeated: parsing does not get faster for having seen them
    for _ in range(1000):
        ids = np.unique(rng.integers(0, 500_000, rng.integers(5, 60)))
        rows.append(" ".join(f"{i}:{v:.6f}" for i, v in zip(ids.tolist(), rng.random(len(ids)).tolist(), strict=True)))
    repeat = max(1, round(blocks * 50_000 / sum(map(len, rows))))
    ours, theirs = folder / "rows.txt", folder / "rows.svm"
    ours.write_text(f"{1000 * repeat} 500000\n" + "\n".join(rows * repeat) + "\n")
    theirs.write_text("\n".join("0 " + row for row in rows * repeat) + "\n")
    return ours, theirs, ours.stat().st_size / 1e6


def measure_sparse(megabytes: int, repeat: int) -> dict[str, float]:
    """MB/s of both readers over the same rows."""
    from sklearn.datasets import load_svmlight_file

    with tempfile.TemporaryDirectory() as folder:
        ours, theirs, size = make_sparse(Path(folder), megabytes)
        read_sparse_text(ours)  # compiles
        return {
            "deepxc": size / best(lambda: read_sparse_text(ours), repeat),
            "scikit-learn, load_svmlight_file": size
            / best(lambda: load_svmlight_file(str(theirs), zero_based=True, dtype=np.float32), repeat),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="save the table under benchmarks/results/")
    parser.add_argument("--repeat", type=int, default=3, help="runs of which the fastest counts")
    parser.add_argument("--megabytes", type=int, default=100, help="size of the sparse file")
    args = parser.parse_args()
    lines = []
    folder = SHARED_DATA / "yso-en"
    figures: dict[str, dict[str, float]] = {}
    if folder.is_dir():
        figures["raw"] = measure_raw(folder, args.repeat)
        ours, peer = list(figures["raw"].values())[:2]
        lines += ["| 574,376 raw JSON lines | seconds |", "|---|---|"]
        lines += [f"| {name} | {seconds:.2f} |" for name, seconds in figures["raw"].items()]
        lines += ["", f"deepxc / json = {ours / peer:.2f} (wanted: at most 1.5)", ""]
    else:
        lines += [f"Raw JSON lines: skipped, {folder.name} is not there.", ""]
    figures["sparse"] = measure_sparse(args.megabytes, args.repeat)
    lines += [f"| XC sparse text, {args.megabytes} MB | MB/s |", "|---|---|"]
    lines += [f"| {name} | {speed:.0f} |" for name, speed in figures["sparse"].items()]
    lines += ["", "(wanted: at least 50)"]
    print("\n".join(lines))
    print(json.dumps(figures))
    if args.write:
        write_result("reading", "python benchmarks/reading.py --write", lines)


if __name__ == "__main__":
    main()

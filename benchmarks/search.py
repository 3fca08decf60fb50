"""Vector indexes side by side: seconds to build, recall, microseconds a query on one core, size.

    python benchmarks/search.py [--write] [--quick] [--slow] [--only WORKLOAD ...] [--index PART ...]

Workloads: label vectors and train titles of `yso-en` (skipped where it is not there) over random and over spectral
token vectors, and a million clustered vectors made here. Each index is searched with ever wider settings; the table
shows the first that reaches the recall asked for, or else the widest. `--slow` also builds graphs over more than
100,000 vectors, which takes minutes each. Contestants that are not installed are left out: usearch, voyager, scann,
scalable-vs.

Times are CPU time of the process searching on one core, the best of three, so that a busy machine disturbs them less;
"one" asks the queries one by one, "batch" all at once; the target is met where one query at a time meets it ("yes")
or only a batch does ("in batch").
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from typing import TYPE_CHECKING, Any

import faiss
import numpy as np

from deepxc.search.exact import ExactIndex
from deepxc.threads import thread_count
from report import write_result
from search_contestants import Contestant, contestants
from search_workloads import Workload, workloads

if TYPE_CHECKING:
    from collections.abc import Callable

COLUMNS = ("index", "setting", "build s", "build CPU s", "recall", "one µs", "batch µs", "MiB", "target")


def recall(found: np.ndarray, true: np.ndarray) -> float:
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(true, found, strict=True)]))


def microseconds(work: Callable[[], Any], queries: int) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times) / queries * 1e6


def measure(name: str, setting: str, search: Callable, work: Workload, truth: np.ndarray) -> dict[str, Any]:
    few = work.queries[: min(300, len(work.queries))]
    one = microseconds(lambda: [search(few[i : i + 1]) for i in range(len(few))], len(few))
    batch = microseconds(lambda: search(work.queries), len(work.queries))
    found = recall(search(work.queries), truth)
    reached = ""
    if found >= work.recall and min(one, batch) <= work.microseconds:
        reached = "yes" if one <= work.microseconds else "in batch"
    return {"index": name, "setting": setting, "recall": found, "one": one, "batch": batch, "reached": reached}


def run(contestant: Contestant, work: Workload, truth: np.ndarray, threads: int) -> dict[str, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    index = contestant.build(work, threads)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    result: dict[str, Any] = {}
    for setting, search in contestant.settings(index, work):
        result = measure(contestant.name, setting, search, work, truth)
        if result["recall"] >= work.recall:
            break
    if work.build_seconds and wall > work.build_seconds:
        result["reached"] = ""
    return result | {"build": wall, "cpu": cpu, "mib": contestant.mib(index)}


def exact(work: Workload, truth: np.ndarray) -> dict[str, Any]:
    index = ExactIndex.build(work.vectors, metric=work.metric)
    few = Workload(**{**vars(work), "queries": work.queries[:50]})
    result = measure("deepxc exact", "", lambda queries: index.search(queries, work.k)[0], few, truth[:50])
    return result | {"build": 0.0, "cpu": 0.0, "mib": work.vectors.nbytes / 2**20}


def as_row(result: dict[str, Any]) -> str:
    cells = (
        result["index"],
        result["setting"],
        f"{result['build']:.1f}",
        f"{result['cpu']:.1f}",
        f"{result['recall']:.3f}",
        f"{result['one']:.0f}",
        f"{result['batch']:.0f}",
        f"{result['mib']:.0f}",
        result["reached"],
    )
    return "| " + " | ".join(cells) + " |"


def table(work: Workload, *, slow: bool, threads: int, named: list[str]) -> tuple[list[str], list[dict[str, Any]]]:
    lines = [f"## {work.title}", "", f"Asked for: {work.target}. In bold: what `build_index` chooses.", ""]
    lines += ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    print("\n".join(lines), flush=True)
    truth = work.truth(threads)
    results = [exact(work, truth)]
    print(as_row(results[0]), flush=True)
    for contestant in contestants(len(work.vectors)):
        if named and not any(part in contestant.name for part in named):
            continue
        if not contestant.installed or (contestant.slow and not slow):
            print(f"{contestant.name}: left out", file=sys.stderr)
            continue
        results.append(run(contestant, work, truth, threads))
        print(as_row(results[-1]), flush=True)
        gc.collect()
    return [*lines, *(as_row(result) for result in results), ""], results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="save the tables in benchmarks/results/search.md")
    parser.add_argument("--quick", action="store_true", help="50,000 texts and vectors, few queries")
    parser.add_argument("--slow", action="store_true", help="graphs over large sets too")
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD", help="these workloads alone")
    parser.add_argument("--index", nargs="+", default=[], metavar="PART", help="indexes with this in their name alone")
    parser.add_argument("--threads", type=int, default=None, help="for building; all cores by default")
    arguments = parser.parse_args()
    known = workloads(quick=arguments.quick)
    if len(known) == 1:
        print("yso-en is not there: only the vectors made here are measured", file=sys.stderr)
    lines: list[str] = []
    for name, make in known.items():
        if arguments.only and name not in arguments.only:
            continue
        faiss.omp_set_num_threads(1)
        part, results = table(
            make(), slow=arguments.slow, threads=thread_count(arguments.threads), named=arguments.index
        )
        print(json.dumps({name: results}), file=sys.stderr)
        lines += part
    if arguments.write:
        write_result("search", "python " + " ".join(["benchmarks/search.py", *sys.argv[1:]]), lines)


if __name__ == "__main__":
    main()

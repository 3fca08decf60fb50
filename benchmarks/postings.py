"""Nearest train titles by their tokens: posting lists beside one sparse product a query.

    python benchmarks/postings.py [--write]

487,103 train titles of `yso-en` as rows of TF-IDF tokens, 1,000 test titles, the 50 nearest by cosine. Recall is
against reading every posting; times are CPU time on one core, one query at a time.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np

from deepxc import Dataset
from deepxc.search.posting_lists import PostingLists
from deepxc.text.bag import BagOfTokens
from report import SHARED_DATA, write_result

if TYPE_CHECKING:
    from collections.abc import Callable

_K, _QUERIES, _TIMED = 50, 1_000, 300


def microseconds(ask: Callable[[int], object]) -> float:
    ask(0)
    start = time.process_time()
    for i in range(_TIMED):
        ask(i)
    return (time.process_time() - start) / _TIMED * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/postings.md")
    arguments = parser.parse_args()
    folder = SHARED_DATA / "yso-en"
    if not folder.exists():
        print(f"skipped, there is no {folder}")
        return
    data = Dataset.read(folder)
    assert data.test is not None
    bag = BagOfTokens(min_df=2)
    rows = bag.fit_transform(data.train.inputs)
    queries = bag.transform(data.test.inputs[:_QUERIES])
    truth, _ = PostingLists(rows, budget=0).search(queries, _K)
    told = [set(found[found >= 0].tolist()) for found in truth]
    lines = ["| index | build s | recall@50 | µs/query |", "|---|---|---|---|"]
    for budget in (20_000, 50_000, 100_000, 0):
        start = time.perf_counter()
        index = PostingLists(rows, budget=budget)
        built = time.perf_counter() - start
        ids, _ = index.search(queries, _K)
        recall = np.mean(
            [len(own & set(found.tolist())) / len(own) for own, found in zip(told, ids, strict=True) if own]
        )
        one = microseconds(lambda i, index=index: index.search(queries[i : i + 1], _K))
        name = f"deepxc postings, at most {budget:,} read" if budget else "deepxc postings, all read"
        lines.append(f"| {name} | {built:.2f} | {recall:.3f} | {one:.0f} |")
    start = time.perf_counter()
    by_token = rows.T.tocsr()
    built = time.perf_counter() - start
    one = microseconds(lambda i: (queries[i : i + 1] @ by_token).toarray().ravel().argpartition(-_K)[-_K:])
    lines.append(f"| scipy, one sparse product | {built:.2f} | 1.000 | {one:.0f} |")
    print("\n".join(lines))
    if arguments.write:
        write_result("postings", "python benchmarks/postings.py --write", lines)


if __name__ == "__main__":
    main()

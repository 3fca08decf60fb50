"""Balanced clusters of labels: time, tightness and peak memory.

    python benchmarks/clusters.py [--write] [--skip-million] [--threads N]

First: the labels of `yso-en` as sums of the TF-IDF rows of their titles, to 4,096 clusters, beside scikit-learn's
`BisectingKMeans` (not balanced; to 256 clusters only, as it takes minutes to 4,096) and, where `libpecos` is installed,
its balanced hierarchical k-means. Then one million
dense 256-d vectors to 65,536 clusters, generated here. Target: under 15 s; under 4 minutes and 4 GiB, on two cores.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import resource
import time
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from deepxc.labels.centroids import label_centroids
from deepxc.labels.clusters import balanced_clusters

if TYPE_CHECKING:
    from collections.abc import Callable
from report import SHARED_DATA, write_result


def read_titles() -> tuple[list[str], sparse.csr_matrix] | None:
    folder = SHARED_DATA / "yso-en"
    if not folder.exists():
        return None
    titles, targets = [], []
    with gzip.open(folder / "trn.json.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            titles.append(row["title"])
            targets.append(row["target_ind"])
    with gzip.open(folder / "lbl.json.gz", "rt", encoding="utf-8") as lines:
        n_labels = sum(1 for _ in lines)
    indptr = np.concatenate(([0], np.cumsum([len(target) for target in targets])))
    indices = np.concatenate([np.asarray(target, np.int32) for target in targets])
    return titles, sparse.csr_matrix(
        (np.ones(len(indices), np.float32), indices, indptr), shape=(len(titles), n_labels)
    )


def tightness(centroids: sparse.csr_matrix, clusters: np.ndarray) -> float:
    """Mean cosine of a label to the centre of its cluster."""
    members = sparse.csr_matrix((np.ones(len(clusters), np.float32), (clusters, np.arange(len(clusters)))))
    sums = members @ centroids
    return float(np.sqrt(np.asarray(sums.multiply(sums).sum(axis=1))).sum() / len(clusters))


def timed(work: Callable[[], np.ndarray]) -> tuple[np.ndarray, float, float]:
    """The result, seconds on the clock, and seconds of CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def bisecting(centroids: sparse.csr_matrix, k: int) -> np.ndarray:
    from sklearn.cluster import BisectingKMeans

    return BisectingKMeans(k, random_state=0).fit_predict(centroids)


def pecos(centroids: sparse.csr_matrix, k: int, threads: int) -> np.ndarray:
    from pecos.core import ScipyCsrF32, clib
    from pecos.xmc.base import HierarchicalKMeans

    # Its compiled part alone: the Python around it does not run with NumPy 2.
    settings = HierarchicalKMeans.TrainParams(
        nr_splits=2, min_codes=2, threads=threads, warmup_ratio=1.0, min_sample_rate=1.0
    )
    settings.depth, settings.partition_algo = int(np.log2(k)), HierarchicalKMeans.SKMEANS
    codes = np.zeros(centroids.shape[0], np.uint32)
    return clib.run_clustering(ScipyCsrF32.init_from(centroids), settings, codes).astype(np.int32)


def on_titles(threads: int | None) -> list[dict]:
    data = read_titles()
    if data is None:
        print("skipped: ../shared/data/yso-en is not there")
        return []
    from sklearn.feature_extraction.text import TfidfVectorizer

    titles, Y = data
    X = TfidfVectorizer(min_df=2, sublinear_tf=True, dtype=np.float32).fit_transform(titles)
    centroids = label_centroids(Y, sparse.csr_matrix(X), threads=threads)
    balanced_clusters(centroids[:64], 2)  # loads the compiled loops
    runs: list[tuple[str, int, Callable[[], np.ndarray]]] = [
        ("deepxc", 4096, lambda: balanced_clusters(centroids, 4096, threads=threads)),
        ("deepxc", 256, lambda: balanced_clusters(centroids, 256, threads=threads)),
        ("scikit-learn BisectingKMeans", 256, lambda: bisecting(centroids, 256)),
    ]
    if importlib.util.find_spec("pecos"):
        runs.insert(1, ("PECOS hierarchical k-means", 4096, lambda: pecos(centroids, 4096, threads or -1)))
    return [row(name, f"{centroids.shape[0]:,} sparse", k, *timed(work), centroids) for name, k, work in runs]


def row(
    name: str, what: str, k: int, clusters: np.ndarray, wall: float, cpu: float, vectors: sparse.csr_matrix | None
) -> dict:
    sizes = np.bincount(clusters, minlength=k)
    return {
        "library": name,
        "labels": what,
        "clusters": int(clusters.max()) + 1,
        "seconds": round(wall, 2),
        "cpu_seconds": round(cpu, 2),
        "tightness": None if vectors is None else round(tightness(vectors, clusters), 4),
        "sizes": f"{sizes.min()}-{sizes.max()}",
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def on_a_million(threads: int | None) -> list[dict]:
    n, width, k = 1_000_000, 256, 65_536
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((20_000, width), dtype=np.float32)
    vectors = np.empty((n, width), np.float32)
    for start in range(0, n, 50_000):
        noise = rng.standard_normal((50_000, width), dtype=np.float32)
        vectors[start : start + 50_000] = centres[rng.integers(20_000, size=50_000)] + 0.7 * noise
    balanced_clusters(vectors[:64], 2)
    return [
        row("deepxc", f"{n:,} x {width} dense", k, *timed(lambda: balanced_clusters(vectors, k, threads=threads)), None)
    ]


def table(rows: list[dict]) -> list[str]:
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    return lines + ["| " + " | ".join("-" if r[n] is None else str(r[n]) for n in names) + " |" for r in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="save the table under benchmarks/results")
    parser.add_argument("--skip-million", action="store_true", help="only the labels of yso-en")
    parser.add_argument("--threads", type=int, default=None, help="default: every core")
    options = parser.parse_args()
    # The million first: peak memory is that of the process so far.
    rows = [] if options.skip_million else on_a_million(options.threads)
    rows += on_titles(options.threads)
    for line in map(json.dumps, rows):
        print(line)
    if rows:
        print("\n".join(table(rows)))
        if options.write:
            note = "`tightness`: mean cosine of a label to its cluster's centre. `peak_gib`: of the process so far."
            write_result("clusters", "python benchmarks/clusters.py --write", [*table(rows), "", note])


if __name__ == "__main__":
    main()

"""The vectors that `search.py` measures on: made here, and from the texts of `yso-en` where they are there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from deepxc.search.exact import ExactIndex
from report import SHARED_DATA

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepxc.search.protocol import Metric

DIM = 512


@dataclass(frozen=True)
class Workload:
    """Vectors, queries, and what is asked of an index over them."""

    title: str
    vectors: np.ndarray
    queries: np.ndarray
    metric: Metric
    k: int
    recall: float
    microseconds: float
    build_seconds: float | None = None

    @property
    def target(self) -> str:
        """What is asked for, in words."""
        built = f", built in under {self.build_seconds:g} s" if self.build_seconds else ""
        return f"recall@{self.k} {self.recall:g} within {self.microseconds:g} µs a query{built}"

    def truth(self, threads: int) -> np.ndarray:
        """The true ids, by exact search."""
        return ExactIndex.build(self.vectors, metric=self.metric).search(self.queries, self.k, threads=threads)[0]


def clustered(size: int, n_queries: int) -> Workload:
    """Vectors as labels lie: topics of 100 themes, about 100 vectors to a theme, some themes 20 times the size."""
    rng = np.random.default_rng(0)
    topics = rng.standard_normal((max(1, size // 10_000), 128), dtype=np.float32)
    themes = np.repeat(topics, 100, axis=0)
    themes += 0.7 * rng.standard_normal(themes.shape, dtype=np.float32)
    popularity = 1 / (rng.permutation(len(themes)) + 100.0)
    rows = rng.choice(len(themes), size + n_queries, p=popularity / popularity.sum())
    vectors = themes[rows] + 0.6 * rng.standard_normal((len(rows), 128), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    title = f"{size:,} x 128 vectors in {len(themes):,} themes of {len(topics)} topics"
    return Workload(title, vectors[:size], vectors[size:], "inner_product", 100, 0.97, 500)


@cache
def _titles(limit: int | None) -> tuple:
    """Bags of the train titles, the test titles and the label texts, and the labels of the train titles."""
    from deepxc.data.dataset import Dataset
    from deepxc.text.bag import BagOfTokens

    data = Dataset.read(SHARED_DATA / "yso-en")
    train = data.train if limit is None else data.train.take(np.arange(limit))
    bag = BagOfTokens(min_df=2).fit([*train.texts, *data.labels.texts])
    return bag.transform(train.texts), bag.transform(data.test.texts[:5000]), bag.transform(data.labels.texts), train.Y


@cache
def _token_vectors(kind: str, limit: int | None) -> np.ndarray:
    from deepxc.text.spectral import spectral
    from deepxc.text.word_vectors import random_projection

    bags = _titles(limit)[0]
    return spectral(bags, DIM) if kind == "spectral" else random_projection(bags.shape[1], DIM)


def labels(kind: str, n_queries: int, limit: int | None = None) -> Workload:
    """Label vectors: the direction of centroid + half the label's own text; queries are test titles."""
    from deepxc.labels.centroids import label_centroids
    from deepxc.text.word_vectors import embed

    train, test, label_texts, targets = _titles(limit)
    tokens = _token_vectors(kind, limit)
    vectors = label_centroids(targets, embed(train, tokens)) + 0.5 * embed(label_texts, tokens)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    title = f"{len(vectors):,} x {DIM} label vectors ({kind} token vectors)"
    return Workload(title, vectors, embed(test, tokens)[:n_queries], "inner_product", 100, 0.97, 250)


def texts(kind: str, n_queries: int, limit: int | None = None) -> Workload:
    """Vectors of train titles; queries are test titles."""
    from deepxc.text.word_vectors import embed

    train, test, _, _ = _titles(limit)
    tokens = _token_vectors(kind, limit)
    vectors = embed(train, tokens)
    title = f"{len(vectors):,} x {DIM} train titles ({kind} token vectors)"
    return Workload(title, vectors, embed(test, tokens)[:n_queries], "cosine", 50, 0.9, 500, 30)


def workloads(*, quick: bool) -> dict[str, Callable[[], Workload]]:
    """By name; those that need `yso-en` only where it is there."""
    made: dict[str, Callable[[], Workload]] = {}
    limit = 50_000 if quick else None
    if (SHARED_DATA / "yso-en").exists():
        for kind in ("random", "spectral"):
            made[f"labels-{kind}"] = lambda kind=kind: labels(kind, 300 if quick else 2000, limit)
            made[f"texts-{kind}"] = lambda kind=kind: texts(kind, 300 if quick else 1000, limit)
    made["clustered"] = lambda: clustered(50_000 if quick else 1_000_000, 300 if quick else 1000)
    return made

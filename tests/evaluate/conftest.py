"""Small answers and truths that several tests read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import sparse

from deepxc.data.label_space import LabelSpace
from deepxc.predict.topk import TopK

if TYPE_CHECKING:
    from collections.abc import Callable


def truth_of(rows: list[list[int]], n_labels: int) -> sparse.csr_matrix:
    """A truth matrix from lists of label ids."""
    indptr = np.r_[0, np.cumsum([len(row) for row in rows])]
    indices = np.array([label for row in rows for label in sorted(row)], np.int32)
    return sparse.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(len(rows), n_labels))


def topk_of(rows: list[list[int]], n_labels: int) -> TopK:
    """Answers with falling scores from ranked lists of label ids."""
    width = max(len(row) for row in rows)
    ids = np.full((len(rows), width), -1, np.int64)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
    scores = np.where(ids >= 0, np.arange(width, 0, -1, dtype=np.float32), -np.inf).astype(np.float32)
    return TopK(ids, scores, LabelSpace.numbered(n_labels))


@pytest.fixture
def truth() -> Callable[[list[list[int]], int], sparse.csr_matrix]:
    return truth_of


@pytest.fixture
def topk() -> Callable[[list[list[int]], int], TopK]:
    return topk_of


@pytest.fixture
def zipf() -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray]:
    """2,000 texts, 300 labels of falling frequency: ids of a fair ranker, the truth, train frequencies."""
    rng = np.random.default_rng(3)
    n, n_labels = 2000, 300
    chance = 1.0 / np.arange(1, n_labels + 1)
    noise = rng.gumbel(size=(n, n_labels)) + np.log(chance)
    true_rank = np.argsort(-noise, axis=1)
    sizes = rng.integers(0, 6, n)
    Y = truth_of([row[:size].tolist() for row, size in zip(true_rank, sizes, strict=True)], n_labels)
    answers = np.argsort(-(noise + rng.gumbel(size=(n, n_labels))), axis=1)[:, :10]
    frequencies = np.maximum(5000 * chance, 1).astype(np.int64)
    return answers, Y, frequencies

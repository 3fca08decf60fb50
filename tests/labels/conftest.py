"""Small label spaces whose structure is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse


@pytest.fixture
def planted():
    """40 groups of 25 unit-ish vectors around far-apart centres, shuffled: (vectors, group of each)."""
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(40, 48))
    groups = rng.permutation(np.repeat(np.arange(40), 25))
    vectors = centres[groups] + 0.1 * rng.normal(size=(1000, 48))
    return vectors.astype(np.float32), groups


@pytest.fixture
def label_matrix():
    """300 texts x 60 labels, one to four labels a text, skewed; label 59 has no text."""
    rng = np.random.default_rng(5)
    rows, columns = [], []
    for text in range(300):
        chosen = np.unique((59 * rng.random(rng.integers(1, 5)) ** 2).astype(int))
        rows += [text] * len(chosen)
        columns += chosen.tolist()
    return sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=(300, 60))


@pytest.fixture
def features():
    """300 sparse texts over 500 features, rows of length 1."""
    X = sparse.random(300, 500, density=0.02, format="csr", dtype=np.float32, rng=np.random.default_rng(6))
    X.data /= np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()).repeat(np.diff(X.indptr)).clip(1e-9)
    return X

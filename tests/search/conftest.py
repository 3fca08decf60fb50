"""Planted vectors that every index is tried on."""

import numpy as np
import pytest

KINDS = ("exact", "scan", "lists", "graph")
METRICS = ("cosine", "inner_product")


@pytest.fixture(scope="session")
def planted():
    """Vectors about 60 centres, with lengths that differ, and queries near some of them."""
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((60, 24))
    vectors = centres[rng.integers(0, 60, 3000)] + 0.4 * rng.standard_normal((3000, 24))
    vectors *= rng.uniform(0.5, 1.5, (3000, 1))
    queries = vectors[rng.choice(3000, 100, replace=False)] + 0.1 * rng.standard_normal((100, 24))
    return vectors.astype(np.float32), queries.astype(np.float32)


@pytest.fixture(scope="session", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="session", params=METRICS)
def metric(request):
    return request.param


@pytest.fixture(scope="session")
def built(planted, kind, metric):
    """An index of each kind and metric over the planted vectors."""
    from deepxc.search.choose import build_index

    return build_index(planted[0], metric, kind=kind, seed=5)

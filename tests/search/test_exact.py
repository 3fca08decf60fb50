"""Exact search against a full sort."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from deepxc.search import exact
from deepxc.search.exact import ExactIndex


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 60),
    dim=st.integers(1, 9),
    k=st.integers(1, 70),
    values=st.integers(1, 3),
    block=st.integers(1, 40),
)
def test_equals_a_stable_sort(seed, size, dim, k, values, block):
    """Small whole numbers: sums are exact and ties are many; blocks small enough to be crossed."""
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-values, values + 1, (size, dim))
    queries = rng.integers(-values, values + 1, (5, dim))
    before = exact._VECTORS_AT_ONCE, exact._QUERIES_AT_ONCE
    exact._VECTORS_AT_ONCE, exact._QUERIES_AT_ONCE = block, 2
    try:
        ids, scores = ExactIndex.build(vectors, metric="inner_product").search(queries, k)
    finally:
        exact._VECTORS_AT_ONCE, exact._QUERIES_AT_ONCE = before
    products = queries @ vectors.T
    order = np.argsort(-products, axis=1, kind="stable")[:, :k]
    found = order.shape[1]
    np.testing.assert_array_equal(ids[:, :found], order)
    np.testing.assert_array_equal(scores[:, :found], np.take_along_axis(products, order, axis=1))
    assert (ids[:, found:] == -1).all()
    assert (scores[:, found:] == -np.inf).all()


def test_blocks_change_no_answer(planted, monkeypatch):
    vectors, queries = planted
    index = ExactIndex.build(vectors)
    expected = index.search(queries, 12)
    for rows, columns in ((1, 5000), (7, 501), (128, 13)):
        monkeypatch.setattr(exact, "_QUERIES_AT_ONCE", rows)
        monkeypatch.setattr(exact, "_VECTORS_AT_ONCE", columns)
        for one, other in zip(expected, index.search(queries, 12), strict=True):
            np.testing.assert_array_equal(one, other)


def test_no_full_score_matrix(planted):
    """4,000 queries on 40,000 vectors would be 610 MiB of scores."""
    import tracemalloc

    rng = np.random.default_rng(0)
    index = ExactIndex.build(rng.standard_normal((40_000, 4), dtype=np.float32), metric="inner_product")
    queries = rng.standard_normal((4000, 4), dtype=np.float32)
    tracemalloc.start()
    index.search(queries, 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24 * 2**20


def test_loaded_vectors_stay_on_disk(planted, tmp_path):
    ExactIndex.build(planted[0]).save(tmp_path)
    assert isinstance(ExactIndex.load(tmp_path)._vectors, np.memmap)

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.cluster import BisectingKMeans
from sklearn.metrics import adjusted_rand_score

from deepxc.errors import DataError, UserError
from deepxc.labels import clusters as module
from deepxc.labels import row_set
from deepxc.labels.clusters import balanced_clusters


def mean_similarity(vectors, clusters):
    """Mean cosine of each row to the centre of its cluster."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    sums = np.zeros((clusters.max() + 1, vectors.shape[1]))
    np.add.at(sums, clusters, unit)
    return np.linalg.norm(sums, axis=1).sum() / len(vectors)


@pytest.fixture
def shared_out(monkeypatch):
    """Treat every node as large, so that small data take the path that shares a node's rows out over threads."""
    monkeypatch.setattr(module, "_SUBTREE", (0, 0))
    monkeypatch.setattr(row_set, "_BLOCK", 64)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([-1.5, -0.0, 0.0, 0.25, 3.0, 7.0, 8.5]), min_size=1, max_size=40), st.data())
def test_select_finds_the_value_at_a_place(values, data):
    from deepxc.labels.kernels.clusters import select

    place = data.draw(st.integers(0, len(values) - 1))
    assert select(np.array(values, np.float32), place) == sorted(values)[place]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_sizes_differ_by_at_most_one(data):
    n = data.draw(st.integers(1, 120))
    k = data.draw(st.integers(1, n))
    values = np.random.default_rng(data.draw(st.integers(0, 99)))
    rows = values.integers(-1, 2, size=(n, 5)).astype(np.float32)  # many equal rows and rows of zeros
    vectors = sparse.csr_matrix(rows) if data.draw(st.booleans()) else rows
    found = balanced_clusters(vectors, k, seed=data.draw(st.integers(0, 5)), threads=1)
    sizes = np.bincount(found, minlength=k)
    assert found.dtype == np.int32
    assert len(sizes) == k
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("k", [1, 2, 7, 40, 999, 1000])
def test_threads_do_not_change_the_clusters(planted, kind, k):
    vectors = sparse.csr_matrix(planted[0]) if kind == "sparse" else planted[0]
    one = balanced_clusters(vectors, k, seed=4, threads=1)
    np.testing.assert_array_equal(one, balanced_clusters(vectors, k, seed=4, threads=3))
    sizes = np.bincount(one, minlength=k)
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.usefixtures("shared_out")
def test_threads_do_not_change_the_clusters_of_large_nodes(planted, kind):
    vectors = sparse.csr_matrix(planted[0]) if kind == "sparse" else planted[0]
    one, three = (balanced_clusters(vectors, 40, seed=4, threads=n) for n in (1, 3))
    np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_both_paths_split_alike(planted, kind, monkeypatch):
    vectors = sparse.csr_matrix(planted[0]) if kind == "sparse" else planted[0]
    small = balanced_clusters(vectors, 40, seed=4)
    monkeypatch.setattr(module, "_SUBTREE", (0, 0))
    large = balanced_clusters(vectors, 40, seed=4)
    # The two sum in different orders, so a row on the edge may fall either way; hardly any does.
    assert (small == large).mean() > 0.98


def test_sparse_and_dense_split_alike(planted):
    dense, _ = planted
    a, b = balanced_clusters(dense, 40, seed=4), balanced_clusters(sparse.csr_matrix(dense), 40, seed=4)
    assert (a == b).mean() > 0.98


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_recovers_two_planted_clusters_exactly(kind):
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat([0, 1], 200))
    rows = np.eye(2, 30, dtype=np.float32)[groups] + 0.1 * rng.random((400, 30), dtype=np.float32)
    vectors = sparse.csr_matrix(rows) if kind == "sparse" else rows
    for seed in range(5):
        assert adjusted_rand_score(groups, balanced_clusters(vectors, 2, seed=seed)) == 1.0


def test_recovers_a_planted_hierarchy(planted):
    # Groups that come in pairs, fours and eights: each level of the tree has one best cut.
    rng = np.random.default_rng(1)
    centres = np.zeros((16, 16))
    for level, weight in enumerate((4.0, 3.0, 2.0, 1.0)):
        branch = rng.normal(size=(2 ** (level + 1), 16))
        centres += weight * (branch / np.linalg.norm(branch, axis=1, keepdims=True))[np.arange(16) >> (3 - level)]
    groups = rng.permutation(np.repeat(np.arange(16), 30))
    vectors = (centres[groups] + 0.01 * rng.normal(size=(480, 16))).astype(np.float32)
    scores = [adjusted_rand_score(groups, balanced_clusters(vectors, 16, seed=seed)) for seed in range(3)]
    assert max(scores) > 0.95


def test_is_as_tight_as_an_unbalanced_peer(planted):
    vectors, groups = planted
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    ours = mean_similarity(vectors, balanced_clusters(vectors, 40, seed=0))
    peer = mean_similarity(vectors, BisectingKMeans(40, random_state=0).fit_predict(unit))
    best = mean_similarity(vectors, groups)
    assert ours > 0.97 * peer
    assert ours > 0.94 * best


def test_lengths_of_rows_do_not_matter(planted):
    vectors, _ = planted
    powers = 2.0 ** np.random.default_rng(0).integers(-8, 9, size=(len(vectors), 1))  # exact in floating point
    found = balanced_clusters((vectors * powers).astype(np.float32), 40, seed=2)
    np.testing.assert_array_equal(found, balanced_clusters(vectors, 40, seed=2))


def test_order_of_rows_does_not_change_separated_clusters():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 50)
    vectors = (np.eye(2, 10)[groups] + 0.05 * rng.random((100, 10))).astype(np.float32)
    order = rng.permutation(100)
    plain, shuffled = balanced_clusters(vectors, 2, seed=1), balanced_clusters(vectors[order], 2, seed=1)
    assert adjusted_rand_score(plain[order], shuffled) == 1.0


def test_order_of_features_and_duplicates_do_not_matter(planted):
    rows = np.random.default_rng(1).integers(0, 3, size=(200, 30)).astype(np.float32)
    plain = sparse.csr_matrix(rows)
    doubled = sparse.csr_matrix(
        (np.repeat(plain.data / 2, 2), np.repeat(plain.indices, 2), plain.indptr * 2), shape=plain.shape
    )
    np.testing.assert_array_equal(balanced_clusters(plain, 9, seed=1), balanced_clusters(doubled, 9, seed=1))


def test_siblings_are_neighbours_in_number():
    # Four groups, two by two alike: with four clusters the like ones are 0 and 1, and 2 and 3.
    rng = np.random.default_rng(0)
    pairs = np.array([[1, 0.2, 0], [1, -0.2, 0], [-1, 0, 0.2], [-1, 0, -0.2]])
    groups = rng.permutation(np.repeat(np.arange(4), 25))
    vectors = (pairs[groups] + 0.01 * rng.normal(size=(100, 3))).astype(np.float32)
    found = balanced_clusters(vectors, 4, seed=0)
    assert adjusted_rand_score(groups, found) == 1.0
    assert adjusted_rand_score(groups >> 1, found >> 1) == 1.0


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_rows_that_cannot_be_told_apart_are_still_balanced(kind):
    for rows in (np.zeros((50, 4), np.float32), np.ones((50, 4), np.float32)):
        vectors = sparse.csr_matrix(rows) if kind == "sparse" else rows
        assert np.bincount(balanced_clusters(vectors, 8)).tolist().count(6) == 6


def test_input_is_left_as_it_was(planted, tmp_path):
    np.save(tmp_path / "v.npy", planted[0])
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    np.testing.assert_array_equal(balanced_clusters(mapped, 8), balanced_clusters(planted[0], 8))
    np.testing.assert_array_equal(mapped, planted[0])


def test_dense_vectors_are_not_copied():
    vectors = np.random.default_rng(0).normal(size=(20_000, 256)).astype(np.float32)
    balanced_clusters(vectors[:100], 4)  # whatever is loaded once
    tracemalloc.start()
    balanced_clusters(vectors, 64, max_iter=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * vectors.nbytes


@pytest.mark.parametrize("k", [0, -1, 1001])
def test_impossible_numbers_of_clusters_are_refused(planted, k):
    with pytest.raises(UserError, match=r"n_clusters: .* Give a number from 1 to 1000"):
        balanced_clusters(planted[0], k)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_broken_vectors_are_refused_by_label(planted, kind, value):
    rows = planted[0].copy()
    rows[700, 3] = value
    rows[900, 3] = value
    with pytest.raises(DataError, match="label 700"):
        balanced_clusters(sparse.csr_matrix(rows) if kind == "sparse" else rows, 4)


def test_one_dimension_is_refused():
    with pytest.raises(DataError, match="1 dimension"):
        balanced_clusters(np.ones(4, np.float32), 2)

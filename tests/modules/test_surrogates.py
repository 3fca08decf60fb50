"""Surrogate tasks: by hand, against dense arithmetic, and through the conformance suite."""

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from deepxc.data.dataset import Split
from deepxc.data.label_space import LabelSpace
from deepxc.errors import DataError, UserError
from deepxc.modules.surrogates import label_clusters
from deepxc.modules.surrogates.all_labels import AllLabels
from deepxc.modules.surrogates.hashing import LabelHashing, decode, decode_candidates, label_buckets
from deepxc.modules.surrogates.label_clusters import LabelClusters, project
from deepxc.modules.surrogates.label_selection import LabelSelection
from deepxc.modules.surrogates.sizes import surrogate_size
from deepxc.modules.surrogates.unsupervised import Unsupervised
from deepxc.testing.surrogates import check_surrogate


def split_of(Y, X=None):
    Y = sparse.csr_matrix(np.asarray(Y, np.float32))
    X = sparse.csr_matrix(np.eye(Y.shape[0], dtype=np.float32)) if X is None else X
    return Split(labels=LabelSpace.numbered(Y.shape[1]), Y=Y, X=X), X


@pytest.mark.parametrize(
    "make",
    [
        AllLabels,
        Unsupervised,
        LabelClusters,
        lambda: LabelClusters(5, walk=False),
        lambda: LabelClusters(1000),
        LabelSelection,
        lambda: LabelSelection(count=7),
        LabelHashing,
        lambda: LabelHashing(6, hashes=3, repetition=2),
    ],
)
def test_every_surrogate_conforms(make):
    check_surrogate(make)


@pytest.mark.parametrize(
    ("labels", "size"), [(1, 1), (2, 2), (7, 2), (8, 2), (16, 4), (100, 16), (26_643, 4096), (10**6, 1 << 16)]
)
def test_default_size_leaves_four_labels_to_each_up_to_the_papers_limit(labels, size):
    assert surrogate_size(labels) == size


def test_a_text_has_the_clusters_of_its_labels():
    # Labels 0 and 2 share their texts' features, so do 1 and 3; label 4 occurs nowhere.
    X = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1], [0.5, 0.5], [1, 1]], np.float32)
    Y = [[1, 0, 0, 0, 0], [1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 0, 0, 0]]
    split, _ = split_of(Y, X)
    surrogate = LabelClusters(2, walk=False)
    clusters, count = surrogate.cluster(split.Y, X, 0)
    assert count == 2
    assert clusters[0] == clusters[2] != clusters[1] == clusters[3]
    assert clusters[4] == -1
    a, b = clusters[0], clusters[1]
    expected = np.zeros((6, 2))
    expected[[0, 1], a] = expected[[2, 3], b] = expected[5] = 1
    assert np.array_equal(surrogate.targets(split, X, 0).toarray(), expected)


def test_walks_bring_labels_together_that_share_texts_but_no_words():
    # Eight texts with a word each. Labels 0 and 1 share texts through label 2; by words alone they are all as far.
    Y = np.zeros((8, 4))
    Y[[0, 1], 0] = Y[[2, 3], 1] = 1
    Y[[4, 5], 2] = Y[[6, 7], 3] = 1
    Y[1, 1] = Y[2, 0] = 1
    Y[5, 3] = Y[6, 2] = 1
    split, X = split_of(Y)
    for seed in range(5):
        clusters, _ = LabelClusters(2).cluster(split.Y, X, seed)
        assert clusters[0] == clusters[1] != clusters[2] == clusters[3]


def test_clusters_are_the_same_on_any_number_of_threads_and_say_their_number(caplog):
    rng = np.random.default_rng(0)
    X = sparse.random(400, 80, 0.1, "csr", dtype=np.float32, rng=rng)
    split, X = split_of(rng.random((400, 70)) < 0.05, sparse.csr_matrix(X))
    with caplog.at_level(logging.INFO, "deepxc"):
        first = LabelClusters(threads=1).targets(split, X, 4)
    assert "16 clusters of 70 labels" in caplog.text
    assert (first != LabelClusters(threads=3).targets(split, X, 4)).nnz == 0


def test_large_centroids_are_clustered_in_fewer_dimensions(monkeypatch):
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(4), 10)
    centres = sparse.random(4, 5000, 0.02, "csr", rng=rng).toarray()
    X = sparse.csr_matrix((centres[groups] * (rng.random((40, 5000)) < 0.7)).astype(np.float32))
    Y = sparse.csr_matrix(np.eye(40, dtype=np.float32))
    split, _ = split_of(Y.toarray(), X)
    exact, _ = LabelClusters(4).cluster(split.Y, X, 2)
    monkeypatch.setattr(label_clusters, "MOST_BYTES", 0)
    rough, _ = LabelClusters(4).cluster(split.Y, X, 2)
    for clusters in (exact, rough):
        assert all(len(set(clusters[groups == g])) == 1 for g in range(4))
        assert len(set(clusters)) == 4


def test_projection_keeps_angles():
    X = sparse.random(60, 3000, 0.02, "csr", dtype=np.float32, rng=np.random.default_rng(3))
    dense = X.toarray() / np.linalg.norm(X.toarray(), axis=1, keepdims=True)
    short = project(sparse.csr_matrix(X), 0)
    assert short.shape == (60, 512)
    assert np.allclose(np.linalg.norm(short, axis=1), 1, atol=1e-5)
    off = short @ short.T - dense @ dense.T
    assert np.abs(off).max() < 0.25
    assert abs(off[~np.eye(60, dtype=bool)].mean()) < 0.01


def test_selection_takes_the_most_frequent_labels():
    Y = [[1, 0, 1, 0, 1], [1, 0, 0, 0, 1], [0, 0, 1, 0, 1], [0, 1, 0, 0, 1]]  # frequencies 2 1 2 0 4
    split, X = split_of(Y)
    picked = LabelSelection(count=2).targets(split, X, 0).toarray()
    assert np.array_equal(picked, np.asarray(Y)[:, [0, 4]])
    assert LabelSelection(share=1.0).targets(split, X, 0).shape == (4, 4)  # label 3 has no text


def test_selection_takes_a_smaller_share_of_larger_problems():
    from deepxc.modules.surrogates.label_selection import _share

    assert (_share(10), _share(10_000)) == (0.2, 0.2)
    assert _share(100_000) == pytest.approx(0.125)
    assert _share(10**7) == pytest.approx(0.05)


def test_hash_is_a_hash():
    buckets = label_buckets(5000, 50, seed=1)
    assert np.array_equal(buckets, label_buckets(5000, 50, seed=1))
    assert not np.array_equal(buckets, label_buckets(5000, 50, seed=1, repetition=1))
    assert not np.array_equal(buckets, label_buckets(5000, 50, seed=2))
    assert np.bincount(buckets, minlength=50).min() > 0


@given(st.integers(0, 10_000), st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_two_labels_rarely_share_a_bucket(one, other):
    if one == other:
        return
    size = max(one, other) + 1
    drawn = [label_buckets(size, 20, seed=5, repetition=r) for r in range(300)]
    together = sum(b[one] == b[other] for b in drawn)
    assert together / 300 < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 300)


@pytest.mark.parametrize("hashes", [1, 3])
def test_labels_score_the_mean_of_their_buckets(hashes):
    rng = np.random.default_rng(0)
    tables = np.stack([LabelHashing(7, hashes=hashes, repetition=r).buckets(40, 3) for r in range(4)])
    scores = rng.random((4, 9, 7)).astype(np.float32)
    dense = np.mean([[scores[r][:, h] for h in tables[r]] for r in range(4)], axis=(0, 1))
    ids, best = decode(scores, tables, 6, threads=2)
    order = np.argsort(-dense, axis=1, kind="stable")[:, :6]
    assert np.allclose(best, np.take_along_axis(dense, order, 1), atol=1e-6)
    assert np.allclose(np.take_along_axis(dense, ids, 1), best, atol=1e-6)
    assert np.array_equal(ids, decode(scores, tables, 6, threads=1)[0])
    given_ids = np.where(rng.random((9, 5)) < 0.2, -1, rng.integers(40, size=(9, 5)))
    found = decode_candidates(scores, tables, given_ids)
    expected = np.where(given_ids < 0, -np.inf, np.take_along_axis(dense, np.maximum(given_ids, 0), 1))
    assert np.allclose(found, expected, atol=1e-6)
    assert decode(scores, tables, 50)[0].shape == (9, 50)
    assert (decode(scores, tables, 50)[0][:, 40:] == -1).all()


def test_hashed_targets_are_the_buckets_of_the_labels():
    rng = np.random.default_rng(2)
    Y = rng.random((30, 25)) < 0.1
    split, X = split_of(Y)
    surrogate = LabelHashing(6, hashes=2)
    expected = np.zeros((30, 6), bool)
    for buckets in surrogate.buckets(25, 9):
        for text, label in zip(*np.nonzero(Y), strict=True):
            expected[text, buckets[label]] = True
    assert np.array_equal(surrogate.targets(split, X, 9).toarray(), expected)


def test_bad_settings_are_refused():
    split, X = split_of(np.eye(4))
    for surrogate in (
        LabelClusters(0),
        LabelSelection(share=0.0),
        LabelSelection(share=0.1, count=3),
        LabelSelection(count=0),
        LabelHashing(0),
        LabelHashing(hashes=0),
    ):
        with pytest.raises(UserError):
            surrogate.targets(split, X, 0)
    empty, X = split_of(np.zeros((3, 2)))
    with pytest.raises(UserError, match="no train row has a label"):
        LabelClusters().targets(empty, X, 0)
    with pytest.raises(DataError):
        decode(np.zeros((2, 3, 4), np.float32), np.full((2, 5), 4), 1)


def test_the_suite_notices_a_broken_surrogate():
    class Wrong:
        def targets(self, split, features, seed):
            targets = sparse.csr_matrix(split.Y)
            targets.data[:] = -1
            return targets

    with pytest.raises(AssertionError, match="in place"):
        check_surrogate(Wrong)

    class Random:
        def targets(self, split, features, seed):
            return sparse.random(len(split), 5, 0.5, "csr", dtype=np.float32)

    with pytest.raises(AssertionError, match="same seed"):
        check_surrogate(Random)

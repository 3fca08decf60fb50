"""Shortlisters: against plain loops, the exact search as the oracle, and through the conformance suite."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from deepxc.errors import DataError, ModelFolderError, UserError
from deepxc.labels.head_centroids import head_centroids
from deepxc.modules.shortlists.centroids import Centroids
from deepxc.modules.shortlists.classifiers import ClassifierSearch
from deepxc.modules.shortlists.hybrid import Hybrid, merged
from deepxc.modules.shortlists.in_batch import InBatch
from deepxc.modules.shortlists.neighbours import votes
from deepxc.modules.shortlists.owned_vectors import OwnedVectors
from deepxc.modules.shortlists.row_blocks import LabelRows, drop_positives
from deepxc.modules.shortlists.saving import open_shortlister
from deepxc.modules.shortlists.texts import Texts
from deepxc.modules.shortlists.token_texts import TokenTexts
from deepxc.modules.shortlists.uniform import Uniform
from deepxc.modules.shortlists.unigram import Unigram
from deepxc.modules.shortlists.views import Views
from deepxc.testing.shortlists import check_shortlister

EVERY = [
    (Centroids, "dense"),
    (lambda: Centroids(head_threshold=6, n_centres=3), "dense"),
    (lambda: Centroids(head_threshold=None), "both"),
    (lambda: Texts(10), "dense"),
    (lambda: TokenTexts(10), "tokens"),
    (ClassifierSearch, "dense"),
    (Hybrid, "dense"),
    (lambda: Hybrid(Centroids(head_threshold=6, n_centres=2), TokenTexts(10), weight=0.5, random=2), "both"),
    (lambda: Hybrid(random=0), "dense"),
    (Uniform, "dense"),
    (lambda: Uniform(3), "tokens"),
    (Unigram, "dense"),
    (InBatch, "dense"),
]


@pytest.mark.parametrize(("make", "reads"), EVERY)
def test_every_shortlister_conforms(make, reads):
    check_shortlister(make, reads)


def random_labels(rng, n, n_labels, density=0.1):
    kept = rng.random((n, n_labels)) < density
    return sparse.csr_matrix(kept.astype(np.float32))


@pytest.fixture
def fine():
    """400 rows in 12 dimensions, 50 labels with structure; label 0 has two far-apart meanings."""
    rng = np.random.default_rng(11)
    centres = rng.standard_normal((50, 12))
    centres[7] = -centres[3]
    main = rng.integers(1, 50, size=400)
    X = (centres[main] + 0.4 * rng.standard_normal((400, 12))).astype(np.float32)
    kept = rng.random((400, 50)) < 0.01
    kept[np.arange(400), main] = True
    kept[:, 0] = False
    kept[(main == 3) | (main == 7), 0] = True
    return X, sparse.csr_matrix(kept.astype(np.float32))


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_centroids_rank_labels_by_the_cosine_with_their_mean(fine):
    X, Y = fine
    finder = Centroids(head_threshold=None)
    finder.fit(X, Y, 0, 1)
    expected = unit(X) @ unit(Y.T @ X).T
    ids, scores = finder.shortlist(X, 5)
    assert np.allclose(scores, -np.sort(-expected, axis=1)[:, :5], atol=1e-5)
    assert np.allclose(np.take_along_axis(expected, ids, 1), scores, atol=1e-5)


def test_head_labels_are_found_from_each_of_their_meanings(fine):
    X, Y = fine
    rows = np.flatnonzero(Y[:, [0]].toarray().ravel())
    plain, centred = Centroids(head_threshold=None), Centroids(head_threshold=len(rows), n_centres=2)
    for finder in (plain, centred):
        finder.fit(X, Y, 0, 1)
    assert centred.vectors.owners.tolist().count(0) == 3  # the mean, and two centres
    found = [(finder.shortlist(X[rows], 2)[0] == 0).any(axis=1).mean() for finder in (plain, centred)]
    assert found[1] > 0.9 > 0.7 > found[0]


@pytest.mark.parametrize("k", [1, 4, 50])
def test_a_label_scores_by_its_best_vector_even_if_it_has_hundreds(fine, k):
    X, Y = fine
    finder = Centroids(head_threshold=5, n_centres=300)
    finder.fit(X, Y, 1, 2)
    rng = np.random.default_rng(0)
    crowd = unit(np.ones((200, 12)) + 0.01 * rng.standard_normal((200, 12)))
    finder.add(crowd.astype(np.float32), np.full(200, 9))
    built = finder.vectors
    heads = head_centroids(Y, X, threshold=5, seed=1)
    vectors = np.concatenate(((Y.T @ X)[np.asarray(Y.sum(axis=0)).ravel() > 0], heads.vectors, crowd))
    owners = np.concatenate((built.owners, np.full(200, 9)))
    assert (np.bincount(owners) > 10).any()
    similarity = unit(X) @ unit(vectors).T
    best = np.full((400, 50), -np.inf)
    for label in np.unique(owners):
        best[:, label] = similarity[:, owners == label].max(axis=1)
    ids, scores = finder.shortlist(X, k)
    assert np.allclose(scores, -np.sort(-best, axis=1)[:, :k], atol=1e-5)
    assert np.allclose(np.take_along_axis(best, ids, 1)[ids >= 0], scores[ids >= 0], atol=1e-5)


@pytest.mark.parametrize("make", [lambda kind: Centroids(index=kind), lambda kind: Texts(40, index=kind)])
def test_approximate_search_finds_nearly_what_exact_search_does(make):
    rng = np.random.default_rng(2)
    centres = rng.standard_normal((60, 24))
    X = (centres[rng.integers(60, size=3000)] + 0.7 * rng.standard_normal((3000, 24))).astype(np.float32)
    Y = sparse.csr_matrix((np.ones(6000, np.float32), rng.integers(1500, size=6000), np.arange(0, 6001, 2)))
    Y.sum_duplicates()
    found = []
    for kind in ("exact", "scan"):
        finder = make(kind)
        finder.fit(X, Y, 0, 2)
        found.append(finder.shortlist(X[:300], 10)[0])
    overlap = np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(*found, strict=True)])
    assert overlap > 0.9


def test_labels_of_near_texts_add_up_their_similarities():
    Y = sparse.csr_matrix(np.array([[1, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]], np.float32))
    found = np.array([[0, 1, -1], [2, 0, 1], [-1, -1, -1]])
    near = np.array([[0.8, 0.4, -np.inf], [0.5, -0.2, -0.3], [-np.inf] * 3], np.float32)
    ids, scores = votes(found, near, LabelRows.of(Y), 4)
    assert ids.tolist() == [[1, 0, 3, -1], [2, 0, 1, 3], [-1] * 4]
    assert np.allclose(scores[0, :3], [1, 0.8 / 1.2, 0.4 / 1.2])
    assert scores[1].tolist() == [1, 0, 0, 0]
    assert (scores[2] == -np.inf).all()


def test_texts_and_token_texts_agree_with_plain_loops():
    rng = np.random.default_rng(4)
    words = sparse.random(200, 40, 0.15, "csr", dtype=np.float32, rng=rng)
    words = sparse.csr_matrix(words[np.diff(words.indptr) > 0])
    Y = random_labels(rng, words.shape[0], 25)
    dense = words.toarray()
    similarity = unit(dense) @ unit(dense).T
    for finder, features in ((Texts(7), dense), (TokenTexts(7, budget=0), words)):
        finder.fit(features, Y, 0, 1)
        ids, scores = finder.shortlist(features, 5)
        for row in range(len(dense)):
            near = np.argsort(-similarity[row], kind="stable")[:7]
            if np.diff(np.sort(-similarity[row])[6:8]) < 1e-6:
                continue  # a tie at the edge: either text may count
            total = similarity[row, near] @ Y.toarray()[near]
            best = np.sort(total)[::-1][:5]
            kept = ids[row] >= 0
            assert np.allclose(scores[row][kept], best[: kept.sum()] / max(best[0], 1e-9), atol=1e-4)


def test_merging_is_a_weighted_sum():
    first = np.array([[2, 0], [1, -1]]), np.array([[0.9, 0.5], [0.7, -np.inf]], np.float32)
    second = np.array([[0, 3, 1], [-1, -1, -1]]), np.array([[1.0, 0.6, 0.1], [-np.inf] * 3], np.float32)
    ids, scores = merged(first, second, 0.75, 4, 3)
    assert ids.tolist() == [[2, 0, 3], [1, -1, -1]]
    assert np.allclose(scores[0], [0.675, 0.75 * 0.5 + 0.25, 0.15])
    assert scores[1, 0] == np.float32(0.75 * np.float32(0.7))


def test_hybrid_negatives_end_in_random_ones(fine):
    X, Y = fine
    finder = Hybrid(random=4)
    finder.fit(X, Y, 3, 1)
    ids, _ = finder.shortlist(X, 50)
    kept = drop_positives(ids, LabelRows.of(Y), 6)
    first, again = finder.negatives(X, Y, 10), finder.negatives(X, Y, 10, draw=1)
    assert np.array_equal(first[:, :6], kept)
    assert np.array_equal(first[:, :6], again[:, :6])
    assert not np.array_equal(first[:, 6:], again[:, 6:])
    assert (finder.negatives(X, Y, 4)[:, :2] == first[:, :2]).all()  # at most half are random


@given(
    n=st.integers(1, 30),
    n_labels=st.integers(1, 40),
    k=st.integers(1, 45),
    full=st.floats(0, 1),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_negatives_never_hold_positives(n, n_labels, k, full, seed):
    rng = np.random.default_rng(seed)
    Y = random_labels(rng, n, n_labels, full)
    if not Y.nnz:
        Y = sparse.csr_matrix(np.eye(n, n_labels, dtype=np.float32))
    X = rng.standard_normal((n, 5)).astype(np.float32)
    dense = Y.toarray() > 0
    for finder in (Uniform(), Unigram(), Hybrid(Centroids(head_threshold=3, n_centres=2), Texts(3), random=2)):
        finder.fit(X, Y, seed, 1)
        ids = finder.negatives(X, Y, k, draw=seed)
        assert ids.shape == (n, k)
        for row in range(n):
            kept = ids[row][ids[row] >= 0]
            assert not dense[row, kept].any()
            assert len(set(kept.tolist())) == len(kept)
            assert (ids[row, len(kept) :] == -1).all()
            if isinstance(finder, Uniform):
                assert len(kept) == min(k, n_labels - dense[row].sum())


def test_stored_zeros_are_no_positives():
    Y = sparse.csr_matrix((np.array([1, 0], np.float32), [0, 1], [0, 2]), shape=(1, 3))
    assert drop_positives(np.array([[0, 1, 2]]), LabelRows.of(Y), 3).tolist() == [[1, 2, -1]]
    assert Y.nnz == 2


@pytest.mark.parametrize("k", [3, 15])  # few of the labels, and most of them
def test_uniform_draws_evenly_without_order(k):
    Y = sparse.csr_matrix(np.eye(1, 20, dtype=np.float32)[np.zeros(4000, int)])
    sampler = Uniform()
    sampler.fit(np.zeros((4000, 1), np.float32), Y, 5, 1)
    ids = sampler.negatives(np.zeros((4000, 1), np.float32), Y, k)
    assert (ids > 0).all()
    for column in (0, k - 1):
        counts = np.bincount(ids[:, column], minlength=20)[1:]
        assert ((counts - 4000 / 19) ** 2 / (4000 / 19)).sum() < 50  # chi-square, 18 degrees of freedom


def test_unigram_draws_by_the_power_of_the_frequency():
    counts = np.array([1, 16, 81, 256, 0])
    Y = sparse.csr_matrix((np.ones(354, np.float32), np.repeat(np.arange(5), counts), np.arange(355)), shape=(354, 5))
    sampler = Unigram()
    sampler.fit(np.zeros((354, 1), np.float32), Y, 1, 1)
    empty = sparse.csr_matrix((20_000, 5), dtype=np.float32)
    drawn = np.bincount(sampler.negatives(np.zeros((20_000, 1), np.float32), empty, 1)[:, 0], minlength=5)
    assert np.allclose(drawn / 20_000, np.array([1, 8, 27, 64, 0]) / 100, atol=0.015)


def test_samplers_differ_from_draw_to_draw_and_seed_to_seed():
    Y = random_labels(np.random.default_rng(0), 30, 500, 0.01)
    X = np.zeros((30, 1), np.float32)
    sampler, other = Uniform(), Uniform()
    sampler.fit(X, Y, 1, 1)
    other.fit(X, Y, 2, 1)
    first = sampler.negatives(X, Y, 20)
    assert np.array_equal(first, sampler.negatives(X, Y, 20))
    assert not np.array_equal(first, sampler.negatives(X, Y, 20, draw=1))
    assert not np.array_equal(first, other.negatives(X, Y, 20))


def test_classifiers_are_found_by_inner_product_and_bias():
    rng = np.random.default_rng(1)
    W, bias, X = rng.standard_normal((80, 6)), rng.standard_normal(80) * 3, rng.standard_normal((20, 6))
    finder = ClassifierSearch()
    for given_bias in (None, bias):
        finder.index_classifiers(W, given_bias, seed=0)
        scores = X @ W.T + (0 if given_bias is None else bias)
        ids, found = finder.shortlist(X.astype(np.float32), 4)
        assert np.array_equal(ids, np.argsort(-scores, axis=1)[:, :4])
        assert np.allclose(found, np.take_along_axis(scores, ids, 1), atol=1e-4)
    finder.add(np.full((1, 6), 100.0), np.array([80]), np.array([1.0]))
    top = finder.shortlist(np.ones((1, 6), np.float32), 2)
    assert top[0][0, 0] == 80
    assert top[1][0, 0] == pytest.approx(601)


def test_new_labels_are_found_at_once_and_after_loading(fine, tmp_path):
    X, Y = fine
    finder = Hybrid()
    finder.fit(X, Y, 0, 1)
    new = unit(np.random.default_rng(5).standard_normal((2, 12))).astype(np.float32)
    finder.first.add(new, np.array([50, 51]))
    assert finder.shortlist(new, 1)[0].ravel().tolist() == [50, 51]
    finder.write(tmp_path)
    assert open_shortlister(tmp_path).shortlist(new, 1)[0].ravel().tolist() == [50, 51]


@pytest.mark.parametrize(("make", "reads"), EVERY)
def test_every_kind_is_opened_by_name(make, reads, tmp_path, fine):
    X, Y = fine
    features = {"dense": X, "tokens": sparse.csr_matrix(np.abs(X)), "both": Views(X, sparse.csr_matrix(np.abs(X)))}[
        reads
    ]
    finder = make()
    finder.fit(features, Y, 0, 1)
    finder.write(tmp_path)
    opened = open_shortlister(tmp_path)
    assert type(opened) is type(finder)
    assert np.array_equal(opened.negatives(features, Y, 5), finder.negatives(features, Y, 5))


def test_damaged_folders_are_refused(tmp_path, fine):
    X, Y = fine
    with pytest.raises(ModelFolderError, match="no saved shortlister"):
        open_shortlister(tmp_path)
    finder = Uniform()
    finder.fit(X, Y, 0, 1)
    finder.write(tmp_path)
    path = tmp_path / "shortlister.json"
    written = json.loads(path.read_text())
    for change, message in (
        ({"kind": "nonsense"}, "kind"),
        ({"settings": {"no": 1}}, "settings"),
        ({"format_version": 99}, "newer"),
        ({"extra": 1}, "damaged"),
    ):
        path.write_text(json.dumps(written | change))
        with pytest.raises(ModelFolderError, match=message):
            open_shortlister(tmp_path)
    path.write_text("{")
    with pytest.raises(ModelFolderError, match="damaged"):
        open_shortlister(tmp_path)


def test_bad_use_is_refused(fine):
    X, Y = fine
    for finder in (Centroids(), Texts(), TokenTexts(), ClassifierSearch()):
        with pytest.raises(UserError, match="not fitted"):
            finder.shortlist(sparse.csr_matrix(X) if isinstance(finder, TokenTexts) else X, 3)
    with pytest.raises(UserError, match="reads dense"):
        Centroids().fit(sparse.csr_matrix(X), Y, 0, 1)
    with pytest.raises(UserError, match="reads sparse"):
        TokenTexts().fit(X, Y, 0, 1)
    with pytest.raises(DataError):
        Texts().fit(X[:-1], Y, 0, 1)
    with pytest.raises(UserError, match="weight"):
        Hybrid(weight=2).fit(X, Y, 0, 1)
    fitted = Centroids()
    fitted.fit(X, Y, 0, 1)
    with pytest.raises(UserError, match="k"):
        fitted.shortlist(X, 0)
    with pytest.raises(DataError):
        fitted.negatives(X, Y[:-1], 3)


def test_the_suite_notices_broken_shortlisters():
    class Positive(Uniform):
        def negatives(self, features, Y, k, threads=1, draw=0):
            ids = super().negatives(features, Y, k, threads, draw)
            ids[0, 0] = Y.indices[0]
            return ids

    with pytest.raises(AssertionError, match="of its own"):
        check_shortlister(Positive)

    class Blind(Centroids):
        def shortlist(self, features, k, threads=1):
            ids, scores = super().shortlist(features, k, threads)
            assert ids.max() < 29
            return np.where(ids < 0, -1, (ids + 7) % 29), scores

    with pytest.raises(AssertionError, match="plain to see"):
        check_shortlister(Blind)


@pytest.mark.parametrize("size", [20, 5000])
def test_vectors_come_back_from_where_they_are_scored(size, tmp_path):
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((size, 16)).astype(np.float32)
    given = {"metric": "inner_product", "quick": True, "seed": 1, "threads": 1}
    owned = OwnedVectors.build(vectors, np.arange(size), size, **given)
    owned.add(vectors[:3] * 2, size + np.array([2, 0, 1]))
    expected = np.concatenate((vectors, 2 * vectors[[1, 2, 0]]))
    np.testing.assert_array_equal(owned.vectors(), expected)
    owned.write(tmp_path)
    np.testing.assert_array_equal(OwnedVectors.read_from(tmp_path, "inner_product").vectors(), expected)
    rounded = OwnedVectors.build(vectors, np.arange(size), size, metric="cosine", seed=1, threads=1)
    assert rounded.vectors() is None
    doubled = OwnedVectors.build(vectors, np.arange(size) // 2, size // 2, **given)
    assert doubled.vectors() is None

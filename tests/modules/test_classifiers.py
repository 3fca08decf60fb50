"""Classifiers: scores against float64 products, gradients by row, re-ranking by hand, trees where one is installed."""

import importlib.util

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from deepxc.errors import DataError, UserError
from deepxc.modules.classifiers.one_vs_all import OneVsAll, score_given
from deepxc.modules.classifiers.reranker import confusions, reranked
from deepxc.modules.classifiers.slice import slice_parts
from deepxc.modules.classifiers.tree import LabelTree
from deepxc.testing.classifiers import check_classifier
from deepxc.testing.shortlists import check_shortlister
from deepxc.testing.surrogates import check_surrogate
from deepxc.testing.transfers import check_transfer


@pytest.mark.parametrize("make", [OneVsAll, lambda: OneVsAll(bias=False)])
def test_every_classifier_conforms(make):
    check_classifier(make)


def started(n_labels=30, dim=8, seed=0, **settings):
    classifier = OneVsAll(**settings)
    classifier.start(n_labels, dim, seed)
    return classifier


def test_random_start_is_xaviers():
    weights = started(3000, 50).vectors()
    reach = np.sqrt(6 / 3050)
    assert np.abs(weights).max() <= reach
    assert weights.std() == pytest.approx(reach / np.sqrt(3), rel=0.01)
    assert not started(30, 8).biases().any()
    assert not np.array_equal(started(seed=1).vectors(), started(seed=2).vectors())


def test_only_the_pools_rows_get_gradients():
    classifier = started()
    features = torch.randn(4, 8, requires_grad=True)
    labels = torch.tensor([3, 17, 5])
    upstream = torch.randn(4, 3)
    classifier.logits(features, labels).backward(upstream)
    rows, gradient = classifier.table.take_gradient()
    assert rows.tolist() == labels.tolist()
    assert torch.allclose(gradient, upstream.T @ features.detach(), atol=1e-5)
    rows, gradient = classifier.bias.take_gradient()
    assert rows.tolist() == labels.tolist()
    assert torch.allclose(gradient[:, 0], upstream.sum(dim=0), atol=1e-5)
    assert torch.allclose(features.grad, upstream @ classifier.table.weight[labels], atol=1e-5)


@given(
    n=st.integers(0, 9),
    k=st.integers(0, 11),
    dim=st.integers(1, 40),
    n_labels=st.integers(1, 30),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_scores_of_given_labels(n, k, dim, n_labels, seed):
    rng = np.random.default_rng(seed)
    W, bias, X = rng.standard_normal((n_labels, dim)), rng.standard_normal(n_labels), rng.standard_normal((n, dim))
    ids = rng.integers(-1, n_labels, size=(n, k))
    expected = np.where(ids < 0, -np.inf, np.take_along_axis(X @ W.T + bias, np.maximum(ids, 0), 1))
    classifier = OneVsAll()
    classifier.start(n_labels, dim, 0, W, bias)
    found = classifier.score(X, ids)
    assert found.shape == ids.shape
    assert np.allclose(found, expected, atol=1e-4)


def test_scores_are_the_same_alone_in_a_batch_on_threads_and_from_a_read_only_table():
    rng = np.random.default_rng(0)
    W, X = rng.standard_normal((500, 64), np.float32), rng.standard_normal((100, 64), np.float32)
    ids = rng.integers(-1, 500, size=(100, 51))
    together = score_given(X, W, ids)
    assert np.array_equal(together, score_given(X, W, ids, threads=3))
    assert np.array_equal(together[7:8], score_given(X[7:8], W, ids[7:8]))
    W.flags.writeable = False
    assert np.array_equal(together, score_given(X, W, ids))


def test_logits_and_scores_agree():
    classifier = started(50, 16, seed=3)
    features = torch.randn(6, 16)
    logits = classifier.logits(features, torch.arange(50)).detach().numpy()
    scores = classifier.score(features.numpy(), np.tile(np.arange(50), (6, 1)))
    assert np.allclose(logits, scores, atol=1e-5)


def test_parameters_are_in_the_state():
    one, other = started(seed=1), started(seed=2)
    assert set(one.state_dict()) == {"table.weight", "bias.weight"}
    assert not list(one.parameters())
    other.load_state_dict(one.state_dict())
    assert np.array_equal(one.vectors(), other.vectors())


def test_labels_can_be_added():
    classifier = OneVsAll()
    classifier.start(3, 2, 0, np.eye(3, 2), np.array([1.0, 2.0, 3.0]))
    classifier.add(np.array([[5.0, 5.0]]))
    classifier.add(np.array([[6.0, 6.0]]), np.array([-1.0]))
    assert len(classifier) == 5
    assert np.array_equal(classifier.vectors()[3:], [[5, 5], [6, 6]])
    assert np.allclose(classifier.biases(), [1, 2, 3, 2, -1])
    assert classifier.score(np.ones((1, 2)), np.array([[3, 4]])).tolist() == [[12, 11]]


def test_slice_is_made_of_the_frameworks_parts():
    parts = slice_parts()
    assert parts.shortlister.head_threshold is None
    check_surrogate(lambda: slice_parts().surrogate)
    check_shortlister(lambda: slice_parts().shortlister)
    check_transfer(lambda: slice_parts().transfer)
    check_classifier(lambda: slice_parts().classifier)


def test_confusions_are_wrong_predictions():
    Y = sparse.csr_matrix(np.array([[1, 0, 1, 0], [0, 0, 0, 0]], np.float32))
    predicted = np.array([[2, 3, 0, 1], [1, 0, -1, -1]])
    assert confusions(predicted, Y).tolist() == [[3, 1, -1, -1], [1, 0, -1, -1]]
    assert confusions(predicted, Y, 1).tolist() == [[3], [1]]


def test_reranking_by_hand():
    ids = np.array([[4, 2, 9, -1]])
    first, second = np.array([[0.8, 0.4, 0.4, -np.inf]]), np.array([[0.2, 0.6, 0.6, -np.inf]])
    found, scores = reranked(ids, first, second, 0.5)
    assert found.tolist() == [[2, 4, 9, -1]]  # all are 0.5
    assert np.allclose(scores[0, :3], 0.5)
    assert reranked(ids, first, second, 0.0, 2)[0].tolist() == [[4, 2]]
    found, scores = reranked(ids, first, second, 1.0)
    assert found.tolist() == [[2, 9, 4, -1]]
    assert scores[0, 3] == -np.inf


def test_bad_use_is_refused():
    with pytest.raises(UserError, match="start"):
        OneVsAll().vectors()
    with pytest.raises(DataError):
        OneVsAll().start(3, 2, 0, np.zeros((2, 3)))
    with pytest.raises(DataError):
        OneVsAll().start(3, 2, 0, None, np.zeros(2))
    with pytest.raises(UserError, match="bias"):
        OneVsAll(bias=False).start(3, 2, 0, None, np.zeros(3))
    with pytest.raises(DataError):
        started().add(np.zeros((1, 3)))
    with pytest.raises(DataError, match="ids"):
        started().score(np.zeros((1, 8)), np.array([[30]]))
    with pytest.raises(DataError):
        started().score(np.zeros((2, 8)), np.array([[1]]))
    with pytest.raises(UserError, match="weight"):
        reranked(np.zeros((1, 1), int), np.zeros((1, 1)), np.zeros((1, 1)), 1.5)


def test_the_suite_notices_a_broken_classifier():
    class Dense(torch.nn.Module):
        def start(self, n_labels, dim, seed, vectors=None):
            torch.manual_seed(seed)
            self.weight = torch.nn.Parameter(torch.randn(n_labels, dim) if vectors is None else torch.tensor(vectors))

        def logits(self, features, labels):
            return features @ self.weight[labels].T

        def vectors(self):
            return self.weight.detach().numpy()

    with pytest.raises(AssertionError, match="dense gradient"):
        check_classifier(Dense)

    class Aliased(OneVsAll):
        def start(self, n_labels, dim, seed, vectors=None):
            super().start(n_labels, dim, 0 if vectors is None else seed, vectors)
            if vectors is not None:
                vectors += 1

    with pytest.raises(AssertionError, match="in place"):
        check_classifier(Aliased)


HAS_TREES = importlib.util.find_spec("omikuji") is not None


@pytest.mark.skipif(HAS_TREES, reason="omikuji is installed")
def test_a_missing_tree_library_is_named():
    with pytest.raises(UserError, match=r"deepxc\[bench\]"):
        LabelTree().fit(np.eye(3), sparse.csr_matrix(np.eye(3)))


@pytest.mark.skipif(not HAS_TREES, reason="omikuji, of the extra `bench`, is not installed")
def test_a_tree_learns_from_features(tmp_path):
    rng = np.random.default_rng(0)
    main = rng.integers(12, size=600)
    X = (rng.standard_normal((12, 10))[main] + 0.2 * rng.standard_normal((600, 10))).astype(np.float32)
    Y = sparse.csr_matrix(np.eye(12, dtype=np.float32)[main])
    tree = LabelTree(n_trees=1).fit(X, Y)
    ids, scores = tree.shortlist(X, 3)
    assert (ids[:, 0] == main).mean() > 0.9
    assert (np.diff(scores, axis=1) <= 0).all()
    tree.write(tmp_path)
    again = LabelTree.read_from(tmp_path).shortlist(X, 3)
    assert np.array_equal(ids, again[0])
    with pytest.raises(UserError, match="no setting"):
        LabelTree(nonsense=1).fit(X, Y)

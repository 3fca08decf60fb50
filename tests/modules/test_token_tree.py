"""Label trees over tokens: against another implementation, by hand, saved and opened."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from deepxc.modules.classifiers import token_tree
from deepxc.modules.classifiers.kernels_token_tree import STEPS
from deepxc.modules.classifiers.token_tree import TokenForest, TokenTree

N_LABELS, N_TOKENS = 60, 80


@pytest.fixture(scope="module")
def texts():
    """Texts whose tokens depend on their labels."""
    rng = np.random.default_rng(0)
    tokens_of = rng.integers(0, N_TOKENS, (N_LABELS, 4))
    Y = sparse.lil_matrix((400, N_LABELS), dtype=np.float32)
    X = sparse.lil_matrix((400, N_TOKENS), dtype=np.float32)
    for row in range(400):
        for label in rng.integers(0, N_LABELS - 1, 2):  # the last label has no texts
            Y[row, label] = 1
            for token in tokens_of[label][:3]:
                X[row, token] = 1 + rng.random()
    X, Y = normalize(sparse.csr_matrix(X)).astype(np.float32), sparse.csr_matrix(Y)
    return X, Y, normalize(sparse.csr_matrix(Y.T @ X))


def fitted(texts, threads=1, **settings):
    return TokenTree(**settings).fit(*texts, seed=3, threads=threads)


def weights_of(tree):
    """Nodes x tokens."""
    shape = len(tree.parents), tree.n_tokens
    return sparse.csc_matrix((tree.weights / STEPS, tree.nodes, tree.bounds), shape=shape).toarray()


def margin(tree, node, row):
    """The node's margin from its stored weights."""
    return (row @ weights_of(tree)[node])[0] + tree.thresholds[node]


def test_a_node_is_the_machine_that_liblinear_finds(texts, monkeypatch):
    monkeypatch.setattr(token_tree, "_PASSES", 3000)
    monkeypatch.setattr(token_tree, "_TOLERANCE", 1e-6)
    X, Y, _ = texts
    tree = fitted(texts, leaf=100, smallest=0.0)
    assert (tree.parents == -1).all()
    for label in (0, 7, 31):
        own = Y[:, label].toarray().ravel() > 0
        theirs = LinearSVC(tol=1e-8, max_iter=100_000).fit(X, own)
        ours = [margin(tree, label, X[i]) for i in range(50)]
        np.testing.assert_allclose(ours, theirs.decision_function(X[:50]), atol=5e-3)


def test_a_probability_is_the_product_of_the_nodes_above_it(texts):
    X, _, _ = texts
    tree = fitted(texts, leaf=5, fanout=2)
    ids = np.array([[0, 17, 58, -1, N_LABELS - 1, N_LABELS + 4]])
    found = tree.probabilities(X[5], ids)[0]
    for place, label in enumerate(ids[0, :3]):
        expected, node, depth = 1.0, label, 0
        while node >= 0:
            expected *= np.exp(-(max(0.0, 1.0 - margin(tree, node, X[5])) ** 2))
            node, depth = tree.parents[node], depth + 1
        assert depth == 4  # the label, 16 nodes, 8, 4
        np.testing.assert_allclose(found[place], expected, rtol=1e-4)
    assert (found[3:] == 0).all()  # no label, one without texts, one that came later


def test_siblings_are_what_a_node_learns_from(texts):
    """A text of another branch teaches a node nothing: changing it leaves the node as it is."""
    X, Y, centroids = texts
    tree = fitted(texts, leaf=15, fanout=16)
    above = tree.parents[0]
    inside = np.flatnonzero(tree.parents[:N_LABELS] == above)
    outside = np.flatnonzero(np.asarray(Y[:, inside].sum(axis=1)).ravel() == 0)
    changed = X.tolil()
    changed[outside] = 0
    other = TokenTree(leaf=15, fanout=16).fit(sparse.csr_matrix(changed), Y, centroids, seed=3, threads=1)
    for label in inside:
        np.testing.assert_array_equal(weights_of(tree)[label], weights_of(other)[label])
        assert tree.thresholds[label] == other.thresholds[label]


def test_true_labels_come_first(texts):
    X, Y, _ = texts
    everyone = np.tile(np.arange(N_LABELS), (X.shape[0], 1))
    best = fitted(texts, leaf=10, fanout=4).probabilities(X, everyone).argmax(axis=1)
    assert np.asarray(Y[np.arange(len(best)), best]).mean() > 0.9


@pytest.mark.parametrize("leaf", [100, 10])
def test_threads_change_nothing(texts, leaf):
    one, two = fitted(texts, leaf=leaf), fitted(texts, threads=2, leaf=leaf)
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, two.arrays()[name])
    ids = np.tile(np.arange(N_LABELS), (texts[0].shape[0], 1))
    batch = one.probabilities(texts[0], ids, threads=2)
    np.testing.assert_array_equal(batch, one.probabilities(texts[0], ids))
    np.testing.assert_array_equal(batch[9:10], one.probabilities(texts[0][9], ids[9:10]))


def test_a_forest_is_the_mean_of_its_trees_before_and_after_it_is_saved(texts, tmp_path):
    X, Y, centroids = texts
    forest = TokenForest.fit(X, Y, centroids, 2, seed=1, threads=1)
    ids = np.tile(np.arange(N_LABELS), (X.shape[0], 1))
    parts = [tree.probabilities(X, ids) for tree in forest.trees]
    np.testing.assert_allclose(forest.probabilities(X, ids), (parts[0] + parts[1]) / 2, rtol=1e-6)
    forest.write(tmp_path)
    opened = TokenForest.read(tmp_path)
    np.testing.assert_array_equal(opened.probabilities(X, ids), forest.probabilities(X, ids))
    assert TokenForest.read(tmp_path / "elsewhere") is None


def test_texts_without_tokens(texts):
    _, Y, centroids = texts
    nothing = sparse.csr_matrix((Y.shape[0], N_TOKENS), dtype=np.float32)
    tree = TokenTree().fit(nothing, Y, centroids, seed=0, threads=1)
    found = tree.probabilities(nothing, np.arange(N_LABELS)[None].repeat(Y.shape[0], 0))
    assert np.isfinite(found).all()
    assert (found < 0.5).all()  # each label is rare: a threshold alone speaks against it


def test_a_branch_without_texts(texts):
    """Labels that have only a text of their own, and no train text, may fill a whole branch."""
    X, Y, centroids = texts
    kept = Y.tolil()
    tree = fitted(texts, leaf=15)
    empty = np.flatnonzero(tree.parents[:N_LABELS] == tree.parents[0])
    kept[:, empty] = 0
    pruned = TokenTree(leaf=15).fit(X, sparse.csr_matrix(kept), centroids, seed=3, threads=2)
    found = pruned.probabilities(X, np.tile(np.arange(N_LABELS), (X.shape[0], 1)))
    assert (found[:, empty] == 0).all()
    assert found.max() > 0.5

"""Auxiliary vectors: N(E(z) + a) by hand, groups, folding, and what Lemma 1 of the paper promises."""

import numpy as np
import pytest
import torch
from scipy import sparse

from deepxc.errors import UserError
from deepxc.modules.auxiliary import AuxiliaryVectors, LabelGroups, group_labels, semantic_gaps
from deepxc.modules.transfers.unit_norm import UnitNorm, to_unit


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def made(of_label, weight):
    groups = LabelGroups(np.array(of_label, np.int32), len(weight))
    auxiliary = AuxiliaryVectors(groups, len(weight[0]))
    auxiliary.table.weight = torch.tensor(weight)
    return auxiliary


def test_normalisation_by_hand():
    rows = torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]])
    np.testing.assert_allclose(to_unit(rows), [[0.6, 0.8], [0, 0], [0, -1]])
    np.testing.assert_allclose(UnitNorm()(rows), to_unit(rows))


def test_augmented_by_hand():
    """(1, 0) + (2, 4) = (3, 4), of length 5; (0, 1) + (0, -3) = (0, -2)."""
    auxiliary = made([1, 0, 1], [[0.0, -3.0], [2.0, 4.0]])
    embeddings = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    found = auxiliary.augmented(embeddings, torch.tensor([2, 1])).detach()
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, -1]], atol=1e-7)


def test_labels_of_one_cluster_share_one_gradient():
    """d/da of w . g for unit vectors: (g - (w . g) w) / |E(z) + a|, summed over the labels of the cluster."""
    auxiliary = made([0, 0], [[0.0, 0.0]])
    embeddings = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    upstream = torch.tensor([[0.0, 3.0], [5.0, 0.0]])
    (auxiliary.augmented(embeddings, torch.tensor([0, 1])) * upstream).sum().backward()
    rows, gradient = auxiliary.table.take_gradient()
    assert rows.tolist() == [0]
    np.testing.assert_allclose(gradient, [[0 + 5.0, 3.0 / 2 + 0]])


def test_folding_is_what_training_saw(rng):
    auxiliary = AuxiliaryVectors(LabelGroups(rng.integers(0, 7, 30).astype(np.int32), 7), 5, seed=1)
    embeddings = rng.normal(size=(30, 5)).astype(np.float32)
    expected = auxiliary.augmented(torch.from_numpy(embeddings), torch.arange(30)).detach()
    np.testing.assert_allclose(auxiliary.folded(embeddings), expected, atol=1e-6)


def test_vectors_start_at_the_mean_gap_of_their_labels():
    gaps = np.array([[1, 0], [3, 0], [0, 5]], np.float32)
    auxiliary = AuxiliaryVectors(LabelGroups(np.array([0, 0, 1], np.int32), 2), 2, gaps=gaps)
    np.testing.assert_allclose(auxiliary.table.weight, [[2, 0], [0, 5]])


def test_gaps_by_hand():
    Y = sparse.csr_matrix(np.array([[1, 0, 0], [1, 0, 0]], np.float32))
    features = np.array([[1, 0], [0, 1]], np.float32)
    gaps = semantic_gaps(np.array([[1, 0], [0, 1], [1, 0]], np.float32), features, Y, 1)
    half = np.sqrt(0.5)
    np.testing.assert_allclose(gaps, [[half - 1, half], [0, 0], [0, 0]], atol=1e-6)


@pytest.mark.parametrize("method", ["balanced", "plain"])
def test_frequent_labels_have_a_vector_of_their_own(method, rng):
    vectors = rng.normal(size=(200, 8)).astype(np.float32)
    frequencies = np.full(200, 3)
    frequencies[[5, 77]] = 50
    groups = group_labels(vectors, 16, frequencies, own_from=50, method=method, seed=2)
    sizes = np.bincount(groups.of_label, minlength=groups.count)
    assert groups.count == 18
    assert groups.of_label[[5, 77]].tolist() == [16, 17]
    assert sizes[16:].tolist() == [1, 1]
    again = group_labels(vectors, 16, frequencies, own_from=50, method=method, seed=2)
    np.testing.assert_array_equal(groups.of_label, again.of_label)
    if method == "balanced":
        assert np.ptp(sizes[:16]) <= 1


def test_the_number_of_clusters_by_rule_and_at_its_bounds(rng):
    vectors = rng.normal(size=(70, 4)).astype(np.float32)
    assert group_labels(vectors, -1).count == 32
    assert group_labels(vectors, 1_000).count == 70
    with pytest.raises(UserError, match="no auxiliary"):
        group_labels(vectors, 0)


def test_regrouping_keeps_each_labels_vector_on_average():
    auxiliary = made([0, 0, 1, 1], [[1.0, 0.0], [0.0, 1.0]])
    auxiliary.regroup(LabelGroups(np.array([0, 1, 1, 1], np.int32), 2))
    np.testing.assert_allclose(auxiliary.table.weight, [[1, 0], [1 / 3, 2 / 3]])
    assert auxiliary.of_label.tolist() == [0, 1, 1, 1]
    with pytest.raises(UserError, match="groups"):
        auxiliary.regroup(LabelGroups(np.zeros(4, np.int32), 1))


def realisable(rng, spread, n=40, n_labels=24, n_clusters=4, width=10, dim=6):
    """The linear model of section 5.1: labels of a cluster have semantic gaps that differ by `spread`.

    Texts and classifiers have at most length 1, as the lemma assumes.
    """
    E = rng.normal(size=(dim, width))
    E /= 1.2 * np.linalg.norm(E, 2)
    X, Z = rng.normal(size=(n, width)), rng.normal(size=(n_labels, width))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Z /= 2 * np.linalg.norm(Z, axis=1, keepdims=True)
    cluster = np.arange(n_labels) % n_clusters
    centres = rng.normal(size=(n_clusters, dim))
    gaps = 0.3 * (centres / np.linalg.norm(centres, axis=1, keepdims=True))[cluster]
    offsets = rng.normal(size=gaps.shape)
    gaps += spread * offsets / np.linalg.norm(offsets, axis=1, keepdims=True)
    W = Z @ E.T + gaps
    assert np.linalg.norm(W, axis=1).max() <= 1
    return E, X, Z, W, cluster


def gradient_norm(E, X, Z, Y, auxiliary):
    """Spectral norm of the gradient at E of equation 7 (or 8, with the auxiliary vector of each label)."""
    E = torch.tensor(E, requires_grad=True)
    X, Z, Y, auxiliary = map(torch.tensor, (X, Z, Y, auxiliary))
    scores = (X @ E.T) @ (Z @ E.T + auxiliary).T
    ((scores - Y) ** 2).mean().backward()
    return float(torch.linalg.matrix_norm(E.grad, 2))


@pytest.mark.parametrize("spread", [0.0, 0.02, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_lemma_1(spread, seed):
    """At the true encoder both gradients keep the lemma's bounds, and DEXA's vanishes where clusters share a gap.

    The optimal auxiliary vector of a cluster is its mean gap w - E z; the paper's D* has it with the other sign.
    """
    E, X, Z, W, cluster = realisable(np.random.default_rng(seed), spread)
    gaps = W - Z @ E.T
    means = np.stack([gaps[cluster == k].mean(axis=0) for k in range(cluster.max() + 1)])[cluster]
    Y = (X @ E.T) @ W.T
    norm = np.linalg.norm(E, 2) ** 2
    siamese = gradient_norm(E, X, Z, Y, np.zeros_like(gaps))
    dexa = gradient_norm(E, X, Z, Y, means)
    assert siamese <= 2 * norm * np.sqrt((gaps**2).sum(axis=1).mean())
    assert dexa <= 4 * norm * np.sqrt(((gaps - means) ** 2).sum(axis=1).mean()) + 1e-12
    assert dexa < 0.7 * siamese
    if spread == 0:
        assert dexa < 1e-12

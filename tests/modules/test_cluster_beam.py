"""The cluster beam: its recall rule by hand, its lists against plain loops, labels that come later."""

import importlib.util

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from deepxc.errors import DataError, UserError
from deepxc.modules.shortlists.cluster_beam import ClusterBeam
from deepxc.modules.shortlists.label_tree import TreeBeam
from deepxc.modules.shortlists.saving import open_shortlister
from deepxc.modules.surrogates.label_clusters import LabelClusters
from deepxc.modules.surrogates.sizes import surrogate_size
from deepxc.systems.decaf_settings import LABELS_EACH, LARGEST_FANOUT
from deepxc.testing.shortlists import check_shortlister


@pytest.mark.parametrize("make", [ClusterBeam, lambda: ClusterBeam(n_clusters=10, beam=3)])
def test_it_conforms(make):
    check_shortlister(make)


def three_clusters(**named):
    """Clusters {1, 4}, {0}, {2, 3}; label 5 is in none. Cluster m scores the m-th feature, plus 0, 0.5, 0."""
    beam = ClusterBeam(**named)
    beam.take_clusters(np.array([1, 0, 2, 2, 0, -1]), 3)
    beam.take_classifiers(np.eye(3), np.array([0, 0.5, 0]))
    return beam


FEATURES = np.array([[3.0, 1, 2], [0, 1, 2], [1, 0, 0.25]], np.float32)


def test_labels_come_cluster_by_cluster_with_their_clusters_scores():
    ids, scores = three_clusters(beam=2).shortlist(FEATURES, 4)
    # scores of the clusters: (3, 1.5, 2), (0, 1.5, 2), (1, .5, .25)
    assert ids.tolist() == [[1, 4, 2, 3], [2, 3, 0, -1], [1, 4, 0, -1]]
    np.testing.assert_allclose(scores, [[3, 3, 2, 2], [2, 2, 1.5, -np.inf], [1, 1, 0.5, -np.inf]])


def test_a_cut_in_the_middle_of_a_cluster():
    ids, _ = three_clusters(beam=3).shortlist(FEATURES[:1], 3)
    assert ids.tolist() == [[1, 4, 2]]


def test_recall_of_each_beam_by_hand():
    Y = sparse.csr_matrix(np.array([[0, 1, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0], [0, 0, 1, 0, 1, 1]], np.float32))
    # ranks of the positives' clusters: [0]; [1, 0]; [2, 0, never (label 5)]
    reached = three_clusters().recalls(FEATURES, Y)
    np.testing.assert_allclose(reached, [3 / 6, 4 / 6, 5 / 6])


@pytest.mark.parametrize(("recall", "beam"), [(0.5, 1), (0.51, 2), (0.66, 2), (0.7, 3), (0.85, 3)])
def test_the_beam_is_the_shortest_that_reaches_the_recall(recall, beam):
    Y = sparse.csr_matrix(np.array([[0, 1, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0], [0, 0, 1, 0, 1, 1]], np.float32))
    shortlister = three_clusters(recall=recall)
    shortlister.choose_beam(FEATURES, Y)
    assert shortlister.beam == beam  # 0.85 is more than all clusters hold: all are looked into


def test_a_given_beam_stays():
    shortlister = three_clusters(beam=1)
    shortlister.choose_beam(FEATURES, sparse.csr_matrix(np.ones((3, 6), np.float32)))
    assert shortlister.beam == 1
    assert shortlister.size == 2


@given(seed=st.integers(0, 99), count=st.integers(1, 8))
@settings(max_examples=15, deadline=None)
def test_recalls_are_what_the_lists_hold(seed, count):
    rng = np.random.default_rng(seed)
    n_labels = 20
    Y = sparse.csr_matrix((rng.random((30, n_labels)) < 0.15).astype(np.float32))
    features = rng.standard_normal((30, 5)).astype(np.float32)
    vectors, clusters = rng.standard_normal((count, 5)), rng.integers(count, size=n_labels)
    for size in range(1, count + 1):
        beam = ClusterBeam(beam=size)
        beam.take_clusters(clusters, count)
        beam.take_classifiers(vectors)
        ids, _ = beam.shortlist(features, n_labels)
        found = np.take_along_axis(Y.toarray(), np.maximum(ids, 0), 1) * (ids >= 0)
        assert beam.recalls(features, Y)[size - 1] == pytest.approx(found.sum() / max(1, Y.nnz))


def test_new_labels_join_the_best_cluster(tmp_path):
    beam = three_clusters(beam=1)
    beam.add(np.array([[0, 0, 5.0], [4.0, 0, 0]]), np.array([6, 7]))
    assert beam.clusters.tolist() == [1, 0, 2, 2, 0, -1, 2, 0]
    assert beam.shortlist(FEATURES[:1], 5)[0].tolist() == [[1, 4, 7, -1, -1]]
    beam.write(tmp_path)
    opened = open_shortlister(tmp_path)
    assert opened.shortlist(FEATURES[:1], 5)[0].tolist() == [[1, 4, 7, -1, -1]]
    assert (opened.beam, opened.size) == (beam.beam, beam.size)


def test_what_cannot_be_is_refused():
    with pytest.raises(UserError, match="not fitted"):
        ClusterBeam().shortlist(FEATURES, 2)
    with pytest.raises(DataError, match="classifiers of clusters"):
        ClusterBeam().take_classifiers(np.eye(3))


@pytest.mark.parametrize(
    ("n_labels", "clusters"),
    [(131_073, 2**15), (300_000, 2**17), (312_330, 2**17), (1_305_265, 2**17), (23_433, 2**13), (3, 2), (1, 1)],
)
def test_the_fanout_is_the_papers(n_labels, clusters):
    assert surrogate_size(n_labels, labels_each=LABELS_EACH, largest=LARGEST_FANOUT) == clusters


@pytest.mark.parametrize("dense", [False, True])
def test_labels_without_train_texts_are_clustered_by_what_stands_for_them(dense):
    """Labels 0, 1 point one way and 2, 3 another; 4 and 5 have no texts, but features like those of 0 and 2."""
    features = np.repeat(np.eye(2, dtype=np.float32), 4, axis=0)
    Y = sparse.csr_matrix((np.ones(8), (range(8), [0, 0, 1, 1, 2, 2, 3, 3])), shape=(8, 7))
    own = np.zeros((7, 2), np.float32)
    own[4, 0], own[5, 1] = 1, 1
    take = np.asarray if dense else sparse.csr_matrix
    found, count = LabelClusters(2, walk=False).cluster(sparse.csr_matrix(Y), take(features), 0, take(own))
    assert count == 2
    assert found[6] == -1
    assert found[0] == found[1] == found[4]
    assert found[2] == found[3] == found[5] != found[0]
    assert (LabelClusters(2, walk=False).cluster(sparse.csr_matrix(Y), take(features), 0)[0][4:] == -1).all()


@pytest.mark.skipif(importlib.util.find_spec("omikuji") is None, reason="a label tree needs omikuji")
def test_a_tree_shortlists_and_scores_by_logits(tmp_path):
    rng = np.random.default_rng(0)
    main = rng.integers(10, size=200)
    features = (np.eye(10, dtype=np.float32)[main] + 0.1 * rng.random((200, 10))).astype(np.float32)
    Y = sparse.csr_matrix((np.ones(200, np.float32), (np.arange(200), main)), shape=(200, 10))
    tree = TreeBeam(n_trees=1)
    with pytest.raises(UserError, match="not fitted"):
        tree.shortlist(features, 2)
    tree.fit(features, Y, 0, 1)
    ids, scores = tree.shortlist(features, 3)
    assert (ids[:, 0] == main).mean() > 0.9
    assert (scores[:, :-1] >= scores[:, 1:]).all()
    assert (tree.negatives(features, Y, 2) != main[:, None]).all()
    tree.write(tmp_path)
    again, same = open_shortlister(tmp_path).shortlist(features, 3)
    np.testing.assert_array_equal(ids, again)
    np.testing.assert_array_equal(scores, same)

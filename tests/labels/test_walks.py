from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from deepxc.errors import UserError
from deepxc.labels.walks import label_graph, smooth

# Texts: {a}, {a, b}, {b, c}, {c, d}; label e has no text.
TINY = sparse.csr_matrix(np.array([[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 1, 1, 0]], np.float32))


def exact_visits(Y, restart):
    """Share of visits of an endless walk from each label: pi = e (restart P) (I - (1 - restart) P)^-1."""
    dense = Y.toarray()
    P = (dense / dense.sum(axis=0)).T @ (dense / dense.sum(axis=1, keepdims=True))
    return restart * P @ np.linalg.inv(np.eye(len(P)) - (1 - restart) * P)


def test_one_step_by_hand():
    # From a: text {a} or {a, b}; so a with 3/4, b with 1/4.
    P = exact_visits(TINY[:, :4], 1.0)
    np.testing.assert_allclose(P[0], [0.75, 0.25, 0, 0])


@pytest.mark.parametrize("restart", [1.0, 0.8, 0.2, 0.05])
def test_visits_match_the_exact_walk(restart):
    steps = 400_000
    graph = label_graph(TINY, steps=steps, restart=restart, top_k=10, seed=1).toarray()
    # A visit stays correlated with those since the last restart: count 1/restart visits as one, take 5 deviations.
    error = 5 * np.sqrt(0.25 / (steps * restart))
    np.testing.assert_allclose(graph[:4, :4], exact_visits(TINY[:, :4], restart), atol=error)


def test_without_restart_the_start_is_forgotten():
    graph = label_graph(TINY, steps=400_000, restart=0.0, seed=1).toarray()
    frequencies = np.array([2, 2, 2, 1]) / 7  # of a walk on a graph: in proportion to the links of each label
    np.testing.assert_allclose(graph[:4, :4], np.tile(frequencies, (4, 1)), atol=0.01)


def test_rows_add_up_to_one_and_keep_themselves(label_matrix):
    graph = label_graph(label_matrix, steps=40, restart=0.0, top_k=3, seed=2)
    assert graph.dtype == np.float32
    assert graph.has_sorted_indices
    assert np.diff(graph.indptr).max() == 3
    np.testing.assert_allclose(np.asarray(graph.sum(axis=1)).ravel(), 1, rtol=1e-6)
    assert (graph.diagonal() > 0).all()


def test_label_without_texts_is_its_own_only_neighbour():
    assert label_graph(TINY).toarray()[4].tolist() == [0, 0, 0, 0, 1]


def test_keeps_the_labels_visited_most():
    full = label_graph(TINY, steps=500, restart=0.5, seed=4).toarray()
    cut = label_graph(TINY, steps=500, restart=0.5, top_k=2, seed=4).toarray()
    for label in range(4):
        others = full[label].copy()
        others[label] = -1
        kept = np.zeros(5)
        kept[[label, others.argmax()]] = full[label, [label, others.argmax()]]
        np.testing.assert_allclose(cut[label], kept / kept.sum(), rtol=1e-6)


def test_threads_and_seeds(label_matrix):
    one, four = (label_graph(label_matrix, seed=9, threads=n) for n in (1, 4))
    np.testing.assert_array_equal(one.toarray(), four.toarray())
    assert (one.toarray() != label_graph(label_matrix, seed=10).toarray()).any()


def test_explicit_zeros_are_no_links():
    data = np.append(TINY.data, 0)
    Y = sparse.csr_matrix((data, np.append(TINY.indices, 0), [*TINY.indptr[:-1], len(data)]), shape=TINY.shape)
    np.testing.assert_array_equal(label_graph(Y, seed=3).toarray(), label_graph(TINY, seed=3).toarray())


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"top_k": 0}, {"restart": -0.1}, {"restart": 1.1}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(UserError, match=next(iter(wrong))):
        label_graph(TINY, **wrong)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_smooth_is_the_weighted_mean_of_neighbours(label_matrix, kind):
    graph = label_graph(label_matrix, seed=1)
    vectors = np.random.default_rng(1).normal(size=(60, 20)).astype(np.float32)
    expected = graph.toarray() @ vectors
    given = sparse.csr_matrix(vectors) if kind == "sparse" else vectors
    raw, unit = smooth(given, graph, normalise=False), smooth(given, graph)
    if kind == "sparse":
        raw, unit = raw.toarray(), unit.toarray()
    np.testing.assert_allclose(raw, expected, atol=1e-5)
    np.testing.assert_allclose(unit, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-5)


def test_no_labels():
    assert label_graph(sparse.csr_matrix((4, 0))).shape == (0, 0)

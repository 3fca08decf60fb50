"""Blending against the same sums written with dense arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from deepxc.predict.fusion import blend_with_neighbours, softmax_rows


def test_softmax_by_hand():
    # exp(0)=1 and exp(-ln 3)=1/3 at temperature 1: shares 3/4 and 1/4; at 1/2 the odds are squared: 9/10 and 1/10
    scores = np.array([[2.0, 2.0 - np.log(3.0)]])
    np.testing.assert_allclose(softmax_rows(scores, 1.0), [[0.75, 0.25]], rtol=1e-6)
    np.testing.assert_allclose(softmax_rows(scores, 0.5), [[0.9, 0.1]], rtol=1e-6)


def test_softmax_of_nothing_is_nothing():
    scores = np.array([[1.0, -np.inf], [-np.inf, -np.inf]], np.float32)
    np.testing.assert_array_equal(softmax_rows(scores, 0.1), [[1, 0], [0, 0]])
    assert softmax_rows(np.empty((2, 0), np.float32), 0.1).shape == (2, 0)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.floats(0, 1), st.booleans())
def test_equals_dense_sums(seed, k, weight, restrict):
    rng = np.random.default_rng(seed)
    n_labels, n_texts, n = 9, 12, 5
    Y = sparse.csr_matrix((rng.random((n_texts, n_labels)) < 0.3).astype(np.float32))
    label_ids = np.array([rng.permutation(n_labels)[:4] for _ in range(n)])
    label_ids[0, 2:] = -1
    text_ids = np.array([rng.permutation(n_texts)[:3] for _ in range(n)])
    text_ids[1, 1:] = -1
    label_shares = rng.random(label_ids.shape).astype(np.float32)
    text_shares = rng.random(text_ids.shape).astype(np.float32)
    allowed = rng.random(n_labels) < 0.5 if restrict else None
    ids, scores = blend_with_neighbours(
        label_ids, (1 - weight) * label_shares, text_ids, weight * text_shares, Y, k=k, allowed=allowed
    )
    for i in range(n):
        total = np.zeros(n_labels)
        candidate = np.zeros(n_labels, bool)
        for label, share in zip(label_ids[i], label_shares[i], strict=True):
            if label >= 0:
                total[label] += (1 - weight) * share
                candidate[label] = True
        for text, share in zip(text_ids[i], text_shares[i], strict=True):
            if text >= 0:
                total += weight * share * Y[text].toarray()[0]
                candidate |= Y[text].toarray()[0] > 0
        if allowed is not None:
            candidate &= allowed
        n_answers = min(k, candidate.sum())
        assert (ids[i, n_answers:] == -1).all()
        assert candidate[ids[i, :n_answers]].all()
        np.testing.assert_allclose(scores[i, :n_answers], np.sort(total[candidate])[::-1][:n_answers], rtol=1e-5)
        np.testing.assert_allclose(scores[i, :n_answers], total[ids[i, :n_answers]], rtol=1e-5)


def test_ties_go_to_the_smaller_label():
    Y = sparse.csr_matrix(np.ones((1, 3), np.float32))
    ids, _ = blend_with_neighbours(np.array([[2, 1, 0]]), np.ones((1, 3)), np.array([[0]]), np.ones((1, 1)), Y, k=2)
    assert ids.tolist() == [[0, 1]]


@pytest.mark.parametrize("k", [1, 5])
def test_no_candidates_no_answers(k):
    Y = sparse.csr_matrix((1, 3), dtype=np.float32)
    ids, scores = blend_with_neighbours(
        np.full((1, 2), -1), np.zeros((1, 2)), np.full((1, 2), -1), np.zeros((1, 2)), Y, k=k
    )
    assert (ids == -1).all()
    assert (scores == -np.inf).all()

"""Posting lists against the plain sparse product."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from deepxc.errors import UserError
from deepxc.search.posting_lists import PostingLists


def matrix(rng, n, d, density):
    X = sparse.random(n, d, density, "csr", dtype=np.float32, rng=rng)
    X.data = rng.integers(-3, 6, X.nnz).astype(np.float32)  # small whole numbers: exact sums and many ties
    X.eliminate_zeros()
    return X


def best_rows(queries, rows, k):
    """Every row that shares a token, sorted by score descending and id ascending."""
    shared = (queries != 0).astype(np.int32) @ (rows != 0).astype(np.int32).T
    scores = (queries @ rows.T).toarray()
    answers = []
    for i in range(queries.shape[0]):
        hits = shared[[i]].nonzero()[1]
        hits = hits[np.lexsort((hits, -scores[i, hits]))][:k]
        answers.append([(int(j), float(scores[i, j])) for j in hits])
    return answers


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 12))
def test_equals_the_sparse_product(seed, n, k):
    rng = np.random.default_rng(seed)
    rows, queries = matrix(rng, n, 12, 0.3), matrix(rng, 7, 12, 0.3)
    ids, scores = PostingLists(rows, budget=0).search(queries, k)
    for i, expected in enumerate(best_rows(queries, rows, k)):
        assert ids[i, : len(expected)].tolist() == [j for j, _ in expected]
        assert scores[i, : len(expected)].tolist() == [s for _, s in expected]
        assert (ids[i, len(expected) :] == -1).all()
        assert (scores[i, len(expected) :] == -np.inf).all()


def test_threads_and_repeats_change_nothing():
    rng = np.random.default_rng(0)
    lists, queries = PostingLists(matrix(rng, 500, 80, 0.05)), matrix(rng, 200, 80, 0.05)
    one = lists.search(queries, 9, threads=1)
    two = lists.search(queries, 9, threads=2)
    single = [lists.search(queries[i], 9) for i in range(200)]
    for part in (0, 1):
        np.testing.assert_array_equal(one[part], two[part])
        np.testing.assert_array_equal(one[part], np.vstack([s[part] for s in single]))


def test_a_budget_leaves_out_the_commonest_tokens():
    rows = sparse.csr_matrix(np.array([[1, 0], [1, 0], [1, 1]], np.float32))
    query = sparse.csr_matrix(np.array([[1, 1]], np.float32))
    ids, scores = PostingLists(rows, budget=2).search(query, 3)
    assert ids.tolist() == [[2, -1, -1]]  # only the rare second token was read
    assert scores[0, 0] == 1.0
    assert PostingLists(rows, budget=4).search(query, 3)[0].tolist() == [[2, 0, 1]]


def test_the_rarest_token_is_read_whatever_the_budget():
    rows = sparse.csr_matrix(np.ones((5, 1), np.float32))
    assert PostingLists(rows, budget=1).search(rows[:1], 2)[0].tolist() == [[0, 1]]


def test_saved_lists_answer_alike(tmp_path):
    rng = np.random.default_rng(1)
    lists, queries = PostingLists(matrix(rng, 50, 20, 0.2), budget=30), matrix(rng, 20, 20, 0.2)
    lists.save(tmp_path)
    back = PostingLists.load(tmp_path)
    assert (len(back), back.dim, back.budget) == (50, 20, 30)
    for before, after in zip(lists.search(queries, 5), back.search(queries, 5), strict=True):
        np.testing.assert_array_equal(before, after)


def test_other_columns_are_refused():
    with pytest.raises(UserError, match="columns"):
        PostingLists(sparse.csr_matrix((3, 4), dtype=np.float32)).search(sparse.csr_matrix((1, 5)), 2)

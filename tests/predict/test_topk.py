import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from deepxc.data.label_space import LabelSpace
from deepxc.predict.topk import TopK

LABELS = LabelSpace(["u:a", "u:b", "u:c"], ["apple", "pear", "plum"])


def test_padding_is_no_answer():
    top = TopK(np.array([[2, 0], [1, -1]]), np.array([[0.9, 0.1], [0.5, -np.inf]], np.float32), LABELS)
    assert top.names == [["plum", "apple"], ["pear"]]
    assert top.label_ids == [["u:c", "u:a"], ["u:b"]]
    np.testing.assert_allclose(top.to_csr().toarray(), [[0.1, 0, 0.9], [0, 0.5, 0]])
    ids, scores = top
    assert ids is top.ids
    assert scores is top.scores
    assert (len(top), top.k) == (2, 2)


@given(st.lists(st.lists(st.sampled_from([-1.0, 0.5, 2.0]), min_size=3, max_size=3), min_size=1), st.integers(1, 4))
def test_from_csr_sorts_by_score_then_label(rows, k):
    scores = sparse.csr_matrix(np.array(rows, np.float32))
    top = TopK.from_csr(scores, k, LABELS)
    for i, row in enumerate(rows):
        expected = sorted(range(3), key=lambda j: (-row[j], j))[:k]
        assert top.ids[i, : min(k, 3)].tolist() == expected
        assert (top.ids[i, 3:] == -1).all()


def test_there_and_back():
    top = TopK(np.array([[2, 0], [1, -1]]), np.array([[0.9, 0.1], [0.5, -np.inf]], np.float32), LABELS)
    back = TopK.from_csr(top.to_csr(), 2, LABELS)
    np.testing.assert_array_equal(back.ids, top.ids)
    np.testing.assert_array_equal(back.scores, top.scores)

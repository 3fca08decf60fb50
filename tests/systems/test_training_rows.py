"""Which rows a system trains on: label texts as rows, and labels that are documents."""

import numpy as np
from scipy import sparse

from deepxc import Astec, LabelSpace
from deepxc.data.dataset import Split
from deepxc.systems.inputs import as_split
from deepxc.systems.training_rows import labels_are_documents, not_itself, with_label_rows, without_own
from deepxc.systems.validation import judged


def split_of(texts, labels, label_texts):
    space = LabelSpace([str(i) for i in range(len(label_texts))], label_texts, label_texts)
    return as_split(texts, labels, space)


def test_every_label_text_becomes_a_row_unless_it_is_one():
    split = split_of(["apple", "pear cake"], [[0], [1]], ["apple", "pear", " "])
    rows = with_label_rows(split)
    assert rows.texts == ["apple", "pear cake", "pear"]  # apple is a text of its label already, the third says nothing
    assert rows.Y.toarray().tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0]]


def test_labels_that_are_documents_get_no_rows():
    documents = ["one", "two", "three"]
    split = split_of(documents, [[1], [2], [0]], documents)
    assert labels_are_documents(split)
    assert with_label_rows(split) is split
    own = split_of(documents, [[0, 1], [1, 2], [2]], documents)  # codes whose description is their own text
    assert not labels_are_documents(own)
    assert len(with_label_rows(own)) == 3


def test_documents_do_not_answer_themselves():
    rng = np.random.default_rng(0)
    words = np.array(["red", "green", "blue", "black", "white", "old", "new", "big", "small", "tall"])
    texts = sorted({" ".join(rng.choice(words, 3, replace=False)) for _ in range(80)})
    links = [[(i + 1) % len(texts), (i + 2) % len(texts)] for i in range(len(texts))]
    model = Astec(dim=16, epochs=1).fit(split_of(texts, links, texts))
    assert model.documents_
    top = model.predict_topk(texts, 5)
    assert top.ids.shape == (len(texts), 5)
    assert not (top.ids == np.arange(len(texts))[:, None]).any()


def test_without_own_by_hand():
    ids, scores = np.array([[4, 2, 7], [2, 4, 7], [1, 2, -1]]), np.array([[3.0, 2, 1], [3, 2, 1], [3, 2, -np.inf]])
    kept, left = without_own(np.array([2, 9, -1]), ids, scores, 2)
    assert kept.tolist() == [[4, 7], [2, 4], [1, 2]]
    assert left.tolist() == [[3, 1], [3, 2], [3, 2]]


def test_features_have_no_label_rows(rng):
    split = as_split(rng.random((4, 3)).astype(np.float32), [[0], [1], [0], [1]])
    assert isinstance(split, Split)
    assert with_label_rows(split) is split
    assert not labels_are_documents(split)


def test_held_out_documents_are_judged_without_themselves_and_without_reversed_pairs():
    names = ["a", "b", "c", "d"]
    labels = LabelSpace(ids=names, names=names, texts=["text a", "text b", "text c", "text d"])

    def split(texts, pairs):
        rows, columns = np.array(pairs).T
        Y = sparse.csr_matrix((np.ones(len(pairs), np.float32), (rows, columns)), shape=(len(texts), 4))
        return Split(labels, sparse.csr_matrix(Y), texts)

    train = split(["text b", "text c"], [(0, 0), (0, 2), (1, 3)])  # b -> a, c; c -> d
    held = split(["text a", "nothing known"], [(0, 1), (0, 2), (1, 0)])  # a -> b, c
    found = judged(held, train)
    assert found.Y.toarray().tolist() == [[0, 0, 1, 0], [1, 0, 0, 0]]  # a -> b is b -> a turned round
    assert sorted(map(tuple, found.filter_pairs.tolist())) == [(0, 0), (0, 1)]


def test_a_document_is_no_candidate_for_itself():
    ids, scores = np.array([[3, 1], [3, -1]]), np.array([[5.0, 2.0], [4.0, -np.inf]], np.float32)
    found = not_itself(np.array([3, -1]), ids, scores)
    assert found[0].tolist() == [[-1, 1], [3, -1]]
    assert found[1].tolist() == [[-np.inf, 2.0], [4.0, -np.inf]]
    assert not_itself(None, ids, scores) == (ids, scores)

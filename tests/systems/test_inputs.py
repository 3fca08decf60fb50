import numpy as np
import pytest
from scipy import sparse

from deepxc.data.dataset import Dataset, Split
from deepxc.data.label_space import LabelSpace
from deepxc.errors import UserError
from deepxc.systems.inputs import as_inputs, as_split, label_row

TEXTS = ["a b", "c", "d e f"]


def test_names_become_sorted_labels():
    split = as_split(TEXTS, [["y", "x"], [], ["x"]])
    assert list(split.labels.names) == ["x", "y"]
    assert split.Y.toarray().tolist() == [[1, 1], [0, 0], [1, 0]]


def test_numbers_are_label_rows():
    split = as_split(TEXTS, [[2], [0, 2], []])
    assert len(split.labels) == 3
    assert split.Y.toarray().tolist() == [[0, 0, 1], [1, 0, 1], [0, 0, 0]]


def test_a_flat_list_is_one_label_a_text():
    assert as_split(TEXTS, ["b", "a", "b"]).Y.toarray().tolist() == [[0, 1], [1, 0], [0, 1]]
    split = as_split(TEXTS, np.array([7, 7, 30]))
    assert list(split.labels.names) == ["7", "30"]
    assert split.Y.toarray().tolist() == [[1, 0], [1, 0], [0, 1]]


def test_a_matrix_is_taken_as_it_is():
    Y = np.array([[1, 0], [0, 0], [0, 2]])
    for given in (Y, sparse.csr_matrix(Y), sparse.coo_array(Y)):
        split = as_split(TEXTS, given)
        assert split.Y.toarray().tolist() == Y.tolist()
        assert split.Y.dtype == np.float32


def test_a_given_label_space_is_kept():
    labels = LabelSpace(["u:1", "u:2"], ["one", "two"])
    split = as_split(TEXTS, [["two"], ["u:1"], [1]], labels)
    assert split.labels is labels
    assert split.Y.toarray().tolist() == [[0, 1], [1, 0], [0, 1]]


def test_a_data_set_brings_its_labels():
    split = as_split(TEXTS, [["x"], ["y"], []])
    assert as_split(split) is split
    assert as_split(Dataset("d", split.labels, split)) is split


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (TEXTS, None, "y is None"),
        (TEXTS, [["x"]], "3 texts but 1 rows"),
        (TEXTS, [["x"], [1], []], "mixed"),
        (TEXTS, [["x"], [1.5], []], "row 1 holds the label 1.5"),
        (TEXTS, [[-1], [], []], "label -1"),
        (TEXTS, "xyz", "str where"),
        (TEXTS, np.array([[-1, 0], [0, 0], [1, 1]]), "not negative"),
        (TEXTS, np.array([[np.nan, 0], [0, 0], [1, 1]]), "finite"),
        ("one text", [["x"]], "one string"),
        (["a", 5, "b"], [["x"], [], []], "row 1 is int"),
        ([b"bytes"], [["x"]], "row 0 is bytes"),
        ([], [], "0 sample"),
        (3, [["x"]], "neither texts nor a matrix"),
    ],
)
def test_bad_input_is_named(X, Y, message):
    with pytest.raises(UserError, match=message):
        as_split(X, Y)


def test_labels_given_twice():
    split = as_split(TEXTS, [["x"], ["y"], []])
    with pytest.raises(UserError, match="twice"):
        as_split(split, [["x"], [], []])


def test_an_unknown_label_names_the_nearest():
    labels = LabelSpace(["u:1", "u:2"], ["algebra", "geometry"])
    with pytest.raises(UserError, match="Did you mean 'algebra'"):
        label_row("algebar", labels)
    with pytest.raises(UserError, match="Rows go from 0 to 1"):
        label_row(2, labels)
    with pytest.raises(UserError, match="row 1: no label"):
        as_split(TEXTS, [["algebra"], ["zzz"], []], labels)


def test_features_become_float32_rows():
    assert as_inputs(np.ones((2, 3))).dtype == np.float32
    assert as_inputs([[1, 2], [3, 4]]).shape == (2, 2)
    assert sparse.isspmatrix_csr(as_inputs(sparse.coo_matrix(np.eye(3))))
    assert as_inputs(Split(LabelSpace.numbered(1), sparse.csr_matrix((1, 1)), texts=["t"])) == ["t"]

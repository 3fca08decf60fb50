"""Validation splits: disjoint, covering, repeatable, and kind to rare labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from deepxc.data.dataset import Dataset, Source, Split
from deepxc.data.label_space import LabelSpace
from deepxc.data.splits import split_dataset, validation_rows, with_validation
from deepxc.errors import UserError


def random_matrix(rows, labels, density, seed):
    rng = np.random.default_rng(seed)
    return sparse.random_array((rows, labels), density=density, rng=rng, dtype=np.float32).tocsr()


def numbered(Y, **parts):
    rows = Y.shape[0]
    return Split(
        labels=LabelSpace.numbered(Y.shape[1]), Y=sparse.csr_matrix(Y), texts=list(map(str, range(rows))), **parts
    )


def counts(Y):
    return np.bincount(Y.indices, minlength=Y.shape[1])


matrices = st.builds(
    random_matrix, st.integers(2, 60), st.integers(1, 25), st.sampled_from([0, 0.02, 0.1, 0.4]), st.integers(0, 99)
)


@settings(max_examples=200, deadline=None)
@given(matrices, st.floats(0.01, 0.99), st.integers(0, 2**32))
def test_parts_are_disjoint_and_cover(Y, share, seed):
    split = numbered(Y)
    size = max(1, round(Y.shape[0] * share))
    if size == Y.shape[0]:
        with pytest.raises(UserError, match="empty"):
            split_dataset(split, share, seed)
        return
    train, held = split_dataset(split, share, seed)
    assert len(held) == size
    rows = list(map(int, train.texts)), list(map(int, held.texts))
    assert sorted(rows[0] + rows[1]) == list(range(Y.shape[0]))
    assert rows == (sorted(rows[0]), sorted(rows[1]))
    assert (Y[rows[0]] != train.Y).nnz == 0
    assert (Y[rows[1]] != held.Y).nnz == 0
    assert held.texts == split_dataset(split, share, seed)[1].texts
    assert train.labels is held.labels
    assert train.labels.frequencies.tolist() == counts(train.Y).tolist()


@settings(max_examples=200, deadline=None)
@given(matrices, st.data())
def test_every_label_stays_in_train(Y, data):
    free = Y.shape[0] - max(int(np.count_nonzero(counts(Y))), 1)  # at most one row a label has to stay
    assume(free > 0)
    size = data.draw(st.integers(1, free))
    train, _ = split_dataset(numbered(Y), size, data.draw(st.integers(0, 99)))
    assert ((counts(Y) == 0) | (counts(train.Y) > 0)).all()


def test_validation_is_filled_where_labels_must_be_lost():
    Y = sparse.csr_matrix(np.eye(6, dtype=np.float32))
    assert len(validation_rows(Y, 4)) == 4


def test_only_then():
    """Six rows for two labels: five of them would leave one label without train texts, four do not."""
    Y = sparse.csr_matrix(np.array([[1, 0]] * 3 + [[0, 1]] * 3, np.float32))
    for seed in range(20):
        train, _ = split_dataset(numbered(Y), 4, seed)
        assert counts(train.Y).tolist() == [1, 1]


def test_frequency_profile_is_that_of_train():
    """Zipf labels: every band of frequency gives its share, the rarest included; plain chance strays further."""
    rng = np.random.default_rng(0)
    label = np.minimum(rng.zipf(1.3, 60_000) - 1, 9_999)
    rows = np.repeat(np.arange(30_000), 2)
    Y = sparse.csr_matrix((np.ones(60_000, np.float32), (rows, label)), shape=(30_000, 10_000))
    Y.data[:] = 1
    whole = counts(Y)
    held = counts(Y[validation_rows(Y, 3_000, seed=1)])
    for low, high in ((2, 2), (3, 5), (6, 15), (16, 60), (61, 10**6)):
        band = (whole >= low) & (whole <= high)
        assert held[band].sum() / whole[band].sum() == pytest.approx(0.1, rel=0.15), (low, high)
    assert held[whole == 1].sum() == 0
    chance = counts(Y[rng.choice(30_000, 3_000, replace=False)])
    middle = (whole >= 10) & (whole <= 60)
    assert np.abs(held - 0.1 * whole)[middle].sum() < 0.75 * np.abs(chance - 0.1 * whole)[middle].sum()


def test_another_seed_is_another_split():
    Y = random_matrix(200, 20, 0.1, 0)
    assert validation_rows(Y, 20, 1).tolist() != validation_rows(Y, 20, 2).tolist()


def test_everything_that_belongs_to_a_row_follows_it():
    Y = random_matrix(50, 10, 0.3, 3)
    pairs = np.column_stack((np.arange(50), np.arange(50) % 10))
    split = numbered(Y, ids=[f"id{i}" for i in range(50)], filter_pairs=pairs, source=Source("rows.csv", first_line=2))
    for part in split_dataset(split, 0.2, 5):
        of_row = dict(map(tuple, part.filter_pairs))
        for row, text in enumerate(part.texts):
            assert part.ids[row] == f"id{text}"
            assert of_row[row] == int(text) % 10
            assert part.at(row) == f"rows.csv:{int(text) + 2}"


def test_rows_that_are_not_lines_keep_their_numbers():
    split = numbered(random_matrix(20, 3, 0.5, 1), source=Source("rows.parquet", first_line=0))
    _, held = split_dataset(split, 5)
    assert [held.at(row) for row in range(5)] == [f"rows.parquet, row {text}" for text in held.texts]
    assert held.take([3]).at(0) == f"rows.parquet, row {held.texts[3]}"


def test_a_data_set_gets_a_validation_split():
    split = numbered(random_matrix(40, 5, 0.3, 2))
    dataset = with_validation(Dataset("made", split.labels, split, split.take([0, 1])), 0.25, seed=4)
    assert (len(dataset.train), len(dataset.validation), len(dataset.test)) == (30, 10, 2)
    assert dataset.labels is dataset.train.labels is dataset.test.labels is dataset.validation.labels
    assert dataset.validation.texts == split_dataset(split, 10, seed=4)[1].texts
    with pytest.raises(UserError, match="has a validation split already"):
        with_validation(dataset)


@pytest.mark.parametrize("validation", [0, -3, 40, 100, 1.0, 1.5, -0.1, float("nan")])
def test_sizes_that_leave_nothing(validation):
    with pytest.raises(UserError, match="validation"):
        split_dataset(numbered(random_matrix(40, 5, 0.3, 2)), validation)

"""Batches: every row once, the same again for the same seed, from any place on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepxc.errors import UserError
from deepxc.training.batches import Batches, by_cluster


@given(n=st.integers(0, 50), size=st.integers(1, 60), start=st.integers(0, 5), seed=st.integers(0, 9))
def test_every_row_once_and_from_any_place_on(n, size, start, seed):
    batches = Batches(n, size, seed)
    whole = list(batches.epoch(2))
    assert len(whole) == len(batches)
    assert sorted(row for batch in whole for row in batch.rows.tolist()) == list(range(n))
    rest = list(batches.epoch(2, start))
    assert len(rest) == max(0, len(whole) - start)
    for a, b in zip(whole[start:], rest, strict=True):
        assert a.number == b.number
        assert (a.rows == b.rows).all()
        assert a.rng.random() == b.rng.random()


def test_epochs_seeds_and_batches_differ():
    first = [b.rows.tolist() for b in Batches(40, 20, 1).epoch(0)]
    assert first != [b.rows.tolist() for b in Batches(40, 20, 1).epoch(1)]
    assert first != [b.rows.tolist() for b in Batches(40, 20, 2).epoch(0)]
    one, other = Batches(40, 20, 1).epoch(0)
    assert one.rng.random() != other.rng.random()


def test_clusters_stay_together():
    clusters = np.repeat([7, 2, 9, 4], 5)
    epochs = [np.concatenate([b.rows for b in Batches(20, 5, order=by_cluster(clusters)).epoch(e)]) for e in (0, 1)]
    for order in epochs:
        assert sorted(order) == list(range(20))
        assert all(len(set(clusters[order[i : i + 5]])) == 1 for i in range(0, 20, 5))
    assert (epochs[0] != epochs[1]).any()


def test_an_order_may_leave_rows_out():
    batches = Batches(100, 4, order=lambda _epoch, rng: rng.choice(100, 10, replace=False), n_ordered=10)
    assert [len(b.rows) for b in batches.epoch(0)] == [4, 4, 2]


def test_empty_batches_are_refused():
    with pytest.raises(UserError, match="at least one"):
        Batches(3, 0)

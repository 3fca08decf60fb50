"""NGAME's batches: the published schedule, whole clusters, the same again for the same seed and after a kill."""

import numpy as np
import pytest
import torch

from deepxc.errors import UserError
from deepxc.training.batches import Batches
from deepxc.training.memory_bank import ClusterSchedule, MemoryBank


class Epoch:
    """As much of a run as the bank reads."""

    def __init__(self, epoch, epochs=100):
        self.epoch, self.epochs = epoch, epochs


def test_the_published_schedule():
    """Shuffled for ten epochs, then clustered every five; clusters of 4 texts double from epoch 10 on."""
    schedule = ClusterSchedule()
    assert [epoch for epoch in range(27) if schedule.clusters_after(epoch)] == [9, 14, 19, 24]
    assert [schedule.size_at(epoch) for epoch in (0, 9, 10, 19, 20, 25, 50, 200)] == [4, 4, 8, 8, 16, 32, 64, 1024]


def test_clusters_of_nothing_are_refused():
    with pytest.raises(UserError, match="empty before"):
        ClusterSchedule(first=0)


def filled(n=64, seed=0):
    bank = MemoryBank(n, 8, ClusterSchedule(first=1, every=2, size=4, doubling=(3,)), seed=seed)
    vectors = np.random.default_rng(1).normal(size=(n, 8)).astype(np.float32)
    bank.remember(np.arange(n), torch.from_numpy(vectors))
    return bank


def test_shuffled_until_the_first_clustering():
    bank = filled()
    plain = np.random.default_rng(3).permutation(64)
    np.testing.assert_array_equal(bank(0, np.random.default_rng(3)), plain)


def test_batches_are_whole_clusters():
    bank = filled()
    bank.on_epoch_end(Epoch(0))
    clusters = bank.clusters.numpy()
    assert np.bincount(clusters).tolist() == [4] * 16
    for epoch in (1, 2):
        rows = [batch.rows for batch in Batches(64, 8, 5, order=bank).epoch(epoch)]
        assert sorted(np.concatenate(rows)) == list(range(64))
        assert all(len(set(clusters[part])) == 2 for part in rows)
    bank.on_epoch_end(Epoch(1))  # not its turn
    np.testing.assert_array_equal(bank.clusters, clusters)
    bank.on_epoch_end(Epoch(2))
    assert np.bincount(bank.clusters.numpy()).tolist() == [8] * 8


def test_deterministic_and_taken_up_again():
    one, two = filled(), filled()
    for bank in (one, two):
        bank.on_epoch_end(Epoch(0))
    back = MemoryBank(64, 8, one.schedule, seed=0)
    back.load_state({name: part.clone() for name, part in one.state().items()})
    orders = [bank(4, np.random.default_rng(9)) for bank in (one, two, back)]
    np.testing.assert_array_equal(orders[0], orders[1])
    np.testing.assert_array_equal(orders[0], orders[2])
    for bank in (one, back):
        bank.on_epoch_end(Epoch(2))
    np.testing.assert_array_equal(one.clusters, back.clusters)


def test_filled_at_once_for_features_that_stand_still():
    bank = MemoryBank(40, 8, ClusterSchedule(first=20, every=20, size=5, doubling=(20,)))
    bank.fill(np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32))
    assert np.bincount(bank.clusters.numpy()).tolist() == [5] * 8

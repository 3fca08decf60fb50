"""Pools: who is in them, how often, and that the softmax over them is unbiased."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from deepxc.errors import UserError
from deepxc.training.losses import Coordinates, pooled_loss
from deepxc.training.pools import PoolSampler


def labels(rng, n=40, n_labels=60, each=3):
    dense = np.zeros((n, n_labels), np.float32)
    weights = 1 / np.arange(1, n_labels + 1)
    for row in dense[1:]:  # the first text has no label
        row[rng.choice(n_labels, each, replace=False, p=weights / weights.sum())] = 1
    return sparse.csr_matrix(dense)


@given(
    seed=st.integers(0, 500),
    size=st.integers(1, 20),
    h=st.integers(0, 4),
    uniform=st.integers(0, 30),
    unigram=st.integers(0, 30),
    largest=st.none() | st.integers(0, 70),
)
@settings(max_examples=60, deadline=None)
def test_what_is_in_a_pool(seed, size, h, uniform, unigram, largest):
    rng = np.random.default_rng(seed)
    Y = labels(rng)
    rows = rng.choice(40, size, replace=False)
    hard = rng.integers(-1, 60, (size, h))
    sampler = PoolSampler(Y, uniform=uniform, unigram=unigram, largest=largest)
    for _ in range(2):  # a sampler is used again and again
        pool = sampler.make(rows, rng, hard, own_shortlist=True)
        ids = pool.labels.numpy()
        assert len(np.unique(ids)) == len(ids) == sum(pool.counts)
        batch = Y[rows].toarray()
        positives, hards, randoms = pool.counts
        assert set(ids[:positives]) == set(np.flatnonzero(batch.any(0)))
        cells = np.zeros((size, len(ids)))
        np.add.at(cells, (pool.positives.rows.numpy(), pool.positives.columns.numpy()), 1)
        assert (cells == batch[:, ids]).all()  # every positive is known as one: none is left to be a negative
        assert set(ids[positives : positives + hards]) <= set(hard.ravel())
        assert randoms <= uniform + unigram
        assert (pool.log_q[: positives + hards] == 0).all()
        if largest is None:
            assert set(hard[hard >= 0]) <= set(ids)
        else:
            assert len(ids) <= max(largest, positives, int(batch.sum()))
        own = np.zeros((size, len(ids)))
        np.add.at(own, (pool.shortlist.rows.numpy(), pool.shortlist.columns.numpy()), 1)
        assert (own == [[label in mine for label in ids] for mine in hard]).all()


def test_the_same_seed_gives_the_same_pool():
    Y = labels(np.random.default_rng(0))
    sampler = PoolSampler(Y, uniform=9, unigram=9)
    first, again, other = (sampler.make(np.arange(5), np.random.default_rng(s)).labels.tolist() for s in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(("uniform", "unigram"), [(12, 0), (0, 12), (7, 9)])
def test_labels_are_drawn_as_often_as_log_q_says(uniform, unigram):
    rng = np.random.default_rng(4)
    Y = labels(rng)
    sampler = PoolSampler(Y, uniform=uniform, unigram=unigram)
    seen, promised, rounds = np.zeros(60), np.full(60, np.nan), 6000
    for _ in range(rounds):
        pool = sampler.make(np.array([0]), rng)
        seen[pool.labels] += 1
        promised[pool.labels] = pool.log_q.exp()
    error = np.sqrt(promised * (1 - promised) / rounds)
    assert np.nanmax(np.abs(seen / rounds - promised) / error) < 4.5
    if unigram and not uniform:
        counts = np.maximum(np.asarray(Y.sum(0)).ravel(), 1) ** 0.75
        assert promised == pytest.approx(1 - (1 - counts / counts.sum()) ** unigram, rel=1e-5)


def test_the_sum_over_a_pool_estimates_the_sum_over_all_labels():
    rng = np.random.default_rng(8)
    Y = labels(rng)
    rows, hard = np.array([3, 9]), rng.integers(0, 60, (2, 4))
    logits = rng.standard_normal(60)
    sampler = PoolSampler(Y, uniform=10, unigram=10)
    sums = []
    for _ in range(6000):
        pool = sampler.make(rows, rng, hard)
        sums.append(np.exp(logits[pool.labels] - pool.log_q.numpy()).sum())
    assert np.mean(sums) == pytest.approx(np.exp(logits).sum(), abs=4 * np.std(sums) / np.sqrt(len(sums)))


def test_the_corrected_loss_nears_the_loss_over_all_labels():
    rng = np.random.default_rng(2)
    Y = labels(rng)
    x, w = (torch.from_numpy(rng.standard_normal(shape)) for shape in ((4, 8), (60, 8)))
    w = w / 3
    rows = np.arange(1, 5)
    full = Coordinates(*(torch.from_numpy(a).long() for a in Y[rows].nonzero()))
    expected = pooled_loss(x, w, None, full).item()
    sampler = PoolSampler(Y, uniform=60)
    corrected, plain = [], []
    for _ in range(2000):
        pool = sampler.make(rows, rng)
        for log_q, losses in ((pool.log_q, corrected), (None, plain)):
            losses.append(pooled_loss(x, w[pool.labels], None, pool.positives, log_q=log_q).item())
    assert abs(np.mean(corrected) - expected) < 0.02
    assert abs(np.mean(plain) - expected) > 0.2


def test_tiny_label_spaces():
    Y = sparse.csr_matrix(np.ones((2, 1), np.float32))
    pool = PoolSampler(Y, uniform=3, unigram=3).make(np.array([0, 1]), np.random.default_rng(0))
    assert pool.labels.tolist() == [0]
    assert pool.log_q.tolist() == [0]


def test_negative_draws_are_refused():
    with pytest.raises(UserError, match="negative"):
        PoolSampler(labels(np.random.default_rng(0)), uniform=-1)

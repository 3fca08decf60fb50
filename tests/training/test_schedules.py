"""Schedules by hand."""

import math

import pytest

from deepxc.errors import UserError
from deepxc.training.schedules import constant, cosine, halving, linear, one_cycle


def test_constant():
    assert constant(0.0) == constant(0.7) == 1


def test_halving_follows_the_rule():
    scale = halving(30, every=14)
    # 14 divides 14, then 7 divides 21 and 28 (5 is the shortest, and 5 divides 25 and 30)
    by_epoch = [scale(epoch / 30) for epoch in range(30)]
    assert by_epoch == [1] * 14 + [0.5] * 7 + [0.25] * 4 + [0.125] * 5
    assert halving(10, every=20)(0.99) == 1
    assert halving(4, every=1, shortest=1)(0.75) == 1 / 8
    assert scale(0.9999) == 0.125


def test_linear():
    scale = linear(0.2, floor=0.1)
    assert [scale(p) for p in (0, 0.1, 0.2, 0.6, 1)] == pytest.approx([0, 0.5, 1, 0.55, 0.1])
    assert linear()(0.25) == 0.75
    assert linear(1.0)(0.5) == 0.5


def test_cosine():
    scale = cosine(0.5)
    assert [scale(p) for p in (0.25, 0.5, 0.75, 1)] == pytest.approx([0.5, 1, 0.5, 0])
    assert cosine()(1 / 3) == pytest.approx((1 + math.cos(math.pi / 3)) / 2)


def test_one_cycle():
    scale = one_cycle(0.25, start=0.1, end=0.0)
    assert [scale(p) for p in (0, 0.125, 0.25, 0.625, 1)] == pytest.approx([0.1, 0.55, 1, 0.5, 0])


def test_impossible_shares_are_refused():
    with pytest.raises(UserError, match="share"):
        linear(1.5)
    with pytest.raises(UserError, match="1 or more"):
        halving(5, every=0)

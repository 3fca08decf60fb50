"""Losses over triplets, each worked by hand."""

import numpy as np
import pytest
import torch

from deepxc.training.triplets import hardest_pairs_loss, in_batch_loss, sampled_positive_loss


def test_sampled_positive_by_hand():
    """Positive .5, margin .3: negatives .6, .4 and .1 give hinges .4, .2 and 0; the last has no weight."""
    scores = torch.tensor([[0.5, 0.6, 0.4, 0.1]], dtype=torch.float64)
    positive = torch.tensor([[True, False, False, False]])
    loss = sampled_positive_loss(scores, torch.tensor([0]), positive, margin=0.3, hardest=3, temperature=0.1)
    first = np.exp(6) / (np.exp(6) + np.exp(4))
    assert loss.item() == pytest.approx((0.4 * first + 0.2 * (1 - first)) / 3, rel=1e-12)


def test_weights_of_sampled_negatives_carry_gradient():
    scores = torch.tensor([[0.5, 0.6, 0.4]], dtype=torch.float64, requires_grad=True)
    positive = torch.tensor([[True, False, False]])
    assert torch.autograd.gradcheck(
        lambda s: sampled_positive_loss(s, torch.tensor([0]), positive, hardest=2), (scores,), eps=1e-6
    )


def test_only_the_hardest_count():
    positive = torch.tensor([[True, False, False, False]])
    scores = torch.tensor([[0.5, 0.9, 0.4, 0.3]], dtype=torch.float64)
    loss = sampled_positive_loss(scores, torch.tensor([0]), positive, hardest=1)
    assert loss.item() == pytest.approx(0.9 - 0.5 + 0.3)


def losses(scores, own, positive):
    return [
        sampled_positive_loss(scores, own, positive, hardest=3),
        hardest_pairs_loss(scores, positive),
        in_batch_loss(scores, own, positive),
    ]


@pytest.mark.parametrize("which", range(3))
def test_false_in_batch_negatives_never_contribute(which):
    """However high a true label scores that was not sampled, it neither adds to the loss nor gets pushed down."""
    own = torch.tensor([0, 1])
    positive = torch.tensor([[True, False, True, False], [False, True, False, False]])
    found = []
    for height in (0.55, 50.0):
        scores = torch.tensor([[0.5, 0.6, height, 0.1], [0.3, 0.2, 0.1, 0.4]], requires_grad=True)
        loss = losses(scores, own, positive)[which]
        loss.backward()
        assert scores.grad[0, 2] <= 0
        found.append(loss.item())
    if which == 1:  # here a true label is a positive of the text, and one more far ahead is none of the hard ones
        assert found[1] <= found[0]
    else:
        assert found[0] == found[1]
        assert scores.grad[0, 2] == 0


def test_hardest_pairs_by_hand():
    """Positives .3 and .6 against .4 and .2, margin .2: hinges .3, .1, 0, 0, weighted by their own softmax."""
    scores = torch.tensor([[0.6, 0.4, 0.3, 0.2]], dtype=torch.float64)
    positive = torch.tensor([[True, False, True, False]])
    loss = hardest_pairs_loss(scores, positive, positives=2, negatives=2)
    hinges = np.array([0.3, 0.1, 0.0, 0.0])
    weights = np.exp(hinges) / np.exp(hinges).sum()
    assert loss.item() == pytest.approx((hinges * weights).mean(), rel=1e-12)


def test_texts_with_fewer_positives_have_fewer_pairs():
    scores = torch.tensor([[0.6, 0.7], [0.1, 0.2]], dtype=torch.float64, requires_grad=True)
    positive = torch.tensor([[True, False], [False, False]])
    loss = hardest_pairs_loss(scores, positive, positives=3, negatives=5)
    loss.backward()
    # one pair in four places, whose weight is 1 but for those of the places that are none, e^-50 each
    assert loss.item() == pytest.approx((0.7 - 0.6 + 0.2) / 8, rel=1e-9)
    assert torch.isfinite(scores.grad).all()
    assert (scores.grad[1] == 0).all()


def test_in_batch_by_hand():
    scores = torch.tensor([[1.0, 2.0, 5.0]], dtype=torch.float64)
    loss = in_batch_loss(scores, torch.tensor([0]), torch.tensor([[True, False, True]]))
    assert loss.item() == pytest.approx(np.log(1 + np.e), rel=1e-9)

"""Dropout by bytes: the right share, the right expectation, gradients where cells were kept."""

import numpy as np
import pytest
import torch

from deepxc.training.dropout import drop


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_share_and_expectation(share):
    x = torch.ones(400, 500)
    out = drop(x, share, np.random.default_rng(0))
    assert (out == 0).float().mean().item() == pytest.approx(share, abs=0.005)
    assert out.mean().item() == pytest.approx(1, abs=0.02)


def test_kept_cells_by_hand():
    """A share of 1/2 drops bytes below 128 and doubles the rest."""
    kept = np.frombuffer(np.random.default_rng(3).bytes(6), np.uint8).reshape(2, 3) >= 128
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    out = drop(x, 0.5, np.random.default_rng(3))
    np.testing.assert_array_equal(out.detach().numpy(), 2 * kept * np.arange(6.0).reshape(2, 3))
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2.0 * kept)


def test_nothing_dropped_is_the_same_tensor():
    x = torch.ones(2, 2)
    assert drop(x, 0.0, np.random.default_rng(0)) is x

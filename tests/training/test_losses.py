"""The pooled losses and their gradients against autograd on dense float64 arrays."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deepxc.training.losses import Coordinates, pooled_loss


def cells(mask):
    rows, columns = torch.nonzero(mask, as_tuple=True)
    return Coordinates(rows, columns)


def problem(seed, n=7, pool=11, dim=5, dtype=torch.float64):
    make = torch.Generator().manual_seed(seed)
    x = torch.randn(n, dim, generator=make, dtype=dtype)
    w = torch.randn(pool, dim, generator=make, dtype=dtype)
    b = torch.randn(pool, generator=make, dtype=dtype)
    y = torch.rand(n, pool, generator=make) < 0.25
    y[0] = False  # a text without a positive
    return x, w, b, y


def reference(x, w, b, y, kind, shortlist, log_q):
    logits = x @ w.T + b
    if log_q is not None:
        logits = logits - log_q
    counts = torch.ones_like(y) if shortlist is None else shortlist | y
    if kind == "softmax":
        target = y.double() / y.sum(1, keepdim=True).clamp_min(1)
        log_p = torch.log_softmax(logits.masked_fill(~counts, -1e300), 1)
        return -torch.where(y, target * log_p, 0).sum()
    sign = torch.where(y, 1.0, -1.0)
    return (torch.nn.functional.softplus(-sign * logits) * counts).sum()


@pytest.mark.parametrize("kind", ["softmax", "logistic"])
@pytest.mark.parametrize("own_shortlist", [False, True])
@given(
    seed=st.integers(0, 1000),
    corrected=st.booleans(),
    most_cells=st.sampled_from([1, 30, 10**6]),
    normalise=st.sampled_from(["batch", "positives", "sum"]),
)
@settings(max_examples=25, deadline=None)
def test_gradients_are_those_of_dense_autograd(kind, own_shortlist, seed, corrected, most_cells, normalise):
    x, w, b, y = problem(seed)
    shortlist = torch.rand(y.shape, generator=torch.Generator().manual_seed(seed)) < 0.4 if own_shortlist else None
    log_q = torch.linspace(-3, 0, y.shape[1]) if corrected else None
    ours = [t.clone().requires_grad_() for t in (x, w, b)]
    theirs = [t.clone().requires_grad_() for t in (x, w, b)]
    loss = pooled_loss(
        *ours,
        cells(y),
        kind=kind,
        shortlist=None if shortlist is None else cells(shortlist),
        log_q=log_q,
        normalise=normalise,
        most_cells=most_cells,
    )
    expected = reference(*theirs, y, kind, shortlist, log_q)
    expected = expected / {"batch": len(x), "positives": max(1, int(y.sum())), "sum": 1}[normalise]
    (3 * loss).backward()
    (3 * expected).backward()
    torch.testing.assert_close(loss, expected)
    for a, e in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.grad, e.grad)


@pytest.mark.parametrize("kind", ["softmax", "logistic"])
@pytest.mark.parametrize(("operands", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_lower_precision_stays_near(kind, operands, tolerance):
    x, w, b, y = problem(5, n=64, pool=300, dim=32)
    w /= 5
    expected = reference(x, w, b, y, kind, None, None) / len(x)
    want = torch.autograd.grad(
        reference(*(grads := [t.requires_grad_() for t in (x, w, b)]), y, kind, None, None), grads
    )
    ours = [t.detach().float().requires_grad_() for t in (x, w, b)]
    loss = pooled_loss(*ours, cells(y), kind=kind, operands=operands)
    loss.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=tolerance)
    for a, e in zip(ours, want, strict=True):
        assert a.grad.dtype == torch.float32
        assert (a.grad - e / len(x)).norm() <= tolerance * e.norm() / len(x)


def test_softmax_by_hand():
    x = torch.tensor([[1.0]], dtype=torch.float64)
    w = torch.log(torch.tensor([[1.0], [2.0], [5.0]], dtype=torch.float64)).requires_grad_()
    loss = pooled_loss(x, w, None, Coordinates(torch.tensor([0, 0]), torch.tensor([0, 1])))
    loss.backward()
    assert loss.item() == pytest.approx(-0.5 * (np.log(1 / 8) + np.log(2 / 8)))
    assert w.grad.ravel().tolist() == pytest.approx([1 / 8 - 1 / 2, 2 / 8 - 1 / 2, 5 / 8])


def test_given_targets_take_the_place_of_even_ones():
    x, w, b, _ = problem(2, n=3, pool=4)
    target = torch.tensor([[0.7, 0.3, 0, 0], [0, 0, 0.5, 0], [0, 0, 0, 0]], dtype=torch.float64)
    rows, columns = torch.nonzero(target, as_tuple=True)
    positives = Coordinates(rows, columns, target[rows, columns])
    w = w.requires_grad_()
    soft = -(target * torch.log_softmax(x @ w.T + b, 1)).sum()
    loss = pooled_loss(x, w, b, positives, normalise="sum")
    torch.testing.assert_close(loss, soft)
    torch.testing.assert_close(*(torch.autograd.grad(value, w)[0] for value in (loss, soft)))
    logits = x @ w.T + b
    logistic = torch.nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="sum")
    loss = pooled_loss(x, w, b, positives, kind="logistic", normalise="sum")
    torch.testing.assert_close(loss, logistic)
    torch.testing.assert_close(*(torch.autograd.grad(value, w)[0] for value in (loss, logistic)))


def test_extreme_logits_stay_finite():
    x = torch.tensor([[1000.0], [-1000.0]])
    w = torch.ones(3, 1, requires_grad=True)
    y = Coordinates(torch.tensor([0, 1]), torch.tensor([1, 2]))
    for kind in ("softmax", "logistic"):
        for operands in (torch.float32, torch.bfloat16):
            loss = pooled_loss(x, w, None, y, kind=kind, operands=operands)
            loss.backward()
            assert torch.isfinite(loss)
            assert torch.isfinite(w.grad).all()


def test_no_gradient_is_made_where_none_is_wanted():
    x, w, b, y = problem(1)
    assert not pooled_loss(x, w, b, cells(y)).requires_grad
    w = w.requires_grad_()
    pooled_loss(x, w, b, cells(y)).backward()
    assert w.grad is not None
    assert x.grad is None


def test_a_bias_of_one_column_will_do():
    x, w, b, y = problem(1)
    b = b[:, None].requires_grad_()
    pooled_loss(x, w, b, cells(y)).backward()
    assert b.grad.shape == b.shape


@pytest.mark.parametrize("kind", ["softmax", "logistic"])
def test_excluded_cells_do_not_count(kind):
    """The loss of a text with a label excluded is that against the other labels alone, and its vector stays."""
    x, w, b, y = problem(3)
    out = torch.zeros_like(y)
    out[2, 4], out[5, 0] = True, True
    y &= ~out
    w.requires_grad_(True)
    loss = pooled_loss(x, w, b, cells(y), kind=kind, normalise="sum", excluded=cells(out), most_cells=30)
    expected = reference(x, w.detach(), b, y, kind, ~out, None)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-9)
    (slope,) = torch.autograd.grad(loss, w)
    v = w.detach().clone().requires_grad_(True)
    (wanted,) = torch.autograd.grad(reference(x, v, b, y, kind, ~out, None), v)
    torch.testing.assert_close(slope, wanted)

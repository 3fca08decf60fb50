"""The chunked loss is the loss: value and gradients, whatever the chunk; memory does not grow with texts x labels."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from deepxc.modules.classifiers.one_vs_all import OneVsAll
from deepxc.training.chunked import chunked_logistic_loss
from deepxc.training.losses import Coordinates, pooled_loss
from deepxc.training.pooled import loss_over_all


def task(n, n_labels, dim, seed, kind=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    draw = lambda *size: torch.randn(*size, generator=generator, dtype=kind).requires_grad_()  # noqa: E731
    dense = torch.rand(n, n_labels, generator=generator) < 0.2
    return draw(n, dim), draw(n_labels, dim), draw(n_labels), Coordinates(*torch.nonzero(dense, as_tuple=True)), dense


@given(st.integers(1, 6), st.integers(1, 40), st.integers(1, 12), st.integers(0, 99), st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_chunk_gives_the_unchunked_loss(n, n_labels, chunk, seed, with_bias):
    x, w, b, positives, dense = task(n, n_labels, 3, seed)
    bias = b if with_bias else None
    order = torch.randperm(len(positives.rows))
    shuffled = Coordinates(positives.rows[order], positives.columns[order])
    logits = x @ w.T + (b if with_bias else 0)
    plain = torch.nn.functional.binary_cross_entropy_with_logits(logits, dense.double(), reduction="sum") / n
    ours = chunked_logistic_loss(x, w, bias, shuffled, chunk=chunk)
    torch.testing.assert_close(ours, plain)
    wanted = [x, w, *([b] if with_bias else [])]
    for mine, theirs in zip(torch.autograd.grad(3 * ours, wanted), torch.autograd.grad(3 * plain, wanted), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_agrees_with_the_pooled_loss_in_half_precision():
    x, w, b, positives, _ = task(64, 500, 16, 1, torch.float32)
    ours = chunked_logistic_loss(x, w, b, positives, operands=torch.bfloat16, chunk=100)
    theirs = pooled_loss(x, w, b, positives, kind="logistic", operands=torch.bfloat16)
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)


def test_only_what_is_wanted_is_computed():
    x, w, b, positives, _ = task(4, 9, 3, 0)
    loss = chunked_logistic_loss(x, w.detach(), b.detach(), positives, chunk=4)
    loss.backward()
    assert x.grad is not None
    assert w.grad is None


def test_the_largest_array_is_a_chunk(monkeypatch):
    """What is held is counted by recording every product's shape."""
    shapes = []
    mm = torch.mm
    monkeypatch.setattr(torch, "mm", lambda a, b: (shapes.append((a.shape[0], b.shape[1])), mm(a, b))[1])
    n, n_labels, dim = 512, 40_000, 4
    x, w, b, _, _ = task(2, 2, dim, 0, torch.float32)
    x, w, b = torch.randn(n, dim, requires_grad=True), torch.zeros(n_labels, dim), torch.zeros(n_labels)
    cells = Coordinates(torch.arange(n), torch.arange(n))
    loss = chunked_logistic_loss(x, w, b, cells, chunk=1000)
    assert loss.item() == pytest.approx(n_labels * np.log(2), rel=1e-2)
    assert max(rows * columns for rows, columns in shapes) == n * 1000


@pytest.mark.parametrize("kind", ["softmax", "logistic"])
def test_the_whole_table_gets_its_gradient(kind):
    rng = np.random.default_rng(0)
    Y = sparse.csr_matrix((rng.random((7, 11)) < 0.3).astype(np.float32))
    rows = np.array([5, 0, 3])
    classifier = OneVsAll()
    classifier.start(11, 4, 0)
    features = torch.randn(3, 4, requires_grad=True)
    loss_over_all(features, classifier, Y, rows, kind).backward()
    touched, gradient = classifier.table.take_gradient()
    assert touched.tolist() == list(range(11))
    weight = classifier.table.weight.clone().requires_grad_()
    logits = features.detach() @ weight.T
    target = torch.from_numpy(Y[rows].toarray())
    if kind == "logistic":
        plain = torch.nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="sum") / 3
    else:
        share = target / target.sum(1, keepdim=True).clamp_min(1)
        plain = -(share * torch.log_softmax(logits, 1)).sum() / 3
    plain.backward()
    torch.testing.assert_close(gradient, weight.grad, rtol=0.05, atol=0.01)  # products may be in bfloat16

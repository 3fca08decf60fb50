"""The pooled learner's three losses against a plain loop."""

import numpy as np
import pytest
import torch
from scipy import sparse

from deepxc.modules.classifiers.one_vs_all import OneVsAll
from deepxc.modules.encoders.dense import DenseInputs
from deepxc.training.batches import Batch
from deepxc.training.pooled import AsGiven, PooledLearner

X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], np.float32)
W = np.array([[1.0, -1.0], [0.5, 2.0], [-1.0, 0.0]], np.float32)
Y = np.array([[1, 1, 0], [0, 0, 1], [0, 0, 0]], np.float32)


def learner(loss):
    classifier = OneVsAll(bias=False)
    classifier.start(3, 2, 0, W)
    return PooledLearner(AsGiven(), torch.nn.Identity(), classifier, DenseInputs(X), Y=sparse.csr_matrix(Y), loss=loss)


@pytest.mark.parametrize(
    ("loss", "targets", "over"),
    [("softmax", Y / np.maximum(Y.sum(axis=1, keepdims=True), 1), 3), ("counts", Y, Y.sum())],
)
def test_softmax_with_shared_weight_and_with_a_weight_a_label(loss, targets, over):
    logits = X @ W.T
    log_shares = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    found = learner(loss).loss(Batch(np.arange(3), np.random.default_rng(0), 0, 0)).item()
    assert found == pytest.approx(-(targets * log_shares).sum() / over, rel=0.02)  # products may be in bfloat16


def test_what_moves_at_which_rate():
    moving = learner("softmax")
    groups = moving.groups(0.1, bias_rate=0.3, encoder_rate=0.5)
    assert [(group.rate, len(group.tables), len(group.parameters)) for group in groups] == [(0.1, 1, 0)]


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_a_text_is_no_negative_of_itself(loss):
    plain, aware = learner(loss), learner(loss)
    aware.own = np.array([2, -1, 0])
    batch = Batch(np.arange(2), np.random.default_rng(0), 0, 0)
    logits = X @ W.T
    found = aware.loss(batch).item()
    if loss == "softmax":  # text 0 is label 2: its softmax is over labels 0 and 1
        first = -np.mean(logits[0, :2] - np.log(np.exp(logits[0, :2]).sum()))
        second = -(logits[1, 2] - np.log(np.exp(logits[1]).sum()))
    else:
        first = np.log1p(np.exp(-logits[0, :2])).sum()
        second = np.log1p(np.exp(logits[1, :2])).sum() + np.log1p(np.exp(-logits[1, 2]))
    assert found == pytest.approx((first + second) / 2, rel=0.02)
    assert plain.loss(batch).item() > found

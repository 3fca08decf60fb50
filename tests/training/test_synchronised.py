"""The learner with two heads: gradients stopped exactly while detached, candidates that hold every positive."""

import numpy as np
import pytest
import torch
from scipy import sparse

from deepxc.modules.classifiers.one_vs_all import OneVsAll
from deepxc.modules.encoders.dense import DenseInputs
from deepxc.modules.shortlists.label_groups import LabelGroups, best_columns
from deepxc.modules.transfers.residual import SpectralResidual
from deepxc.training.batches import Batch
from deepxc.training.pools import PoolSampler
from deepxc.training.synchronised import Head, SynchronisedLearner

N, DIM, LABELS, CLUSTERS, TOP = 12, 6, 20, 5, 2


@pytest.fixture
def rng():
    return np.random.default_rng(0)


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(DIM))

    def forward(self, batch):
        return torch.from_numpy(batch) @ self.weight


def head(size, seed, *, residual=True):
    classifier = OneVsAll()
    classifier.start(size, DIM, seed)
    return Head(SpectralResidual(DIM, dropout=0.0, seed=seed) if residual else torch.nn.Identity(), classifier)


def learner_of(rng, *, residual=True, **settings):
    Y = sparse.csr_matrix((rng.random((N, LABELS)) < 0.15).astype(np.float32))
    groups = LabelGroups(np.arange(LABELS) % CLUSTERS, CLUSTERS)
    return SynchronisedLearner(
        Linear(),
        head(CLUSTERS, 1, residual=residual),
        head(LABELS, 2, residual=residual),
        DenseInputs(rng.standard_normal((N, DIM)).astype(np.float32)),
        Y,
        groups,
        top=TOP,
        sampler=PoolSampler(Y),
        **settings,
    ), Y


def batch(epoch=0, number=0):
    return Batch(np.arange(N), np.random.default_rng(7), epoch, number)


def encoder_gradient(learner, at):
    learner.encoder.weight.grad = None
    learner.loss(at).backward()
    for part in learner.modules():
        if hasattr(part, "take_gradient"):
            part.take_gradient()
    return learner.encoder.weight.grad.clone()


def test_while_detached_the_encoder_learns_from_clusters_alone(rng):
    """Its gradient is that of the clusters' loss to the bit; one step later it is not."""
    learner, _ = learner_of(rng, detached=3, steps=2)
    learner.eval()
    detached = encoder_gradient(learner, batch(epoch=1, number=0))  # the third step
    attached = encoder_gradient(learner, batch(epoch=1, number=1))
    with torch.no_grad():
        learner.extreme.classifier.table.weight.mul_(100)
    assert torch.equal(encoder_gradient(learner, batch(epoch=0, number=1)), detached)
    assert not torch.allclose(attached, detached)


def test_while_detached_the_labels_head_still_learns(rng):
    learner, _ = learner_of(rng, detached=10)
    learner.loss(batch()).backward()
    assert learner.extreme.block.weight.grad.abs().sum() > 0
    touched, gradient = learner.extreme.classifier.table.take_gradient()
    assert len(touched) > 0
    assert gradient.abs().sum() > 0


def test_candidates_are_every_positive_and_the_labels_of_the_best_clusters(rng):
    learner, Y = learner_of(rng)
    final = learner.meta.block(learner.encoder(learner.inputs.take(np.arange(N))))
    pool = learner.pool(final, batch())
    labels = pool.labels.numpy()
    best = best_columns(learner.meta.scores(final).numpy(), TOP)
    mine = {row: set() for row in range(N)}
    for row, column in zip(pool.shortlist.rows.tolist(), pool.shortlist.columns.tolist(), strict=True):
        mine[row].add(int(labels[column]))
    for row in range(N):
        assert mine[row] == {label for label in range(LABELS) if label % CLUSTERS in best[row]}
        positive = pool.positives.columns[pool.positives.rows == row]
        assert set(labels[positive.numpy()].tolist()) == set(Y[row].indices.tolist())


def test_the_loss_is_the_sum_of_two_cross_entropies_by_hand(rng):
    learner, Y = learner_of(rng)
    learner.eval()
    ours = learner.loss(batch()).item()
    features = learner.encoder(learner.inputs.take(np.arange(N)))
    of_clusters = learner.meta.scores(learner.meta.block(features)).double()
    of_labels = learner.extreme.scores(learner.extreme.block(features)).double()
    dense = torch.from_numpy(Y.toarray() > 0)
    cluster = torch.arange(LABELS) % CLUSTERS
    truth = torch.stack([dense[:, cluster == c].any(1) for c in range(CLUSTERS)], 1)
    best = torch.topk(of_clusters, TOP).indices
    listed = torch.stack([torch.isin(cluster, row) for row in best]) | dense
    signed = lambda logits, positive: torch.nn.functional.softplus(torch.where(positive, -logits, logits))  # noqa: E731
    expected = signed(of_clusters, truth).sum() / N + (signed(of_labels, dense) * listed).sum() / N
    assert ours == pytest.approx(expected.item(), rel=0.02)  # products may be in bfloat16


def test_a_head_is_scored_alike_with_and_without_gradients(rng):
    learner, _ = learner_of(rng, residual=False)
    final = torch.randn(3, DIM)
    classifier = learner.meta.classifier
    expected = final @ classifier.table.weight.T + classifier.bias.weight[:, 0]
    torch.testing.assert_close(learner.meta.scores(final), expected, rtol=0.02, atol=0.02)


def test_groups_list_each_label_once_and_take_new_ones():
    groups = LabelGroups(np.array([1, 0, -1, 1, 1]), 3)
    assert groups.table.tolist() == [[1, -1, -1], [0, 3, 4], [-1, -1, -1]]
    assert groups.candidates(np.array([[2, 1], [0, 0]])).tolist() == [[-1, -1, -1, 0, 3, 4], [1, -1, -1, 1, -1, -1]]
    assert groups.with_labels(np.array([2])).table[2].tolist() == [5, -1, -1]
    Y = sparse.csr_matrix(np.array([[1, 0, 1, 0, 1], [0, 1, 0, 0, 0]], np.float32))
    assert groups.targets(Y).toarray().tolist() == [[0, 1, 0], [1, 0, 0]]


def test_best_columns_are_the_highest():
    scores = np.array([[0.1, 3.0, 2.0, -1.0]])
    assert set(best_columns(scores, 2)[0].tolist()) == {1, 2}
    assert best_columns(scores, 9).tolist() == [[0, 1, 2, 3]]

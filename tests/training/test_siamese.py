"""The learners of DEXA: what a batch is compared with, against losses worked from plain loops."""

import numpy as np
import pytest
from scipy import sparse

from deepxc.modules.auxiliary import AuxiliaryVectors, LabelGroups
from deepxc.modules.classifiers.one_vs_all import OneVsAll
from deepxc.modules.encoders.dense import DenseInputs
from deepxc.training.batches import Batch
from deepxc.training.memory_bank import ClusterSchedule, MemoryBank
from deepxc.training.pooled import AsGiven
from deepxc.training.siamese import PositiveCells, SiameseLearner, SiameseTask, TripletLearner


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    cells = rng.random((12, 9)) < 0.3
    cells[np.arange(12), np.arange(12) % 9] = True
    return rng.normal(size=(21, 6)).astype(np.float32), sparse.csr_matrix(cells.astype(np.float32))


def batch(rows, seed=0):
    return Batch(np.array(rows), np.random.default_rng(seed), 0, 0)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_positive_cells(data):
    _, Y = data
    cells = PositiveCells(Y)
    rows, labels = np.array([3, 0, 7, 3]), np.array([1, 4, 8])
    np.testing.assert_array_equal(cells.among(rows, labels).numpy(), Y[rows][:, labels].toarray() > 0)
    drawn = np.stack([cells.one_of_each(rows, np.random.default_rng(s)) for s in range(200)])
    for i, row in enumerate(rows):
        assert set(drawn[:, i]) == set(Y[row].indices)


@pytest.mark.parametrize("with_auxiliary", [False, True])
def test_triplets_of_a_batch(data, with_auxiliary):
    features, Y = data
    auxiliary = None
    if with_auxiliary:
        auxiliary = AuxiliaryVectors(LabelGroups(np.arange(9, dtype=np.int32) % 4, 4), 6, seed=3)
    learner = SiameseLearner(AsGiven(), DenseInputs(features), Y, auxiliary, task=SiameseTask(hardest=4))
    rows = [2, 5, 9, 11]
    loss = learner.loss(batch(rows)).item()
    own = PositiveCells(Y).one_of_each(np.array(rows), np.random.default_rng(0))
    labels = np.unique(own)
    names = unit(features[12:])
    if auxiliary is not None:
        names = unit(names + auxiliary.table.weight.numpy()[np.arange(9) % 4])
    total = 0.0
    for row, positive in zip(rows, own, strict=True):
        x = unit(features[[row]])[0]
        negatives = sorted((names[m] @ x for m in labels if Y[row, m] == 0), reverse=True)[:4]
        hinges = [max(0.0, s - names[positive] @ x + 0.3) for s in negatives]
        hard = [(s, h) for s, h in zip(negatives, hinges, strict=True) if h > 0]
        weights = np.exp([s / 0.1 for s, _ in hard])
        total += sum(w * h for w, (_, h) in zip(weights / weights.sum(), hard, strict=True)) if hard else 0.0
    assert loss == pytest.approx(total / (len(rows) * min(4, len(labels))), rel=1e-5)


def test_softmax_over_the_pool(data):
    features, Y = data
    learner = SiameseLearner(AsGiven(), DenseInputs(features), Y, task=SiameseTask("softmax", scale=7.0))
    rows = np.array([1, 4, 6])
    loss = learner.loss(batch(rows)).item()
    pool = np.unique(Y[rows].indices)
    logits = 7 * unit(features[rows]) @ unit(features[12:])[pool].T
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    truth = Y[rows][:, pool].toarray()
    expected = -(log_p * truth / truth.sum(axis=1, keepdims=True)).sum(axis=1).mean()
    assert loss == pytest.approx(expected, rel=0.02)  # products may be in bfloat16


@pytest.mark.parametrize("loss", ["softmax", "triplet", "in_batch"])
def test_a_document_is_not_pushed_away_from_itself(data, loss):
    """A label of the batch that is the text itself would be its hardest negative; instead it does not count."""
    features, Y = data
    rows = [2, 5, 9, 11]
    sampled = PositiveCells(Y).one_of_each(np.array(rows), np.random.default_rng(0))
    own = np.full(12, -1)
    own[2] = next(label for label in np.unique(sampled) if Y[2, label] == 0)
    features[2] = features[12 + own[2]]
    task = SiameseTask(loss, margin=5.0, hardest=9)
    told, untold = (
        SiameseLearner(AsGiven(), DenseInputs(features), Y, task=task, own=given).loss(batch(rows)).item()
        for given in (own, None)
    )
    assert told < untold


def test_hard_labels_join_the_batch(data):
    features, Y = data
    hard = np.full((12, 2), -1, np.int32)
    hard[3, 0] = next(label for label in range(9) if Y[3, label] == 0)
    rows = [3]
    alone = SiameseLearner(AsGiven(), DenseInputs(features), Y).loss(batch(rows)).item()
    joined = SiameseLearner(AsGiven(), DenseInputs(features), Y, task=SiameseTask(margin=3.0), hard=hard)
    assert alone == 0  # a text alone meets no label but its own
    assert joined.loss(batch(rows)).item() > 0


def test_the_bank_notes_what_comes_by(data):
    features, Y = data
    bank = MemoryBank(12, 6, ClusterSchedule(first=1))
    learner = SiameseLearner(AsGiven(), DenseInputs(features), Y, bank=bank)
    learner.train()
    learner.loss(batch([4, 8]))
    np.testing.assert_allclose(bank.noted[[4, 8]].float(), unit(features[[4, 8]]), atol=2e-3)
    assert (bank.noted[[0, 11]] == 0).all()


def test_classifiers_of_unit_length(data):
    """Lengths of features and vectors change nothing."""
    features, Y = data
    found = []
    for scale in (1, 9):
        classifier = OneVsAll(bias=False)
        classifier.start(9, 6, 0, scale * features[12:])
        learner = TripletLearner(AsGiven(), classifier, DenseInputs(scale * features[:12]), Y, dropout=0.0)
        found.append(learner.loss(batch([0, 3, 7])).item())
    assert found[0] == pytest.approx(found[1], rel=1e-5)
    assert found[0] > 0

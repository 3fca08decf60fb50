"""Astec and its parts: equations by hand, far above chance, the same after save and load, parts that can be swapped."""

import numpy as np
import pytest
import torch
from scipy import sparse

from deepxc import load
from deepxc.evaluate.scoring import score_model
from deepxc.modules.classifiers.one_vs_all import OneVsAll
from deepxc.modules.encoders.dense import DenseInputs
from deepxc.modules.encoders.xml_cnn import XmlCNN
from deepxc.modules.shortlists.centroids import Centroids
from deepxc.modules.surrogates.label_selection import LabelSelection
from deepxc.systems import shortlist_answers as answers
from deepxc.systems.astec import Astec
from deepxc.training.batches import Batch
from deepxc.training.pooled import PooledLearner
from deepxc.training.pools import PoolSampler

SMALL = {"dim": 32, "epochs": 2, "batch": 128}
PAPER = {
    **SMALL,
    "preset": "paper",
    "surrogate_epochs": 2,
    "hard": 30,
    "random": 10,
    "rate": 0.02,
    "surrogate_rate": 0.02,
}


@pytest.fixture(scope="module")
def fast(zipf):
    return Astec(**SMALL).fit(zipf.train)


@pytest.fixture(scope="module")
def paper(zipf):
    return Astec(**PAPER).fit(zipf.train)


def chance(zipf):
    """P@1 of always answering the most frequent label."""
    return 100 * zipf.test.Y[:, np.asarray(zipf.train.Y.sum(axis=0)).argmax()].mean()


@pytest.mark.parametrize("name", ["fast", "paper"])
def test_learns_a_zipf_label_space(name, zipf, request):
    model = request.getfixturevalue(name)
    assert score_model(model, zipf.test)["P@1"] > 2 * chance(zipf)


@pytest.mark.parametrize("name", ["fast", "paper"])
def test_saved_and_loaded_answers_alike(name, zipf, request, tmp_path):
    model = request.getfixturevalue(name)
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    texts = [*list(zipf.test.texts)[:30], "", "unheard of"]
    for before, after in zip(model.predict_topk(texts, 5), back.predict_topk(texts, 5), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("name", ["fast", "paper"])
def test_batch_equals_single(name, zipf, request):
    model = request.getfixturevalue(name)
    texts = list(zipf.test.texts)[:20]
    together = model.predict_topk(texts, 5)
    single = [model.predict_topk([text], 5) for text in texts]
    np.testing.assert_allclose(together.scores, np.vstack([top.scores for top in single]), rtol=1e-4)
    same = together.ids == np.vstack([top.ids for top in single])
    assert same.mean() > 0.97  # a tie in the last bit may be broken either way


@pytest.mark.parametrize("name", ["fast", "paper"])
def test_candidates_and_exclude(name, zipf, request):
    model = request.getfixturevalue(name)
    texts = list(zipf.test.texts)[:5]
    few = model.predict_topk(texts, 4, candidates=[3, 7, 11])
    assert set(few.ids.ravel()) <= {3, 7, 11, -1}
    best = model.predict_topk(texts, 1).ids[:, 0].tolist()
    assert not set(model.predict_topk(texts, 5, exclude=best).ids.ravel()) & set(best)


def test_same_seed_same_model(zipf):
    one, two = (Astec(**{**SMALL, "epochs": 1}, seed=4).fit(zipf.train) for _ in range(2))
    np.testing.assert_array_equal(one.members_[0].vectors, two.members_[0].vectors)


def test_theorem_1a_holds_on_trained_weights(paper, zipf):
    """|x - v| <= lambda |v| for every text (DeepXML, Theorem 1a)."""
    member = paper.members_[0]
    v = member.intermediate(member.encoder.read(list(zipf.test.texts)), 1)
    x = member.final(v)[:, :-1]
    assert (np.linalg.norm(x - v, axis=1) <= member.block.bound * np.linalg.norm(v, axis=1) * (1 + 1e-5)).all()


def test_token_vectors_stay_where_module_one_left_them(zipf):
    short = {**PAPER, "reranker": False}
    once = Astec(**{**short, "epochs": 1}).fit(zipf.train)
    longer = Astec(**{**short, "epochs": 2}).fit(zipf.train)
    np.testing.assert_array_equal(*(m.members_[0].encoder.state()["table.weight"] for m in (once, longer)))
    assert not np.array_equal(once.members_[0].vectors, longer.members_[0].vectors)


def test_the_fused_score_of_the_paper_by_hand():
    # sigma(0) = 1/2 and sigma(ln 3) = 3/4: alpha 0.2 gives 0.2 * 3/4 + 0.8 * 1/2 = 0.55 for the first label
    part = answers._Part(np.array([[4, 2]]), np.array([[0.75, 0.5]]), np.array([[0.5, 0.75]]))
    np.testing.assert_allclose(answers._sigmoid(np.array([0.0, np.log(3)])), [0.5, 0.75])
    fused = answers._fuse([part], 0.2)
    np.testing.assert_allclose(fused[0], [[0.55, 0.7]])
    ids, scores = answers._summed([part], fused, 3, None)
    assert ids.tolist() == [[2, 4, -1]]
    np.testing.assert_allclose(scores[0, :2], [0.7, 0.55])


def test_an_ensemble_gives_the_mean_and_absent_labels_count_nothing():
    one = answers._Part(np.array([[0, 1]]), np.array([[0.8, 0.4]]), np.array([[0.8, 0.4]]))
    two = answers._Part(np.array([[1, 2]]), np.array([[0.6, 0.2]]), np.array([[0.6, 0.2]]))
    ids, scores = answers._summed([one, two], answers._fuse([one, two], 0.5), 3, None)
    assert ids.tolist() == [[1, 0, 2]]
    np.testing.assert_allclose(scores, [[0.5, 0.4, 0.1]], rtol=1e-6)


def test_the_module_iv_loss_by_hand():
    """Sum over a text's positives and own shortlist of log(1 + exp(-y w.x)), divided by the batch size."""
    x = np.array([[1.0, 0.0], [0.0, 2.0]], np.float32)
    w = np.array([[1.0, 0], [0, 1], [1, 1], [-1, 2], [5, 5]], np.float32)
    Y = sparse.csr_matrix(np.array([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]], np.float32))
    hard = np.array([[2, 3], [3, -1]], np.int32)
    classifier = OneVsAll(bias=False)
    classifier.start(5, 2, 0, w)
    learner = PooledLearner(
        torch.nn.Identity(),
        _ToTensor(),
        classifier,
        DenseInputs(x),
        sampler=PoolSampler(Y),
        hard=hard,
        loss="logistic",
        own_shortlists=True,
    )
    loss = learner.loss(Batch(np.array([0, 1]), np.random.default_rng(0), 0, 0)).item()
    log1pexp = lambda z: np.log1p(np.exp(z))  # noqa: E731
    # text 0: positive label 0 (score 1), shortlist 2 (1) and 3 (-1); text 1: positive 1 (2), shortlist 3 (4)
    expected = (log1pexp(-1) + log1pexp(1) + log1pexp(-1) + log1pexp(-2) + log1pexp(4)) / 2
    assert loss == pytest.approx(expected, rel=0.02)  # products may be in bfloat16


class _ToTensor(torch.nn.Module):
    def forward(self, batch):
        return torch.from_numpy(batch)


def test_parts_can_be_swapped(zipf):
    few = zipf.train.take(np.arange(600))
    encoder = XmlCNN(dim=16, word_dim=16, filters=4, length=8)
    model = Astec(
        **{**PAPER, "epochs": 1, "surrogate_epochs": 1, "reranker": False},
        encoder=encoder,
        surrogate=LabelSelection(count=20),
        shortlister=Centroids(),
    ).fit(few)
    assert model.predict_topk(["a text"], 3).ids.shape == (1, 3)
    assert type(model.members_[0].encoder) is XmlCNN


def test_small_problems_work(fruit):
    model = Astec(epochs=5, dim=16).fit(*fruit)
    assert model.predict_topk(["apple crumble"], 1).names == [["apple"]]


def test_an_ensemble_has_its_members(zipf, tmp_path):
    model = Astec(**{**SMALL, "epochs": 1}, members=2).fit(zipf.train.take(np.arange(500)))
    assert len(model.members_) == 2
    assert not np.array_equal(model.members_[0].vectors, model.members_[1].vectors)
    model.save(tmp_path / "m")
    assert len(load(tmp_path / "m").members_) == 2

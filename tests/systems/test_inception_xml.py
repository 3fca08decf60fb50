"""InceptionXML and InceptionXML+: above chance, alike after saving, ranked from their shortlists, parts that swap."""

import numpy as np
import pytest
import torch

from deepxc import Astec, InceptionXML, InceptionXMLPlus, load
from deepxc.errors import UserError
from deepxc.evaluate.scoring import score_model
from deepxc.modules.encoders import InceptionEncoder, Joint, TokenBag
from deepxc.systems.inception_settings import fan_out
from deepxc.text.stop_words import ENGLISH, stop_words_of

TINY = {"word_dim": 64, "channels": 8, "length": 8, "batch": 64}
FAST = {**TINY, "bag": 32, "epochs": 2}
LESS_DROPPED = {"dropout": 0.2, "word_dropout": 0.1, "conv_dropout": 0.1}
PAPER = {**TINY, **LESS_DROPPED, "preset": "paper", "epochs": 20, "rate": 0.02}
PLUS = {"clusters": 32, "shortlist": 6}
MODELS = {
    "base": lambda: InceptionXML(**FAST, threads=1),
    "base-paper": lambda: InceptionXML(**PAPER, threads=1),
    "plus": lambda: InceptionXMLPlus(**FAST, **PLUS, threads=1),
    "plus-paper": lambda: InceptionXMLPlus(**PAPER, **PLUS, threads=1),
}


@pytest.fixture(scope="module")
def models(zipf):
    made = {}

    def model(name):
        if name not in made:
            made[name] = MODELS[name]().fit(zipf.train)
        return made[name]

    return model


def chance(zipf):
    """P@1 of always answering the most frequent label."""
    return 100 * zipf.test.Y[:, np.asarray(zipf.train.Y.sum(axis=0)).argmax()].mean()


@pytest.mark.parametrize("name", MODELS)
def test_learns_a_zipf_label_space(name, zipf, models):
    assert score_model(models(name), zipf.test)["P@1"] > 1.5 * chance(zipf)


@pytest.mark.parametrize("name", MODELS)
def test_saved_and_loaded_answers_alike(name, zipf, models, tmp_path):
    models(name).save(tmp_path / "m")
    texts = [*list(zipf.test.texts)[:30], "", "unheard of", "word " * 500]
    back = load(tmp_path / "m")
    for before, after in zip(models(name).predict_topk(texts, 5), back.predict_topk(texts, 5), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("name", MODELS)
def test_batch_equals_single(name, zipf, models):
    texts = list(zipf.test.texts)[:20]
    together = models(name).predict_topk(texts, 5)
    single = [models(name).predict_topk([text], 5) for text in texts]
    np.testing.assert_allclose(together.scores, np.vstack([top.scores for top in single]), rtol=2e-3, atol=1e-4)
    assert (together.ids == np.vstack([top.ids for top in single])).mean() > 0.97  # ties in the last bit


@pytest.mark.parametrize("name", MODELS)
def test_candidates_and_exclude(name, zipf, models):
    texts = list(zipf.test.texts)[:5]
    few = models(name).predict_topk(texts, 4, candidates=[3, 7, 11])
    assert set(few.ids.ravel()) <= {3, 7, 11, -1}
    assert (np.sort(few.ids, axis=1)[:, 1:] == [3, 7, 11]).all()
    best = models(name).predict_topk(texts, 1).ids[:, 0].tolist()
    assert not set(models(name).predict_topk(texts, 5, exclude=best).ids.ravel()) & set(best)


def test_answers_are_labels_of_the_best_clusters_ranked_by_the_extreme_head(zipf, models):
    model = models("plus-paper")
    member = model.members_[0]
    texts = list(zipf.test.texts)[:50]
    v = torch.from_numpy(member.intermediate(member.encoder.read(texts), 1))
    with torch.no_grad():
        of_clusters = member.meta_block(v).numpy() @ member.meta_vectors[:, :-1].T + member.meta_vectors[:, -1]
        of_labels = member.block(v).numpy() @ member.vectors[:, :-1].T + member.vectors[:, -1]
    top = model.predict_topk(texts, 5)
    for i in range(len(texts)):
        best = np.argsort(-of_clusters[i])[:6]
        listed = np.flatnonzero(np.isin(member.groups.clusters, best))
        ranked = listed[np.argsort(-of_labels[i][listed], kind="stable")][:5]
        assert top.ids[i].tolist() == ranked.tolist()


def test_new_labels_are_found_at_once(zipf):
    model = MODELS["plus"]().fit(zipf.train.take(np.arange(800)))
    text = "entirely " + " ".join(next(iter(zipf.test.texts)).split()[::-1])
    model.add_labels({"new": [text, text + " indeed"]})
    assert "new" in model.predict_topk([text], 5).names[0]


def test_parts_can_be_swapped(zipf):
    few = zipf.train.take(np.arange(300))
    short = {"epochs": 1, "surrogate_epochs": 1, "clusters": 16, "hard": 20, "batch": 64, "reranker": False}
    convolutions = InceptionEncoder(word_dim=64, channels=4, length=8)
    in_astec = Astec(preset="paper", **short, threads=1, encoder=convolutions).fit(few)
    assert type(in_astec.members_[0].encoder) is InceptionEncoder
    bag = InceptionXMLPlus(**{**PAPER, **PLUS, "epochs": 1}, threads=1, encoder=TokenBag(16)).fit(few)
    assert type(bag.members_[0].encoder) is TokenBag
    for model in (in_astec, bag):
        assert model.predict_topk(["a text"], 3).ids.shape == (1, 3)


def test_lightxml_s_framework_has_no_residual_heads(zipf):
    few = zipf.train.take(np.arange(300))
    model = InceptionXMLPlus(**{**PAPER, **PLUS, "preset": "lightxml", "epochs": 1}).fit(few)
    assert isinstance(model.members_[0].block, torch.nn.Identity)
    assert isinstance(model.members_[0].meta_block, torch.nn.Identity)


def test_fast_has_a_bag_beside_the_convolutions(models):
    encoder = models("base").members_[0].encoder
    assert isinstance(encoder, Joint)
    assert [type(part) for part in encoder.parts] == [TokenBag, InceptionEncoder]


def test_small_problems_work(fruit):
    for kind in (InceptionXML, InceptionXMLPlus):
        model = kind(epochs=5, bag=16, word_dim=64, channels=4).fit(*fruit)
        assert model.predict_topk(["apple crumble"], 1).names == [["apple"]]


def test_same_seed_same_model(zipf):
    few = zipf.train.take(np.arange(400))
    one, two = (InceptionXMLPlus(**{**FAST, **PLUS, "epochs": 1}, seed=4, threads=1).fit(few) for _ in range(2))
    np.testing.assert_array_equal(one.members_[0].vectors, two.members_[0].vectors)


def test_the_fan_out_of_the_paper():
    assert [fan_out(n, 0, 0) for n in (670_091, 352_072)] == [(65_536, 800), (32_768, 800)]
    assert fan_out(20, 0, 0) == (2, 2)
    assert fan_out(1_000, 64, 9) == (64, 9)


def test_stop_words_are_named_or_listed():
    assert stop_words_of("none") == []
    assert stop_words_of(["foo"]) == ["foo"]
    assert {"the", "of", "with"} <= set(stop_words_of("english")) == set(ENGLISH)
    with pytest.raises(UserError):
        stop_words_of("klingon")

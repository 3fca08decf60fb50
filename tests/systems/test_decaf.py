"""DECAF: learns, answers alike after saving, shares Module I, multiplies sigmoids, predicts what has only text."""

import numpy as np
import pytest
from scipy import sparse

from deepxc import Decaf, UserError, load
from deepxc.data.dataset import Split
from deepxc.data.label_space import LabelSpace
from deepxc.evaluate.scoring import score_model
from deepxc.systems import shortlist_answers as answers
from deepxc.systems.label_texts import read_with_labels
from deepxc.systems.presets import presets_of
from deepxc.systems.training_rows import listed_positives

SMALL = {"dim": 32, "epochs": 2, "batch": 128, "threads": 1}
PAPER = {
    **SMALL,
    "preset": "paper",
    "surrogate_epochs": 3,
    "shortlist_epochs": 3,
    "batch": 64,
    "members": 1,
    "rate": 0.02,
    "surrogate_rate": 0.02,
    "shortlist_rate": 0.02,
}
SHORT = {**PAPER, "epochs": 1, "surrogate_epochs": 1, "shortlist_epochs": 1}


@pytest.fixture(scope="module")
def fast(zipf):
    return Decaf(**SMALL).fit(zipf.train)


@pytest.fixture(scope="module")
def paper(zipf):
    return Decaf(**PAPER).fit(zipf.train)


@pytest.fixture(scope="module")
def few(zipf):
    return zipf.train.take(np.arange(400))


@pytest.fixture(scope="module")
def three(few):
    return Decaf(**{**SHORT, "members": 3}).fit(few)


def chance(zipf):
    """P@1 of always answering the most frequent label."""
    return 100 * zipf.test.Y[:, np.asarray(zipf.train.Y.sum(axis=0)).argmax()].mean()


@pytest.mark.parametrize("name", ["fast", "paper"])
def test_learns_a_zipf_label_space(name, zipf, request):
    assert score_model(request.getfixturevalue(name), zipf.test)["P@1"] > 2 * chance(zipf)


@pytest.mark.parametrize("name", ["fast", "paper", "three"])
def test_saved_and_loaded_answers_alike(name, zipf, request, tmp_path):
    model = request.getfixturevalue(name)
    model.save(tmp_path / "m")
    texts = [*list(zipf.test.texts)[:30], "", "unheard of"]
    for before, after in zip(model.predict_topk(texts, 5), load(tmp_path / "m").predict_topk(texts, 5), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("name", ["fast", "paper"])
def test_batch_equals_single(name, zipf, request):
    model = request.getfixturevalue(name)
    texts = list(zipf.test.texts)[:20]
    together = model.predict_topk(texts, 5)
    single = [model.predict_topk([text], 5) for text in texts]
    np.testing.assert_allclose(together.scores, np.vstack([top.scores for top in single]), rtol=1e-4)
    assert (together.ids == np.vstack([top.ids for top in single])).mean() > 0.97


@pytest.mark.parametrize("name", ["fast", "paper"])
def test_candidates_and_exclude(name, zipf, request):
    model = request.getfixturevalue(name)
    texts = list(zipf.test.texts)[:5]
    assert set(model.predict_topk(texts, 4, candidates=[3, 7, 11]).ids.ravel()) <= {3, 7, 11, -1}
    best = model.predict_topk(texts, 1).ids[:, 0].tolist()
    assert not set(model.predict_topk(texts, 5, exclude=best).ids.ravel()) & set(best)


def test_same_seed_same_model(few):
    one, two = (Decaf(**SHORT, seed=4).fit(few) for _ in range(2))
    np.testing.assert_array_equal(one.members_[0].vectors, two.members_[0].vectors)


def test_the_score_is_the_product_of_two_sigmoids_by_hand():
    # sigma(ln 3) = 3/4 and sigma(0) = 1/2, sigma(-ln 4) = 1/5
    classifier = answers._sigmoid(np.array([[np.log(3), 0.0]]))
    similarity = answers._sigmoid(np.array([[-np.log(4), np.log(3)]]))
    part = answers._Part(np.array([[4, 2]]), classifier, similarity)
    scores = answers._multiplied([part])
    np.testing.assert_allclose(scores[0], [[0.15, 0.375]])
    ids, best = answers._summed([part], scores, 3, None)
    assert ids.tolist() == [[2, 4, -1]]
    np.testing.assert_allclose(best[0, :2], [0.375, 0.15])


def test_answers_are_that_product_on_the_beams_labels(paper, zipf):
    texts = list(zipf.test.texts)[:6]
    member, kind = paper.members_[0], paper.answers_
    reading, beam = kind.readings[0], kind.shortlisters[0]
    seen = reading.final(reading.intermediate(reading.encoder.read(texts), 1))
    x = member.final(member.intermediate(member.encoder.read(texts), 1)).astype(np.float64)
    sigma = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    of_clusters = sigma(seen.astype(np.float64) @ beam._table.T.astype(np.float64))
    of_labels = sigma(x @ member.vectors.T.astype(np.float64)) * of_clusters[:, beam.clusters]
    top = paper.predict_topk(texts, 5)
    np.testing.assert_allclose(np.take_along_axis(of_labels, top.ids, 1), top.scores, rtol=2e-3)
    # no label outside the beam is answered
    best = np.argsort(-of_clusters, axis=1)[:, : beam.beam]
    assert all(set(beam.clusters[ids]) <= set(clusters) for ids, clusters in zip(top.ids, best, strict=True))


def test_golden_scores_from_the_models_own_numbers(fast, zipf):
    """The classifiers' voice in float64, from tokens to logits, against what the model's index finds."""
    texts = list(zipf.test.texts)[:4]
    member = fast.members_[0]
    tokens = member.encoder.read(texts).matrix.astype(np.float64)
    x = tokens @ member.encoder.table.weight.numpy().astype(np.float64)
    logits = x @ member.vectors[:, :-1].T.astype(np.float64) + member.vectors[:, -1]
    ids, scores = member.search(member.final(x.astype(np.float32)), 5, None, 1)
    np.testing.assert_allclose(np.sort(logits, axis=1)[:, ::-1][:, :5], scores, rtol=2e-3)
    np.testing.assert_allclose(np.take_along_axis(logits, ids, 1), scores, rtol=2e-3)


def test_the_beam_holds_enough_of_the_train_labels(paper, zipf):
    beam, reading = paper.answers_.shortlisters[0], paper.answers_.readings[0]
    seen = reading.final(reading.intermediate(reading.encoder.read(zipf.train.texts), 1))[:, :-1]
    reached = beam.recalls(seen, zipf.train.Y)
    assert reached[beam.beam - 1] >= 0.85
    assert beam.beam == 1 or reached[beam.beam - 2] < 0.85


def test_an_ensemble_starts_from_one_module_one(few, monkeypatch):
    seen = []
    original = Decaf._learn_one

    def noted(self, name, taught, *rest):
        seen.append((taught.table.weight.numpy().tobytes(), name))
        return original(self, name, taught, *rest)

    monkeypatch.setattr(Decaf, "_learn_one", noted)
    model = Decaf(**{**SHORT, "members": 2}).fit(few)
    assert seen[0][0] == seen[1][0]
    assert sum(name == "surrogate" for name in model.history_) == 1
    tables = [member.encoder.table.weight for member in model.members_]
    assert not np.array_equal(*tables)  # each trains on by itself


def test_lite_keeps_the_tokens_of_module_one(few):
    model = Decaf(**{**SHORT, "preset": "lite", "members": 2, "epochs": 2}).fit(few)
    longer = Decaf(**{**SHORT, "preset": "lite", "members": 1, "shortlist_epochs": 2}).fit(few)
    tables = [m.encoder.table.weight.numpy() for m in (*model.members_, *longer.members_)]
    for table in tables[1:]:
        np.testing.assert_array_equal(tables[0], table)
    assert not np.array_equal(model.members_[0].vectors, model.members_[1].vectors)


def test_missed_positives_are_left_out():
    Y = sparse.csr_matrix(np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]], np.float32))
    candidates = np.array([[2, 3, -1], [0, -1, -1], [3, 1, 0]], np.int32)
    assert listed_positives(Y, candidates).toarray().tolist() == [[0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]]


@pytest.mark.parametrize("preset", sorted(set(presets_of("decaf")) - {"paper", "fast", "best", "tree"}))
def test_every_ablation_runs(preset, few):
    model = Decaf(**{**SHORT, "preset": preset}).fit(few)
    assert (model.predict_topk(["a text"], 3).ids >= -1).all()
    assert (model.predict_topk(list(few.texts)[:5], 3).ids >= 0).all()


def zero_shot_split():
    """Labels that say a color and a thing; no train text has the last label, whose words others share."""
    colors, things = ["red", "green", "blue", "yellow"], ["apple", "pear", "house", "car", "boat"]
    names = [f"{color} {thing}" for color in colors for thing in things]
    rng = np.random.default_rng(0)
    rows = [i for i in range(len(names) - 1) for _ in range(6)]
    texts = [f"{names[i]} {rng.choice(['of', 'the', 'some'])} {rng.choice(['old', 'new'])}" for i in rows]
    Y = sparse.csr_matrix((np.ones(len(rows), np.float32), (range(len(rows)), rows)), shape=(len(rows), len(names)))
    return Split(LabelSpace(ids=names, names=names, texts=names), sparse.csr_matrix(Y), texts)


@pytest.mark.parametrize("preset", ["fast", "paper"])
def test_a_label_that_has_only_text_is_predicted_and_listed(preset, tmp_path):
    split = zero_shot_split()
    more = {"epochs": 8, "batch": 32} if preset == "fast" else {"epochs": 3, "recall": 1.0, "clusters": 8, "batch": 16}
    model = Decaf(**{**(PAPER if preset == "paper" else SMALL), "preset": preset, **more, "dim": 64}).fit(split)
    assert "yellow boat" in model.predict_topk(["the yellow boat"], 3).names[0]
    assert model.labels_.zero_shot == ["yellow boat"]
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").labels_.zero_shot == ["yellow boat"]


def test_label_texts_that_are_empty_duplicated_or_unheard_of():
    split = zero_shot_split()
    texts = list(split.labels.texts)
    texts[0], texts[1], texts[2], texts[-1] = "", texts[3], "zzz qqq", "   "
    labels = LabelSpace(ids=split.labels.ids, names=split.labels.names, texts=texts)
    odd = Split(labels, split.Y, split.texts)
    for settings in (SMALL, SHORT):
        model = Decaf(**{**settings, "min_df": 2, "batch": 32}).fit(odd)
        assert model.predict_topk(["red apple"], 3).ids.shape == (1, 3)
        assert np.isfinite(model.members_[0].vectors).all()
        assert model.labels_.zero_shot == []


def test_labels_without_text_are_refused_with_the_name_of_a_system_that_needs_none():
    texts = ["red apple", "green pear"]
    with pytest.raises(UserError, match="no text") as caught:
        Decaf().fit(texts, [[0], [1]])
    assert "Astec" in caught.value.remedy
    labels = LabelSpace(ids=["a", "b"], names=["a", "b"], texts=["", " "])
    blank = Split(labels, sparse.csr_matrix(np.eye(2, dtype=np.float32)), texts)
    with pytest.raises(UserError, match="Astec"):
        Decaf().fit(blank)


def test_features_of_labels_take_the_place_of_texts():
    rng = np.random.default_rng(0)
    main = rng.integers(6, size=200)
    own = sparse.csr_matrix(np.eye(6, 30, dtype=np.float32))
    noise = sparse.random(200, 30, 0.1, "csr", np.float32, rng)
    X = sparse.csr_matrix(own[main] + 0.3 * noise)
    Y = sparse.csr_matrix((np.ones(200, np.float32), (range(200), main)), shape=(200, 6))
    ids = [str(i) for i in range(6)]
    split = Split(LabelSpace(ids, ids, features=own), sparse.csr_matrix(Y), X=X)
    model = Decaf(**{**SMALL, "epochs": 4}).fit(split)
    assert model.score(split) > 0.9
    with pytest.raises(UserError, match="no features"):
        Decaf().fit(X, Y)


def test_texts_and_labels_are_read_by_one_vocabulary(few):
    model = Decaf(**SMALL)
    model.settings_ = Decaf(**SMALL).fit(few).settings_
    encoder = model._encoder(len(few))
    data = read_with_labels(encoder, few, label_rows=True)
    assert data.inputs.matrix.shape[1] == data.labels.matrix.shape[1] == len(encoder.table)
    assert data.labels.matrix.shape[0] == data.Y.shape[1]
    assert len(data.inputs) == data.Y.shape[0] > len(few)
    np.testing.assert_array_equal(data.labels.matrix.toarray(), encoder.read(few.labels.texts).matrix.toarray())
    np.testing.assert_array_equal(data.inputs.matrix[: len(few)].toarray(), encoder.read(few.texts).matrix.toarray())


def test_small_problems_work(fruit):
    model = Decaf(epochs=5, dim=16, threads=1).fit(*fruit)
    assert model.predict_topk(["apple crumble"], 1).names == [["apple"]]


def test_new_labels_join_a_model_of_products(paper, tmp_path):
    paper.save(tmp_path / "m")
    model = load(tmp_path / "m")
    model.add_labels({"fresh": ["wholly unknown words", "baba fuba"]})
    assert model.predict_topk(["baba fuba"], 3).ids.shape == (1, 3)
    assert len(model.labels_) == len(paper.labels_) + 1


def test_new_labels_are_found_by_their_texts(fast, tmp_path):
    fast.save(tmp_path / "m")
    model = load(tmp_path / "m")
    model.add_labels({"fresh": ["baba fuba duba kuba", "duba kuba"]})
    assert "fresh" in model.predict_topk(["baba fuba duba kuba"], 3).names[0]
    model.save(tmp_path / "n")
    again = load(tmp_path / "n").predict_topk(["baba fuba duba kuba"], 3)
    assert again.names == model.predict_topk(["baba fuba duba kuba"], 3).names


def test_the_nearest_label_texts_speak_where_labels_are_documents():
    """Each document's labels are its neighbours on a ring of words; label texts are the documents' own."""
    n = 60
    texts = [f"w{i} w{(i + 1) % n} w{(i + 2) % n}" for i in range(n)]
    rows = np.repeat(np.arange(n), 2)
    labels = np.column_stack(((np.arange(n) + 1) % n, (np.arange(n) - 1) % n)).ravel()
    Y = sparse.csr_matrix((np.ones(2 * n, np.float32), (rows, labels)), shape=(n, n))
    ids = [str(i) for i in range(n)]
    space = LabelSpace(ids=ids, names=ids, texts=texts)
    model = Decaf(**{**SMALL, "batch": 32}).fit(Split(space, sparse.csr_matrix(Y), texts))
    assert model.documents_
    assert model.answers_.nearest.told_index_ is not None
    heard = model.answers_._hear(model, texts[:5], 5)
    for i in range(5):
        assert i not in heard.nearest.told_ids[i]  # a document is no answer to itself
        assert i not in heard.classifiers[0][0][i]
        assert {(i + 1) % n, (i - 1) % n} <= set(heard.nearest.told_ids[i][:6])

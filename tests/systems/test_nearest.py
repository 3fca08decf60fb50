"""NearestLabels: by hand on small cases, far above chance on larger ones, the same after save and load."""

from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from deepxc import NearestLabels, load
from deepxc.errors import UserError
from deepxc.evaluate.scoring import score_model

KINDS = ["random", "spectral", "tokens"]


def dense_cosines(model, queries):
    """Cosine of every query with every label vector, the plain way."""
    W = model.label_vectors_
    W = W.toarray() if sparse.issparse(W) else W
    Q = model._project(model.tokens_.transform(queries))
    Q = Q.toarray() if sparse.issparse(Q) else Q
    return Q @ W.T


@pytest.mark.parametrize("vectors", KINDS)
def test_answers_what_a_person_would(fruit, vectors):
    model = NearestLabels(vectors=vectors, dim=64).fit(*fruit)
    top = model.predict_topk(["apple crumble", "banana milk", "a jam of plum"], k=2)
    assert [names[0] for names in top.names] == ["apple", "banana", "plum"]


def test_a_label_vector_is_its_centroid_and_its_text(fruit):
    texts, labels = fruit
    model = NearestLabels(vectors="tokens", label_text=0.5, neighbours=0).fit(texts, labels)
    X = model.tokens_.transform(texts).toarray()
    pear = model.labels_.index["pear"]
    centroid = X[2] + X[3]
    centroid /= np.linalg.norm(centroid)
    expected = centroid + 0.5 * model.tokens_.transform(["pear"]).toarray()[0]
    expected /= np.linalg.norm(expected)
    np.testing.assert_allclose(model.label_vectors_[pear].toarray()[0], expected, rtol=1e-5)


def test_without_neighbours_the_score_is_the_softmax_of_the_cosines(fruit):
    model = NearestLabels(vectors="random", dim=32, neighbours=0).fit(*fruit)
    queries = ["pear juice", "red plum"]
    cosines = dense_cosines(model, queries)
    shares = np.exp(cosines / 0.1)
    shares /= shares.sum(axis=1, keepdims=True)
    ids, scores = model.predict_topk(queries, k=4)
    np.testing.assert_array_equal(ids, np.argsort(-shares, axis=1))
    np.testing.assert_allclose(scores, -np.sort(-shares, axis=1), rtol=1e-3)


def test_learns_a_zipf_label_space(zipf):
    model = NearestLabels().fit(zipf.train)
    chance = zipf.train.Y.sum(axis=0).max() / len(zipf.train)
    assert score_model(model, zipf.test)["P@1"] > 100 * max(3 * chance, 0.3)


def test_neighbours_help(zipf):
    alone = NearestLabels(neighbours=0).fit(zipf.train)
    both = NearestLabels().fit(zipf.train)
    assert score_model(both, zipf.test)["R@5"] > score_model(alone, zipf.test)["R@5"]


@pytest.mark.parametrize("vectors", KINDS)
@pytest.mark.parametrize("neighbours", [0, 5])
def test_saved_and_loaded_answers_alike(fruit, tmp_path, vectors, neighbours):
    model = NearestLabels(vectors=vectors, dim=16, neighbours=neighbours).fit(*fruit)
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert back.get_params() == model.get_params()
    queries = ["apple", "plum tart", "", "unheard of"]
    for before, after in zip(model.predict_topk(queries, 3), back.predict_topk(queries, 3), strict=True):
        np.testing.assert_array_equal(before, after)
    assert back.predict_topk(["apple"], 1).names == [["apple"]]


def test_batch_equals_single_and_threads_change_nothing(zipf):
    model = NearestLabels(threads=2).fit(zipf.train)
    texts = list(zipf.test.texts)[:40]
    together = model.predict_topk(texts, 5)
    model.threads = 1
    single = [model.predict_topk([text], 5) for text in texts]
    np.testing.assert_array_equal(together.ids, np.vstack([top.ids for top in single]))
    np.testing.assert_allclose(together.scores, np.vstack([top.scores for top in single]), rtol=1e-5)


def test_same_seed_same_model(fruit):
    one, two = (NearestLabels(vectors="random", seed=5, dim=16).fit(*fruit) for _ in range(2))
    np.testing.assert_array_equal(one.label_vectors_, two.label_vectors_)
    other = NearestLabels(vectors="random", seed=6, dim=16).fit(*fruit)
    assert not np.array_equal(one.label_vectors_, other.label_vectors_)


def test_candidates_and_exclude(fruit):
    model = NearestLabels(vectors="random", dim=64).fit(*fruit)
    only = model.predict_topk(["apple pie"], 4, candidates=["plum", "pear"])
    assert set(only.names[0]) == {"plum", "pear"}
    assert (only.ids[0, 2:] == -1).all()
    without = model.predict_topk(["apple pie"], 4, exclude=["apple"])
    assert set(without.names[0]) == {"pear", "plum", "banana"}
    both = model.predict_topk(["apple pie"], 4, candidates=["plum", "apple"], exclude=[model.labels_.index["apple"]])
    assert both.names[0] == ["plum"]
    with pytest.raises(UserError, match="aple"):
        model.predict_topk(["x"], candidates=["aple"])
    with pytest.raises(UserError, match="Wrap it"):
        model.predict_topk(["x"], exclude="apple")


def test_with_exact_tokens_only_labels_that_share_one_are_answers(fruit):
    model = NearestLabels().fit(*fruit)
    assert set(model.predict_topk(["apple pie"], 4).names[0]) == {"apple", "pear"}
    assert model.predict_topk(["unheard of"], 4).names == [[]]


def test_labels_without_texts_are_found_by_what_they_say():
    from deepxc.data.label_space import LabelSpace

    labels = LabelSpace.from_names(["apple", "quince jelly"])
    model = NearestLabels(dim=64).fit(["apple pie", "apple juice"], [["apple"], ["apple"]], labels=labels)
    assert model.predict_topk(["jelly of quince"], 1).names == [["quince jelly"]]


def test_works_on_features(rng):
    centres = rng.normal(size=(4, 20))
    y = rng.integers(0, 4, 200)
    X = centres[y] + 0.3 * rng.normal(size=(200, 20))
    for features in (X, sparse.csr_matrix(np.abs(X) * (np.abs(X) > 1))):
        model = NearestLabels().fit(features[:150], y[:150])
        assert model.score(features[150:], y[150:]) > 0.8
        with pytest.raises(UserError, match="expecting 20 features"):
            model.predict(features[:, :5])
        with pytest.raises(UserError, match="trained on features"):
            model.predict(["text"])


def test_predict_gives_as_many_labels_as_train_texts_have(zipf):
    model = NearestLabels().fit(zipf.train)
    Y = model.predict(zipf.test)
    assert Y.shape == zipf.test.Y.shape
    assert (np.diff(Y.indptr) <= model.labels_per_text_).all()
    assert set(Y.data) == {1.0}
    scores = model.decision_function(zipf.test)
    assert scores.shape == Y.shape


def test_score_is_precision_at_one(zipf):
    model = NearestLabels().fit(zipf.train)
    assert model.score(zipf.test) == pytest.approx(score_model(model, zipf.test)["P@1"] / 100)


def test_not_fitted_and_bad_k(fruit):
    with pytest.raises(NotFittedError):
        NearestLabels().predict_topk(["x"])
    with pytest.raises(UserError, match="at least one"):
        NearestLabels().fit(*fruit).predict_topk(["x"], 0)


def test_clone_keeps_parameters():
    model = NearestLabels(preset="best", dim=7, seed=3)
    assert clone(model).get_params() == model.get_params()


def test_wrong_setting_is_refused(fruit):
    with pytest.raises(UserError, match="vectors"):
        NearestLabels(vectors="magic").fit(*fruit)
    with pytest.raises(UserError, match="preset"):
        NearestLabels(preset="paper").fit(*fruit)


def test_trees_weigh_in_on_the_candidates(zipf):
    plain = NearestLabels(seed=1).fit(zipf.train)
    with_trees = NearestLabels("trees", seed=1, tree_weight=0.25).fit(zipf.train)
    texts = zipf.test.texts[:20]
    before, after = (model.predict_topk(texts, k=40) for model in (plain, with_trees))
    told = with_trees.forest_.probabilities(with_trees.tokens_.transform(texts), before.ids)
    expected = np.where(before.ids >= 0, 0.75 * before.scores + 0.25 * told, -np.inf)
    np.testing.assert_allclose(after.scores, -np.sort(-expected, axis=1), rtol=1e-5)


@pytest.mark.parametrize("vectors", KINDS)
def test_trees_are_saved(zipf, tmp_path, vectors):
    model = NearestLabels("trees", vectors=vectors, dim=32, trees=2).fit(zipf.train)
    model.save(tmp_path / "m")
    first, second = (each.predict_topk(zipf.test.texts, k=5) for each in (model, load(tmp_path / "m")))
    np.testing.assert_array_equal(first.ids, second.ids)
    np.testing.assert_array_equal(first.scores, second.scores)


def test_dense_features_have_no_trees():
    rng = np.random.default_rng(0)
    model = NearestLabels("trees").fit(rng.random((30, 8)), [[i % 3] for i in range(30)])
    assert model.forest_ is None


def test_a_fitted_model_can_be_copied(zipf):
    model = NearestLabels("trees").fit(zipf.train)
    before = model.predict_topk(zipf.test.texts, k=5)
    np.testing.assert_array_equal(deepcopy(model).predict_topk(zipf.test.texts, k=5).ids, before.ids)

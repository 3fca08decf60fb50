"""Fusions of scores: the rule by hand, the tree as scikit-learn grows it, logistic regression as it solves it."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor

from deepxc.errors import ModelFolderError
from deepxc.predict.score_fusion import FixedRule, LogisticFusion, TreeFusion, open_fusion


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    names = ("classifier", "similarity", "inverse_propensity")
    return {name: rng.normal(size=3_000).astype(np.float32) for name in names}


@pytest.fixture(scope="module")
def truth(columns):
    logits = 2 * columns["classifier"] - columns["similarity"] * columns["inverse_propensity"] - 1
    return np.random.default_rng(1).random(3_000) < 1 / (1 + np.exp(-logits))


def test_the_fixed_rule_by_hand():
    columns = {"classifier": np.array([[0.2, 0.8]]), "similarity": np.array([[0.6, -0.4]])}
    np.testing.assert_allclose(FixedRule().score(columns), [[0.4, 0.2]])


def test_the_tree_is_scikit_learns(columns, truth):
    fusion = TreeFusion.fit(columns, truth, seed=0)
    X = np.column_stack(list(columns.values()))
    plain = DecisionTreeRegressor(max_depth=7, min_samples_leaf=20, random_state=0).fit(X, truth.astype(float))
    np.testing.assert_allclose(fusion.probability(columns), plain.predict(X))
    expected = plain.predict(X) + columns["similarity"] + columns["classifier"]
    np.testing.assert_allclose(fusion.score(columns), expected, rtol=1e-5)
    square = {name: column.reshape(60, 50) for name, column in columns.items()}
    np.testing.assert_array_equal(fusion.score(square).ravel(), fusion.score(columns))


def test_logistic_regression_is_scikit_learns(columns, truth):
    fusion = LogisticFusion.fit(columns, truth)
    X = np.column_stack([columns[name] for name in fusion.names])
    plain = LogisticRegression(C=1e6, tol=1e-8, max_iter=1_000).fit(X, truth)
    np.testing.assert_allclose(fusion.weights[:-1], plain.coef_[0], atol=5e-3)
    np.testing.assert_allclose(fusion.score(columns), plain.predict_proba(X)[:, 1], atol=2e-3)
    assert fusion.score(columns).mean() == pytest.approx(truth.mean(), abs=1e-3)  # calibrated


def test_weights_that_would_be_negative_are_left_out(columns, truth):
    against = columns | {"against": columns["classifier"] + 0.1 * columns["similarity"]}
    fusion = LogisticFusion.fit(against | {"minus": -columns["classifier"]}, truth, free=["inverse_propensity"])
    assert "minus" not in fusion.names
    assert all(w >= 0 for name, w in zip(fusion.names, fusion.weights, strict=False) if name != "inverse_propensity")


def test_columns_that_say_nothing_do_no_harm(columns, truth):
    flat = columns | {"same": np.full(3_000, 3.0, np.float32)}
    assert np.isfinite(LogisticFusion.fit(flat, truth).weights).all()


@pytest.mark.parametrize("kind", ["fixed", "tree", "logistic"])
def test_opened_from_arrays(kind, columns, truth):
    fusion = {"fixed": lambda *_: FixedRule(), "tree": TreeFusion.fit, "logistic": LogisticFusion.fit}[kind](
        columns, truth
    )
    back = open_fusion(fusion.kind, fusion.state())
    np.testing.assert_array_equal(back.score(columns), fusion.score(columns))


def test_unknown_kinds_are_named():
    with pytest.raises(ModelFolderError, match="oracle"):
        open_fusion("oracle", {})

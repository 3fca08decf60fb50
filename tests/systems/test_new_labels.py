"""Labels that a trained model gets to know without training."""

import numpy as np
import pytest

from deepxc import Astec, Dexa, NearestLabels, UserError, load


def trained(kind, fruit):
    texts, labels = fruit
    settings = {} if kind is NearestLabels else {"dim": 32, "epochs": 3}
    return kind(**settings).fit(texts, labels)


@pytest.mark.parametrize("kind", [NearestLabels, Astec, Dexa])
def test_new_labels_are_found_at_once_and_old_ones_still(kind, fruit, tmp_path):
    texts, labels = fruit
    model = kind(**({} if kind is NearestLabels else {"dim": 64, "epochs": 3})).fit(
        [*texts, "almond", "rose water", "jelly"], [*labels, ["plum"], ["plum"], ["plum"]]
    )
    model.add_labels({"marzipan": ["almond rose water", "rose water with almond"], "quince": "jelly"})
    assert model.predict_topk(["almond rose water"], 1).names == [["marzipan"]]
    assert model.predict_topk(["red apple pie"], 1).names == [["apple"]]
    assert {"marzipan", "quince"} <= set(model.labels_.ids)
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    for before, after in zip(
        model.predict_topk(["almond", "jelly", "pear"], 4),
        back.predict_topk(["almond", "jelly", "pear"], 4),
        strict=True,
    ):
        np.testing.assert_array_equal(before, after)
    assert back.predict_topk(["almond rose water"], 3, exclude=["marzipan"]).names[0][0] != "marzipan"


def test_astec_of_the_paper_takes_them_into_its_shortlist(zipf):
    model = Astec(
        preset="paper", dim=32, epochs=1, surrogate_epochs=1, hard=30, random=5, batch=128, reranker=False
    ).fit(zipf.train)
    example = next(iter(zipf.test.texts))
    before = model.predict_topk([example], 5).ids[0].tolist()
    model.add_labels({"brand new": example})
    assert "brand new" in model.predict_topk([example], 5).names[0]
    assert set(model.predict_topk([example], 6).ids[0].tolist()) & set(before)


@pytest.mark.parametrize(
    ("labels", "message"),
    [({}, "no labels"), ({"apple": "a"}, "known already"), ({"x": " "}, "empty text"), ({"x": []}, "empty text")],
)
def test_bad_new_labels_are_refused(labels, message, fruit):
    model = trained(NearestLabels, fruit)
    with pytest.raises(UserError, match=message):
        model.add_labels(labels)
    assert len(model.labels_) == 4


def test_a_model_of_features_has_no_texts_to_learn_from(rng):
    X = rng.random((20, 6)).astype(np.float32)
    model = NearestLabels().fit(X, [[i % 3] for i in range(20)])
    with pytest.raises(UserError, match="trained on features"):
        model.add_labels({"new": "text"})

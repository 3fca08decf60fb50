"""Plain MACH: learns, answers alike after saving, and its scores are the mean of its buckets' scores."""

import numpy as np
import pytest

from deepxc import Mach, load
from deepxc.evaluate.scoring import score_model

SMALL = {"learners": 3, "buckets": 64, "dim": 32, "hidden": [32], "epochs": 20, "rate": 0.02, "batch": 64}


@pytest.fixture(scope="module")
def mach(zipf):
    return Mach(**SMALL, threads=1).fit(zipf.train)


def test_learns_a_zipf_label_space(mach, zipf):
    chance = 100 * zipf.test.Y[:, np.asarray(zipf.train.Y.sum(axis=0)).argmax()].mean()
    assert score_model(mach, zipf.test)["P@1"] > 1.5 * chance


def test_a_score_is_the_mean_of_the_buckets_scores(mach, zipf):
    texts = list(zipf.test.texts)[:4]
    scores = mach._bucket_scores(texts)
    of_labels = np.mean([part[:, buckets] for part, buckets in zip(scores, mach.buckets_, strict=True)], axis=0)
    top = mach.predict_topk(texts, 5)
    np.testing.assert_allclose(top.scores, np.sort(of_labels, axis=1)[:, ::-1][:, :5], rtol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(of_labels, top.ids, 1), top.scores, rtol=1e-5)


def test_candidates_are_all_scored(mach, zipf):
    few = mach.predict_topk(list(zipf.test.texts)[:3], 5, candidates=[1, 5, 9])
    assert (np.sort(few.ids[:, :3], axis=1) == [1, 5, 9]).all()
    assert (few.ids[:, 3:] == -1).all()


def test_saved_and_loaded_answers_alike(mach, zipf, tmp_path):
    mach.save(tmp_path / "m")
    texts = [*list(zipf.test.texts)[:20], ""]
    for before, after in zip(mach.predict_topk(texts, 5), load(tmp_path / "m").predict_topk(texts, 5), strict=True):
        np.testing.assert_array_equal(before, after)


def test_learners_hash_differently(mach):
    assert not np.array_equal(mach.buckets_[0], mach.buckets_[1])

from __future__ import annotations

import json

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from deepxc.errors import UserError
from deepxc.evaluate.compare import compare
from deepxc.evaluate.metrics import evaluate


@pytest.fixture
def weights(zipf):
    return 1 + 5 / np.sqrt(zipf[2])


@pytest.fixture
def good(zipf, weights):
    return evaluate(zipf[0], zipf[1], ks=(1, 5), inverse_propensity=weights)


@pytest.fixture
def worse(zipf, weights):
    """The same answers with every tenth text answered by labels that are wrong."""
    spoiled = zipf[0].copy()
    spoiled[::10] = np.arange(290, 300)
    return evaluate(spoiled, zipf[1], ks=(1, 5), inverse_propensity=weights)


def test_identical_runs_do_not_differ(good):
    result = compare(good, good, resamples=200)
    assert {e.metric for e in result.differences} == set(good.rows)
    for entry in result.differences:
        assert entry.difference == entry.low == entry.high == 0.0
        assert entry.p_value == 1.0


def test_a_planted_difference_is_found(good, worse):
    result = compare(worse, good, resamples=500)
    for entry in result.differences:
        assert entry.first == worse[entry.metric]
        assert entry.difference == pytest.approx(good[entry.metric] - worse[entry.metric])
        assert 0 < entry.low < entry.difference < entry.high
        assert entry.p_value == pytest.approx(2 / 501)
    back = compare(good, worse, resamples=500)
    for there, here in zip(result.differences, back.differences, strict=True):
        assert (here.low, here.high) == pytest.approx((-there.high, -there.low))


def test_luck_is_not_taken_for_a_difference(zipf, weights):
    # Two runs that are equally good: each spoils a random twentieth of the texts. Over many pairs the 90 % interval
    # must miss 0 about one time in ten.
    answers, Y, _ = zipf
    rng = np.random.default_rng(1)
    missed = 0
    for trial in range(100):
        reports = []
        for _ in range(2):
            spoiled = answers.copy()
            spoiled[rng.random(len(spoiled)) < 0.05] = np.arange(290, 300)
            reports.append(evaluate(spoiled, Y, ks=(1,), inverse_propensity=weights))
        entry = compare(*reports, metrics=["PSP@1"], resamples=200, confidence=0.9, seed=trial)["PSP@1"]
        missed += not entry.low <= 0 <= entry.high
    assert 2 <= missed <= 22  # a binomial of 100 and 0.1 leaves this range once in 2,000 times


def test_intervals_match_theory_for_a_plain_mean(good, worse):
    # P@1 differs by 0 or 1 per text: the bootstrap's interval is close to the normal one.
    entry = compare(worse, good, resamples=4000, seed=2)["P@1"]
    per_text = 100 * (good.rows["P@1"].gained - worse.rows["P@1"].gained)
    half = 1.96 * per_text.std() / np.sqrt(len(per_text))
    assert entry.high - entry.low == pytest.approx(2 * half, rel=0.1)


def test_ratios_resample_numerator_and_denominator_together(good, worse):
    # One draw at a time in plain loops gives the same interval ends.
    entry = compare(worse, good, metrics=["PSP@5"], resamples=50, seed=4)["PSP@5"]
    a, b = worse.rows["PSP@5"], good.rows["PSP@5"]
    rng = np.random.default_rng(4)
    drawn = []
    for _ in range(50):
        texts = rng.integers(0, good.n_texts, size=good.n_texts, dtype=np.int32)
        whole = a.attainable[texts].sum()
        drawn.append(100 * (b.gained[texts].sum() / whole - a.gained[texts].sum() / whole))
    assert (entry.low, entry.high) == pytest.approx(tuple(np.quantile(drawn, (0.025, 0.975))))


def test_seeds_and_threads(good, worse):
    first = compare(worse, good, resamples=100, seed=1)
    with threadpool_limits(1):
        assert compare(worse, good, resamples=100, seed=1) == first
    assert compare(worse, good, resamples=100, seed=2) != first


def test_table_and_json(good, worse):
    result = compare(worse, good, metrics=["P@1", "PSP@5"], resamples=100)
    lines = result.table(("baseline", "a very long name")).splitlines()
    assert lines[0].split() == ["baseline", "a", "very", "long", "difference", "95", "%", "interval", "p"]
    assert [line.split()[0] for line in lines[1:3]] == ["P@1", "PSP@5"]
    document = json.loads(json.dumps(result.as_dict()))
    assert document["P@1"]["difference"] == result["P@1"].difference
    with pytest.raises(KeyError):
        result["P@3"]


def test_a_truth_without_labels_compares_as_equal(truth):
    report = evaluate(np.array([[0], [1]]), truth([[], []], 4), ks=(1,), inverse_propensity=np.ones(4))
    assert compare(report, report, resamples=10)["PSP@1"].difference == 0.0


def test_runs_on_different_ground_are_refused(good, zipf, weights):
    answers, Y, _ = zipf
    with pytest.raises(UserError, match="the first run has 2000 texts and the second 1000"):
        compare(good, evaluate(answers[:1000], Y[:1000], ks=(1, 5)))
    with pytest.raises(UserError, match="different truths"):
        compare(good, evaluate(answers, Y[::-1], ks=(1, 5)))
    with pytest.raises(UserError, match="PSP@1 was measured with different inverse propensities"):
        compare(good, evaluate(answers, Y, ks=(1, 5), inverse_propensity=weights + 1))
    with pytest.raises(UserError, match=r"P@9 cannot be compared. Choose among P@1, P@5"):
        compare(good, good, metrics=["P@9"])
    with pytest.raises(UserError, match="no metric in common"):
        compare(good, evaluate(answers, Y, ks=(3,)))
    with pytest.raises(UserError, match="no interval"):
        compare(good, good, confidence=95)

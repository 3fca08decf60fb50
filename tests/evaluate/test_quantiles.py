from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepxc.errors import UserError
from deepxc.evaluate.metrics import evaluate
from deepxc.evaluate.quantiles import LabelBins, equal_volume_bins, evaluate_bins, head_torso_tail


def test_equal_volume_by_hand():
    # 20 occurrences in 4 bins of 5. In order of frequency (ties by id): labels 1, 3 (1 each), 4 (3), 2 (5), 0 (10).
    # Middles of their occurrences: 0.5, 1.5, 3.5 | 7.5 | 15 -> bins 0, 0, 0, 1, 3; the big label skips bin 2.
    bins = equal_volume_bins([10, 1, 5, 1, 3], 4)
    assert bins.of_label.tolist() == [3, 0, 1, 0, 0]
    assert bins.names == ("1", "2", "3", "4")
    assert bins.sizes.tolist() == [3, 1, 0, 1]
    assert bins.volumes.tolist() == [5, 5, 0, 10]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=200).filter(sum), st.integers(1, 8))
def test_equal_volume_is_equal_and_ordered(frequencies, n_bins):
    bins = equal_volume_bins(frequencies, n_bins)
    counts = np.array(frequencies)
    assert bins.volumes.sum() == counts.sum()
    assert (np.abs(bins.volumes - counts.sum() / n_bins) <= counts.max()).all()
    order = np.argsort(counts, kind="stable")
    assert (np.diff(bins.of_label[order]) >= 0).all()  # rarer labels never lie in a later bin
    assert (bins.of_label[counts == 0] == 0).all()


def test_head_torso_tail_thresholds():
    bins = head_torso_tail([0, 9, 10, 49, 50, 1000])
    assert [bins.names[b] for b in bins.of_label] == ["tail", "tail", "torso", "torso", "head", "head"]
    custom = head_torso_tail([0, 1, 2, 3], tail_below=1, head_from=3)
    assert [custom.names[b] for b in custom.of_label] == ["tail", "torso", "torso", "head"]


def test_contributions_and_within_by_hand(truth):
    # Labels 0, 1 are rare (bin 0), labels 2, 3 common (bin 1). Text 0: truth 0, 2, 3; answers 2, 1, 0.
    # Text 1: truth 3; answers 0, 3, 2. Text 2: no truth; answers 1, 2, 3.
    bins = LabelBins(("rare", "common"), np.array([0, 0, 1, 1]), np.array([1, 1, 9, 9]))
    Y = truth([[0, 2, 3], [3], []], 4)
    report = evaluate_bins(np.array([[2, 1, 0], [0, 3, 2], [1, 2, 3]]), Y, bins, ks=(1, 3))
    # k=1: one hit, label 2. k=3: rare hit on label 0; common hits on label 2 and, in text 1, label 3.
    assert report.contribution["P@1"] == pytest.approx([0, 100 / 3])
    assert report.contribution["P@3"] == pytest.approx([100 / 9, 200 / 9])
    assert report.contribution["R@3"] == pytest.approx([100 / 3 * (1 / 3), 100 / 3 * (1 / 3 + 1)])
    # Answers at k=1: 2 | 0 | 1, so two rare and one common. At k=3: rare 1, 0 | 0 | 1; common 2 | 3, 2 | 2, 3.
    assert report.within["P@1"] == pytest.approx([0, 100])
    assert report.answers.tolist() == [4, 5]
    assert report.within["P@3"] == pytest.approx([25, 40])
    # Rare truth: text 0 only (1 of 1 found). Common truth: text 0 (1 of 2), text 1 (1 of 1).
    assert report.positives.tolist() == [1, 3]
    assert report.within["R@3"] == pytest.approx([100, 75])
    assert report.within["R@1"] == pytest.approx([0, 25])


def test_contributions_sum_to_the_metric(zipf):
    answers, Y, frequencies = zipf
    pairs = np.column_stack((np.arange(0, 2000, 7), answers[::7, 2]))
    whole = evaluate(answers, Y, ks=(1, 3, 5), filter_pairs=pairs, filter_truth=True)
    for bins in (equal_volume_bins(frequencies), head_torso_tail(frequencies), equal_volume_bins(frequencies, 1)):
        report = evaluate_bins(answers, Y, bins, ks=(1, 3, 5), filter_pairs=pairs, filter_truth=True)
        for key, parts in report.contribution.items():
            assert parts.shape == (len(bins),)
            assert parts.sum() == pytest.approx(whole[key])


def test_table_and_json(zipf):
    answers, Y, frequencies = zipf
    report = evaluate_bins(answers, Y, equal_volume_bins(frequencies), ks=(1, 5))
    lines = report.table().splitlines()
    assert lines[0].split() == ["bin", "labels", "volume", "P@1", "P@5", "R@1", "R@5"]
    assert len(lines) == 7
    assert lines[-1].split()[3] == f"{evaluate(answers, Y, ks=(1,))['P@1']:.2f}"
    document = json.loads(json.dumps(report.as_dict()))
    assert sum(document["labels"]) == 300
    assert document["within"]["R@5"] == pytest.approx(report.within["R@5"].tolist())


def test_an_empty_bin_shows_zeros(truth):
    bins = LabelBins(("a", "b"), np.zeros(4, np.int64), np.ones(4, np.int64))
    report = evaluate_bins(np.array([[2, 1]]), truth([[2]], 4), bins, ks=(1,))
    assert report.within["P@1"].tolist() == [100, 0]
    assert report.within["R@1"].tolist() == [100, 0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: equal_volume_bins([0, 0]), "no label occurs in train"),
        (lambda: equal_volume_bins([1, 2], 0), "0 bins hold no labels"),
        (lambda: equal_volume_bins([1, -2]), "holds no label frequencies"),
        (lambda: equal_volume_bins(np.ones((2, 2))), r"shape \(2, 2\) holds no label frequencies"),
        (lambda: head_torso_tail([1.0, np.nan]), "holds no label frequencies"),
        (lambda: head_torso_tail([1], tail_below=9, head_from=3), "leave no order"),
    ],
)
def test_bad_bins_are_named(make, message):
    with pytest.raises(UserError, match=message):
        make()


def test_bins_of_another_label_space_are_refused(truth):
    with pytest.raises(UserError, match="bins of 3 labels for a truth of 4"):
        evaluate_bins(np.array([[0]]), truth([[0]], 4), equal_volume_bins([1, 2, 3]))

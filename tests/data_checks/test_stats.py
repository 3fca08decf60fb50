"""The figures of a data set, against counting by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse

from deepxc.data.dataset import Dataset, Split
from deepxc.data.label_space import LabelSpace
from deepxc.data.stats import dataset_stats


def test_small_set_by_hand(make_dataset):
    rows = [("One fish, two fish", [0, 1]), ("red FISH", [0]), ("", []), ("blue-fish", [0])]
    stats = dataset_stats(make_dataset(["a b", "c", "d"], rows, [("new words", [2])]))
    train = stats.splits["train"]
    assert (stats.labels, stats.labels_with_text) == (3, 3)
    assert stats.words_per_label == pytest.approx(4 / 3)
    assert (train.rows, train.pairs, train.unlabelled, train.labels_used) == (4, 4, 1, 2)
    assert train.labels_per_text == 1
    assert train.texts_per_label == 2
    assert (train.words_per_text, train.longest_text, train.vocabulary) == (2, 4, 5)
    assert stats.splits["test"].vocabulary == 2
    assert stats.frequency_quantiles["0"] == 0
    assert stats.frequency_quantiles["50"] == 1
    assert stats.frequency_quantiles["100"] == 3
    assert stats.bands["tail"].labels == 2
    assert stats.bands["tail"].share_of_pairs == 1
    assert stats.bands["unseen"].share_of_labels == pytest.approx(1 / 3)
    assert json.loads(json.dumps(stats.as_dict()))["splits"]["train"]["rows"] == 4
    table = str(stats)
    assert "made: 3 labels, 3 with text (1.3 words each)" in table
    assert max(map(len, table.splitlines())) < 100


def test_bands_meet_at_ten_and_fifty():
    per_label = np.array([50, 49, 10, 9, 1, 0])
    label = np.repeat(np.arange(6), per_label)
    Y = sparse.csr_matrix((np.ones(len(label), np.float32), (np.arange(len(label)), label)), shape=(len(label), 6))
    labels = LabelSpace.numbered(6)
    stats = dataset_stats(Dataset("made", labels, Split(labels=labels, Y=Y, X=sparse.csr_matrix((len(label), 4)))))
    assert {kind: band.labels for kind, band in stats.bands.items()} == {"head": 1, "torso": 2, "tail": 2, "unseen": 1}
    assert stats.bands["head"].share_of_pairs == pytest.approx(50 / 119)
    train = stats.splits["train"]
    assert train.features == 4
    assert train.vocabulary is train.words_per_text is stats.words_per_label is None
    assert "vocabulary" not in str(stats)


def test_memory_counts_what_is_there():
    labels = LabelSpace.numbered(10)
    Y = sparse.csr_matrix((1000, 10), dtype=np.float32)
    small = Split(labels=labels, Y=Y, texts=["a"] * 1000)
    large = Split(labels=labels, Y=Y, texts=[f"{'x' * 500}{i}" for i in range(1000)])
    difference = dataset_stats(Dataset("l", labels, large)).memory - dataset_stats(Dataset("s", labels, small)).memory
    assert 450_000 < difference < 600_000


def test_empty_parts_have_figures(make_dataset):
    stats = dataset_stats(make_dataset([], []))
    assert stats.splits["train"].labels_per_text == 0
    assert "0 labels" in str(stats)

"""The icd10 sample: its sizes, what a text and its labels are, and that seeds decide."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

from deepxc.data.dataset import Dataset
from deepxc.data.samples import load_sample


@pytest.fixture(scope="module")
def icd10():
    return load_sample("icd10")


@pytest.fixture(scope="module")
def icd(icd10):
    """The package itself, after deepxc has imported it past its deprecation warning."""
    return sys.modules["simple_icd_10_cm"]


def test_sizes(icd10):
    assert len(icd10.labels) == 23_433
    assert len(icd10.train) == pytest.approx(107_700, abs=100)
    assert len(icd10.test) == pytest.approx(2_450, abs=10)
    assert icd10.validation is None
    assert icd10.labels.frequencies.min() > 0
    assert icd10.labels.frequencies.sum() == icd10.train.Y.nnz


def test_labels_are_described_codes(icd10, icd):
    labels = icd10.labels
    assert labels.texts == labels.names
    assert labels.names[labels.index["S72.32"]] == icd.get_description("S72.32")
    for label in labels.ids[::500]:
        assert not icd.is_leaf(label)
        assert not icd.is_chapter_or_block(label)
        assert "." in label or len(label) == 3


@pytest.mark.parametrize("part", ["train", "test"])
def test_labels_of_a_text_are_the_divided_codes_on_its_path(icd10, icd, part):
    split = getattr(icd10, part)
    known = set(icd10.labels.ids)
    for row in np.random.default_rng(0).choice(len(split), 200, replace=False):
        code, _, term = split.ids[row].partition("/")
        terms = icd.get_inclusion_term(code)
        assert split.texts[row] == (terms[int(term) - 1] if term else icd.get_description(code))
        path = {name for name in (code, *icd.get_ancestors(code)) if name in known}
        assert {icd10.labels.ids[label] for label in split.Y[row].indices} == path


def test_every_description_is_in_train_and_test_is_terms_alone(icd10):
    kinds = [["/" in name for name in split.ids] for split in (icd10.train, icd10.test)]
    assert all(kinds[1])
    described = {name for name, term in zip(icd10.train.ids, kinds[0], strict=True) if not term}
    assert set(icd10.labels.ids) <= described
    assert not set(icd10.train.ids) & set(icd10.test.ids)
    assert len(set(icd10.train.ids)) == len(icd10.train)


def test_rows_are_canonical_and_placed(icd10):
    assert icd10.train.Y.has_sorted_indices
    assert icd10.train.Y.dtype == np.float32
    assert icd10.train.at(5) == "icd10 train, row 5"


def test_the_seed_decides(icd10):
    same, other = load_sample("icd10", seed=0), load_sample("icd10:seed=1")
    assert same.test.ids == icd10.test.ids
    assert same.train.ids == icd10.train.ids
    assert other.test.ids != icd10.test.ids
    assert other.labels.ids == icd10.labels.ids
    assert sorted(other.train.ids + other.test.ids) == sorted(icd10.train.ids + icd10.test.ids)


def test_share_of_test_terms(icd10):
    half = load_sample("icd10:test_share=0.5")
    assert len(half.test) == pytest.approx(2.5 * len(icd10.test), abs=2)


@pytest.mark.usefixtures("icd10")
def test_again_in_the_same_process_is_quick():
    start = time.process_time()
    assert len(Dataset.read("icd10").labels) == 23_433
    assert time.process_time() - start < 3

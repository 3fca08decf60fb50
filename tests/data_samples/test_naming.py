"""Samples by name and options."""

from __future__ import annotations

import subprocess
import sys

import pytest

from deepxc.data.dataset import Dataset
from deepxc.data.samples import SAMPLES, is_sample, load_sample
from deepxc.errors import UserError


@pytest.mark.parametrize("options", ["labels=30,texts=50", " labels = 3e1 , texts=5_0,", "labels=30.0,texts=50"])
def test_options_in_the_name(options):
    made = load_sample(f"synthetic:{options}")
    assert (len(made.labels), len(made.train)) == (30, 50)


def test_options_as_keywords():
    made = load_sample("synthetic:labels=30", texts=50, seed="3")
    assert (len(made.labels), len(made.train)) == (30, 50)
    assert made.train.texts == Dataset.read("synthetic:labels=30,texts=50,seed=3").train.texts


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("icd11", "not a built-in sample. Did you mean icd10"),
        ("wiki", "Samples are icd10, debian, synthetic"),
        ("synthetic:label=5", "'label' is not an option of sample synthetic. Did you mean labels"),
        ("debian:labels=5", "Its options are seed"),
        ("synthetic:labels", "'labels' has no value"),
        ("synthetic:labels=many", "'many' is not a whole number"),
        ("synthetic:labels=1.5", "'1.5' is not a whole number"),
        ("synthetic:labels=inf", "'inf' is not a whole number"),
        ("synthetic:zipf=steep", "'steep' is not a number. Give one such as 0.8"),
        ("icd10:test_share=2", "test_share 2.0 is not between 0 and 1"),
    ],
)
def test_what_cannot_be_meant(spec, message):
    with pytest.raises(UserError) as caught:
        load_sample(spec)
    assert message in str(caught.value)


def test_an_option_given_twice():
    with pytest.raises(UserError, match="given twice"):
        load_sample("synthetic:labels=5", labels=6)


def test_what_names_a_sample():
    assert all(map(is_sample, SAMPLES))
    assert is_sample("synthetic:labels=5")
    assert not is_sample("synthetics")
    assert not is_sample("data/icd10")
    assert not is_sample(None)


def test_naming_them_imports_nothing_heavy():
    code = "import sys, deepxc.data.samples; print({'numpy', 'scipy', 'simple_icd_10_cm'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"

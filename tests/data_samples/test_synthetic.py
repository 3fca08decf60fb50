"""The synthetic sample: sizes, laws, learnability, and what a large one costs."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepxc.data.samples import load_sample, synthetic
from deepxc.errors import UserError


@settings(max_examples=60, deadline=None)
@given(
    labels=st.integers(1, 200),
    texts=st.integers(1, 300),
    labels_per_text=st.floats(1, 6),
    noise_words=st.floats(0, 5),
    words=st.integers(0, 500),
    zipf=st.sampled_from([0.0, 0.8, 1.0, 1.5]),
    seed=st.integers(0, 2**31),
)
def test_any_size(labels, texts, **options):
    made = synthetic.load(labels=labels, texts=texts, **options)
    assert (len(made.labels), len(made.train)) == (labels, texts)
    assert len(made.test) == max(texts // 10, 1)
    assert np.diff(made.train.Y.indptr).min() > 0
    assert all(made.train.texts)
    assert all(made.labels.texts)
    assert set(made.train.Y.data.tolist()) == {1.0}
    again = synthetic.load(labels=labels, texts=texts, **options)
    assert again.train.texts == made.train.texts
    assert np.array_equal(again.test.Y.indices, made.test.Y.indices)


def test_every_label_occurs_where_pairs_suffice():
    assert load_sample("synthetic:labels=5000,texts=5000,labels_per_text=2").labels.frequencies.min() == 1


def test_label_frequencies_follow_zipf():
    frequencies = np.sort(load_sample("synthetic:labels=20_000,texts=100_000").labels.frequencies)[::-1]
    assert frequencies[:200].sum() > 0.1 * frequencies.sum()
    assert np.median(frequencies) < 0.75 * frequencies.mean()
    rank = np.unique(np.geomspace(10, 5_000, 30).astype(int))
    slope = np.polyfit(np.log(rank), np.log(frequencies[rank]), 1)[0]
    assert -1.1 < slope < -0.4


@pytest.mark.parametrize("exponent", [0.0, 0.7, 1.0, 1.4])
def test_ranks_have_the_law_asked_for(exponent):
    ranks = synthetic.zipf_ranks(400_000, 1_000, exponent, np.random.default_rng(0))
    counts = np.bincount(ranks, minlength=1_000)
    assert len(counts) == 1_000
    assert counts[9] / counts[99] == pytest.approx((100 / 10) ** exponent, rel=0.15)


def test_spellings_differ():
    words = synthetic.spelled(500_000)
    assert len(set(words)) == len(words) == 500_000
    assert all(word.isalpha() for word in words[::1000])
    assert len(words[0]) < len(words[-1])


def test_texts_show_words_of_their_labels():
    made = load_sample("synthetic:labels=500,texts=2000,noise_words=0")
    for row in range(0, 2000, 50):
        allowed = " ".join(made.labels.texts[label] for label in made.train.Y[row].indices).split()
        assert set(made.train.texts[row].split()) <= set(allowed)


def test_words_tell_the_labels():
    """Matching words with label text alone beats chance a hundredfold."""
    made = load_sample("synthetic:labels=2000,texts=2000")
    texts = [set(text.split()) for text in made.labels.texts]
    hits = 0
    for row in range(100):
        words = set(made.test.texts[row].split())
        best = max(range(2000), key=lambda label: len(words & texts[label]))
        hits += best in made.test.Y[row].indices
    assert hits > 15  # chance: 0.15 of 100


def test_labels_of_a_text_share_topics():
    made = load_sample("synthetic:labels=3200,texts=5000")
    Y = made.train.Y
    together = [len(set(Y[row].indices // synthetic.TOPIC_SIZE)) < Y[row].nnz for row in range(500) if Y[row].nnz > 1]
    assert np.mean(together) > 0.5


def test_large_ones_are_quick_and_small():
    tracemalloc.start()
    start = time.process_time()
    made = load_sample("synthetic:labels=100_000,texts=20_000")
    took, (kept, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(made.labels) == 100_000
    assert took < 20  # under the tracer; about 1 s without it
    assert peak < kept + 60e6


@pytest.mark.parametrize(
    "option", ["labels=0", "texts=-1", "words=-5", "labels_per_text=0.5", "noise_words=-1", "zipf=nan"]
)
def test_sizes_that_make_no_sense(option):
    with pytest.raises(UserError, match=option.split("=", maxsplit=1)[0]):
        load_sample(f"synthetic:{option}")

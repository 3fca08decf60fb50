"""The join finds exactly the pairs that comparing everything with everything finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepxc.data.checks import near_duplicates as module
from deepxc.data.checks.near_duplicates import near_duplicates
from deepxc.errors import UserError


def shingles(text):
    folded = " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())
    return {folded[i : i + 4] for i in range(max(len(folded) - 3, 1))} if folded else set()


def brute_force(texts, reference, threshold):
    sets = [shingles(text) for text in reference]
    found = []
    for text in texts:
        mine = shingles(text)
        alike = [bool(mine and other) and len(mine & other) >= threshold * len(mine | other) - 1e-9 for other in sets]
        found.append(alike.index(True) if True in alike else -1)
    return found


words = st.lists(st.sampled_from(["sea", "seas", "ice", "road", "Roads", "winter", "of", "north"]), max_size=6)
titles = st.lists(words.map(" ".join), max_size=12)


@settings(max_examples=150, deadline=None)
@given(titles, titles, st.sampled_from([0.3, 0.5, 0.8, 1.0]))
def test_finds_what_brute_force_finds(texts, reference, threshold):
    assert near_duplicates(texts, reference, threshold).similar.tolist() == brute_force(texts, reference, threshold)


def test_chunks_do_not_show(monkeypatch):
    rng = np.random.default_rng(1)
    vocabulary = ["grey", "seal", "seals", "baltic", "sea", "history", "algebra", "roads"]
    drawn = [" ".join(rng.choice(vocabulary, size=rng.integers(1, 7))) for _ in range(200)]
    whole = near_duplicates(drawn[:80], drawn[80:], 0.6)
    monkeypatch.setattr(module, "_CHUNK", 7)
    parts = near_duplicates(drawn[:80], drawn[80:], 0.6)
    assert np.array_equal(whole.similar, parts.similar)
    assert np.array_equal(whole.same_words, parts.same_words)
    assert whole.similar.tolist() == brute_force(drawn[:80], drawn[80:], 0.6)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("The Grey Seal", "the grey  seal!"),
        ("Cafe\u0301 au lait", "café au lait"),
        ("Straße", "STRASSE"),
        ("line\nbreak", "line break"),
        ("हिन्दी भाषा", "हिन्दी, भाषा"),
        ("ab", "(AB)"),
    ],
)
def test_same_words(text, reference):
    found = near_duplicates(["other", text], ["something else", reference])
    assert found.same_words.tolist() == [-1, 1]
    assert found.similar.tolist() == [-1, 1]


def test_vowel_signs_are_part_of_words():
    assert near_duplicates(["कि"], ["क"]).same_words.tolist() == [-1]


def test_word_order_and_spelling():
    found = near_duplicates(
        ["The voyage of contemporary Japanese theatre", "a history of algebra"],
        ["The voyage of contemporary Japanese theater", "algebra of a history, retold"],
    )
    assert found.similar.tolist() == [0, -1]
    assert found.same_words.tolist() == [-1, -1]


@pytest.mark.parametrize(("texts", "reference"), [([], []), (["a"], []), ([], ["a"]), ([""], [""]), (["\n"], ["..."])])
def test_nothing_matches_nothing(texts, reference):
    found = near_duplicates(texts, reference)
    assert found.similar.tolist() == found.same_words.tolist() == [-1] * len(texts)


def test_a_text_of_ten_megabytes_is_compared_by_its_beginning():
    long = "lorem ipsum dolor " * 600_000
    assert near_duplicates([long], ["short", long + "x"]).similar.tolist() == [1]


def test_lone_surrogates_are_characters_too():
    assert near_duplicates(["a \ud83d b"], ["a \ud83d b"]).same_words.tolist() == [0]


@pytest.mark.parametrize("threshold", [0, -1, 1.1, float("nan")])
def test_thresholds_that_do_not_exist(threshold):
    with pytest.raises(UserError, match="threshold"):
        near_duplicates(["a"], ["a"], threshold)

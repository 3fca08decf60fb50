"""Padded id sequences: same ids as the bag, order kept, cut and filled up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepxc.errors import UserError
from deepxc.text.bag import BagOfTokens
from deepxc.text.definition import TokenDefinition, TokenSettings
from deepxc.text.sequences import SequenceSettings, TokenSequences

if TYPE_CHECKING:
    from pathlib import Path

WORDS = ["history", "of", "the", "algebra", "unseen"]


@pytest.fixture(scope="module")
def definition(titles: list[str]) -> TokenDefinition:
    return BagOfTokens(ngrams=(2, 3)).fit(titles).definition


def test_rows_are_the_ids_in_reading_order(definition: TokenDefinition) -> None:
    made = TokenSequences(definition, SequenceSettings(length=4))
    ids, lengths = made.transform(["The HISTORY of algebra, of logic", "zebra history", ""])
    v = definition.vocabulary
    assert ids.dtype == lengths.dtype == np.int32
    assert ids.tolist() == [
        [v["the"], v["history"], v["of"], v["algebra"]],
        [made.unknown_id, v["history"], made.pad_id, made.pad_id],
        [made.pad_id] * 4,
    ]
    assert lengths.tolist() == [4, 2, 0]
    assert ids.max() == made.n_ids - 1


@given(
    texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=6),
    length=st.integers(1, 7),
    unknown=st.sampled_from(["keep", "drop"]),
    stop_words=st.lists(st.sampled_from(["the", "of", "never"]), unique=True),
)
def test_rows_agree_with_plain_python(
    texts: list[str], length: int, unknown: str, stop_words: list[str], definition: TokenDefinition
) -> None:
    made = TokenSequences(definition, SequenceSettings(length, unknown, tuple(stop_words)))  # type: ignore[arg-type]
    ids, lengths = made.transform(texts)
    assert ids.shape == (len(texts), length)
    for text, row, used in zip(texts, ids.tolist(), lengths.tolist(), strict=True):
        kept = [w for w in text.split() if w not in stop_words and not (unknown == "drop" and w == "unseen")]
        expected = [definition.vocabulary.get(w, made.unknown_id) for w in kept][:length]
        assert row == expected + [made.pad_id] * (length - len(expected))
        assert used == len(expected)


def test_stop_words_go_even_when_they_are_not_in_the_vocabulary(definition: TokenDefinition) -> None:
    made = TokenSequences(definition, SequenceSettings(stop_words=("Don't", "THE")))
    assert made.transform(["don't the t history"]).lengths.tolist() == [1]


def test_saved_sequences_come_back(definition: TokenDefinition, titles: list[str], tmp_path: Path) -> None:
    made = TokenSequences(definition, SequenceSettings(7, "drop", ("of",)))
    made.save(tmp_path / "tokenizer.json")
    loaded = TokenSequences.load(tmp_path / "tokenizer.json")
    assert loaded.settings == made.settings
    for ours, theirs in zip(made.transform(titles), loaded.transform(titles), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    # the same file serves a bag
    assert BagOfTokens.load(tmp_path / "tokenizer.json").vocabulary == definition.vocabulary


def test_sequences_of_subwords(titles: list[str]) -> None:
    made = TokenSequences.learn(titles, SequenceSettings(length=50), TokenSettings(subwords=60))
    whole = made.definition.tokenizer.encode(titles[0]).ids
    ids, lengths = made.transform(titles[:1])
    assert ids[0, : lengths[0]].tolist() == [min(i, made.unknown_id) for i in whole]
    with pytest.raises(UserError, match="stop_words"):
        TokenSequences(made.definition, SequenceSettings(stop_words=("the",)))


@pytest.mark.parametrize("named", [{"length": 0}, {"unknown": "guess"}, {"stop_words": "the"}])
def test_senseless_settings_are_refused(named: dict[str, object]) -> None:
    with pytest.raises(UserError, match=next(iter(named))):
        SequenceSettings(**named)  # type: ignore[arg-type]

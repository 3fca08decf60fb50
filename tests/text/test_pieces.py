"""The fast path gives what whole-text tokenisation by `tokenizers` gives, for any Unicode text."""

from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from deepxc.errors import UserError
from deepxc.text.definition import TokenDefinition, TokenSettings
from deepxc.text.learning import learn
from deepxc.text.pieces import PieceCache, pieces_of, texts_checked

KINDS = {
    "words": {},
    "cased": {"lowercase": False},
    "no accents": {"strip_accents": True},
    "subwords": {"subwords": 150},
}
CORPUS = [
    "A history of algebra, cafe\u0301 ﬁne Ⅻ",
    "the HISTORY of नमस्ते दुनिया",
    "日本語の本 Ελληνικός ΣΊΣΥΦΟΣ İstanbul",
    "a b c \u0301 x_y 12 ½ ² ｱ",
]
SPACES = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2003\u2007\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
MARKS = "\u0301\u0308\u0327\u0345\u3099\u093e\u1161\u11a8\u200d\ufe0f\u200b\u034f"
TROUBLE = st.sampled_from([*SPACES, *MARKS, *"aÅﬁßİΣς가각カｶ日½²¨´ⅻ№_-'.!👍\ufdfa\u00a8\u037a\u2017\u0130"])
TEXTS = st.text(alphabet=st.one_of(st.characters(exclude_categories=["Cs"]), TROUBLE), max_size=30)
TEXTS = st.one_of(TEXTS, st.lists(st.one_of(TROUBLE, st.sampled_from(["history", "CAFÉ", "नम"]))).map("".join))


@pytest.fixture(scope="module", params=KINDS)
def definition(request: pytest.FixtureRequest) -> TokenDefinition:
    return learn(CORPUS, TokenSettings(min_df=1, **KINDS[request.param])).definition


@pytest.fixture(scope="module")
def saved(definition: TokenDefinition, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """The saved file, opened by `tokenizers` as it is."""
    path = tmp_path_factory.mktemp("saved") / "tokenizer.json"
    definition.save(path)
    return Tokenizer.from_file(str(path))


@pytest.fixture(scope="module")
def cache(definition: TokenDefinition) -> PieceCache:
    return pieces_of(definition)


def whole(tokenizer: Tokenizer, definition: TokenDefinition, text: str) -> list[int]:
    ids = tokenizer.encode(text).ids
    return [min(i, definition.unknown_id) for i in ids]


@given(text=TEXTS)
@example(text="a\u0085b\u00a0c")
@example(text="a \u0301b\u3000\u3099か")
@example(text=" \u1161\u11a8 가 \u11a8")
@example(text="[UNK] [PAD] history")
def test_pieces_in_a_row_are_the_whole_text(
    text: str, definition: TokenDefinition, saved: Tokenizer, cache: PieceCache
) -> None:
    expected = whole(saved, definition, text)
    assert cache.read_one(text) == expected
    rows = pieces_of(definition).read([text, "history", text])
    assert rows.ids[: rows.bounds[1]].tolist() == expected
    assert rows.ids[rows.bounds[2] :].tolist() == expected


@given(texts=st.lists(TEXTS, max_size=8))
def test_a_forgetful_cache_reads_the_same(texts: list[str], definition: TokenDefinition, cache: PieceCache) -> None:
    forgetful = pieces_of(definition, memory_bytes=1)
    for text in texts:
        assert forgetful.read_one(text) == cache.read_one(text)
    assert forgetful.read(texts).ids.tolist() == [i for text in texts for i in cache.read_one(text)]


def test_every_character_alone_and_between_letters(
    definition: TokenDefinition, saved: Tokenizer, cache: PieceCache
) -> None:
    """All assigned characters but most ideographs, so that no whitespace or composing one was forgotten."""
    ideographs = (
        "CJK UNIFIED",
        "HANGUL SYLLABLE",
        "CJK COMPAT",
        "TANGUT",
        "CUNEIFORM",
        "EGYPTIAN",
        "YI SYLL",
    )
    chosen = [chr(c) for c in range(0x20000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
    chosen = [c for i, c in enumerate(chosen) if i % 50 == 0 or not unicodedata.name(c, "").startswith(ideographs)]
    texts = [f"a{c}b \u0301{c} c" for c in chosen]
    rows = cache.read(texts)
    expected = [encoded.ids for encoded in saved.encode_batch_fast(texts)]
    assert np.diff(rows.bounds).tolist() == [len(ids) for ids in expected]
    flat = np.array([i for ids in expected for i in ids])
    np.testing.assert_array_equal(rows.ids, np.minimum(flat, definition.unknown_id))


def test_memory_stays_bounded(definition: TokenDefinition) -> None:
    cache = pieces_of(definition, memory_bytes=20_000)
    for i in range(2_000):
        cache.read_one(f"new{i} piece-{i}-of-many")
    assert len(cache._memory.codes) < 400
    cache.read_one("x" * 10_000)
    assert max(map(len, cache._memory.codes)) <= 128


def test_threads_share_a_cache(definition: TokenDefinition) -> None:
    texts = [f"history-{i % 97} of caf\u00e9{i} x_y/{i}" for i in range(3_000)]
    alone = pieces_of(definition).read(texts)
    shared = pieces_of(definition, memory_bytes=30_000)
    with ThreadPoolExecutor(8) as pool:
        for rows in pool.map(shared.read, [texts] * 8):
            np.testing.assert_array_equal(rows.ids, alone.ids)
            np.testing.assert_array_equal(rows.bounds, alone.bounds)
        expected = [alone.ids[a:b].tolist() for a, b in zip(alone.bounds, alone.bounds[1:], strict=False)]
        assert list(pool.map(shared.read_one, texts)) == expected


def test_a_lone_surrogate_is_named_with_its_row(cache: PieceCache) -> None:
    texts = ["fine"] * 1_500 + ["not \ud800 fine"]
    with pytest.raises(UserError, match=r"texts\[1500\].*U\+D800.*position 4"):
        cache.read(texts)
    assert cache.read_one("history") == cache.read(["history"]).ids.tolist()


@pytest.mark.parametrize("texts", ["one text", b"bytes", ["a", None], ["a", b"b"], [3.5], [["a"]]])
def test_only_lists_of_strings_are_texts(texts: object) -> None:
    with pytest.raises(UserError, match=r"texts.*(?:list|not a text)"):
        texts_checked(texts)  # type: ignore[arg-type]


def test_texts_may_come_from_any_iterable() -> None:
    assert list(texts_checked(t for t in ("a", "b"))) == ["a", "b"]
    assert list(texts_checked(np.array(["a", "b"]))) == ["a", "b"]

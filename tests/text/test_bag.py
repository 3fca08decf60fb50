"""Bags of tokens against scikit-learn, against themselves saved and loaded, and against bad input."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepxc.errors import ModelFolderError, UserError
from deepxc.text.bag import BagOfTokens

if TYPE_CHECKING:
    from pathlib import Path

    from scipy import sparse

VARIANTS = [
    {},
    {"min_df": 1, "sublinear_tf": False},
    {"idf": False},
    {"normalize": False, "lowercase": False},
    {"ngrams": (2, 4)},
    {"subwords": 200},
    {"strip_accents": True, "max_tokens": 7},
]


def same_bits(left: sparse.csr_matrix, right: sparse.csr_matrix) -> bool:
    return left.shape == right.shape and all(
        np.array_equal(getattr(left, part), getattr(right, part)) for part in ("indptr", "indices", "data")
    )


@pytest.mark.parametrize("sublinear", [True, False])
@pytest.mark.parametrize("norm", ["l2", None])
def test_weights_are_scikit_learns(titles: list[str], sublinear: bool, norm: str | None) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    rival = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", min_df=2, sublinear_tf=sublinear, norm=norm)
    expected = rival.fit_transform(titles)
    bag = BagOfTokens(sublinear_tf=sublinear, normalize=norm is not None)
    ours = bag.fit_transform(titles)
    assert set(bag.vocabulary) == set(rival.vocabulary_)
    columns = [rival.vocabulary_[token] for token in bag.vocabulary]
    assert abs(ours - expected[:, columns]).max() < 1e-6
    unseen = ["the the the algebra of unknown things", "nothing"]
    assert abs(bag.transform(unseen) - rival.transform(unseen)[:, columns]).max() < 1e-6


@given(st.lists(st.text(alphabet="ab c.D-1_", max_size=12), min_size=1, max_size=12))
def test_weights_are_scikit_learns_on_any_plain_text(texts: list[str]) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    rival = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", min_df=1, sublinear_tf=True)
    try:
        expected = rival.fit_transform(texts)
    except ValueError:  # it found no words
        with pytest.raises(UserError, match="no token"):
            BagOfTokens(min_df=1).fit(texts)
        return
    bag = BagOfTokens(min_df=1)
    ours = bag.fit_transform(texts)
    assert abs(ours - expected[:, [rival.vocabulary_[token] for token in bag.vocabulary]]).max() < 1e-6


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_all_ways_to_a_row_agree_to_the_bit(
    variant: dict[str, object], titles: list[str], many_scripts: list[str], tmp_path: Path
) -> None:
    texts = titles + many_scripts
    bag = BagOfTokens(**variant)
    at_once = bag.fit_transform(texts)
    assert at_once.dtype == np.float32
    assert at_once.shape == (len(texts), bag.n_tokens)
    assert same_bits(at_once, BagOfTokens(**variant).fit(texts).transform(texts))
    bag.save(tmp_path / "tokenizer.json")
    loaded = BagOfTokens.load(tmp_path / "tokenizer.json")
    assert loaded.settings == bag.settings
    assert loaded.vocabulary == bag.vocabulary
    assert same_bits(at_once, loaded.transform(texts))
    assert same_bits(at_once, copy.deepcopy(bag).transform(texts))
    for row, text in enumerate(texts):
        alone = loaded.transform([text])
        assert same_bits(alone, at_once[row])
        assert np.all(np.diff(alone.indices) > 0)
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "tokenizer.json").read_bytes()


def test_a_text_of_many_repeats_agrees_alone_and_in_a_batch(titles: list[str]) -> None:
    bag = BagOfTokens().fit(titles)
    long = "roman history of the " * 3_000 + "unknown"
    both = bag.transform([long, "roman"])
    assert same_bits(bag.transform([long]), both[0])
    assert both[0].nnz == 4


def test_columns_go_by_frequency_then_by_name() -> None:
    bag = BagOfTokens(min_df=1).fit(["b a c", "c b", "b"])
    assert list(bag.vocabulary) == ["b", "c", "a"]
    assert bag.definition.document_counts == [3, 2, 1]
    assert list(BagOfTokens(min_df=2, max_tokens=1).fit(["b a c", "c b", "b"]).vocabulary) == ["b"]


def test_ngrams_bind_misspelt_words(titles: list[str]) -> None:
    bag = BagOfTokens(ngrams=(3, 4)).fit(titles)
    words = BagOfTokens().fit(titles)
    assert words.transform(["algebraic"]).nnz == 0
    similar = (bag.transform(["algebraic"]) @ bag.transform(["algebra", "birds"]).T).toarray()[0]
    assert similar[0] > 0.3 > similar[1]
    assert {"#<al", "#ra>", "algebra"} <= bag.vocabulary.keys()


def test_subwords_learn_words_of_scripts_without_spaces() -> None:
    texts = ["図書館の本", "図書館学", "大学図書館", "本の図書館"] * 5
    bag = BagOfTokens(subwords=12).fit(texts)  # too few to learn the whole titles
    assert bag.transform(["国立図書館"]).nnz > 0
    assert any("図書館" in token for token in bag.vocabulary)


@pytest.mark.parametrize("text", ["", "   ", "?! ...", "unseen", "\u200b"])
def test_texts_without_known_tokens_are_empty_rows(titles: list[str], text: str) -> None:
    bag = BagOfTokens().fit(titles)
    row = bag.transform([text])
    assert row.shape == (1, bag.n_tokens)
    assert row.nnz == 0
    assert bag.transform([text, "the"]).indptr.tolist() == [0, 0, 1]


def test_no_texts_are_no_rows(titles: list[str]) -> None:
    bag = BagOfTokens().fit(titles)
    assert bag.transform([]).shape == (0, bag.n_tokens)


def test_a_text_of_ten_megabytes(titles: list[str]) -> None:
    bag = BagOfTokens().fit(titles)
    row = bag.transform(["the roman forest! " * 580_000])
    assert row.nnz == 3 - ("forest" not in bag.vocabulary)
    assert abs(float(np.sqrt(row.multiply(row).sum())) - 1) < 1e-6
    assert bag.transform(["x" * 10_000_000]).nnz == 0
    assert len(bag._pieces._memory.codes) < 100


def test_threads_share_a_bag(titles: list[str]) -> None:
    bag = BagOfTokens().fit(titles)
    bag = copy.deepcopy(bag)  # begins with nothing remembered
    expected = bag.transform(titles)
    fresh = copy.deepcopy(bag)
    with ThreadPoolExecutor(8) as pool:
        for row, got in enumerate(pool.map(lambda text: fresh.transform([text]), titles)):
            assert same_bits(got, expected[row])


@pytest.mark.parametrize(
    "named",
    [
        {"min_df": 0},
        {"min_df": True},
        {"max_tokens": -1},
        {"ngrams": (3, 2)},
        {"ngrams": (0, 2)},
        {"subwords": 0},
        {"ngrams": (2, 3), "subwords": 100},
    ],
)
def test_senseless_settings_are_refused(named: dict[str, object]) -> None:
    with pytest.raises(UserError):
        BagOfTokens(**named)


def test_learning_needs_texts_with_words() -> None:
    for texts in ([], [""], ["one", "two"]):
        with pytest.raises(UserError, match=r"min_df|no texts"):
            BagOfTokens().fit(texts)
    with pytest.raises(UserError, match="fit first"):
        BagOfTokens().transform(["a"])


@pytest.mark.parametrize("variant", [{}, {"subwords": 50}], ids=str)
def test_a_lone_surrogate_in_training_is_named(variant: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"texts\[1\].*surrogate"):
        BagOfTokens(**variant).fit(["fine words", "broken \udcff"])


def damage(content: bytes) -> dict[str, bytes]:
    whole = orjson.loads(content)

    def edited(change: object) -> bytes:
        fresh = orjson.loads(content)
        change(fresh)  # type: ignore[operator]
        return orjson.dumps(fresh)

    assert "deepxc" in whole["model"]
    return {
        "cut off": content[: len(content) // 2],
        "empty": b"",
        "not a tokenizer": b"[1, 2]",
        "newer": edited(lambda w: w["model"]["deepxc"].update(format=99)),
        "no counts": edited(lambda w: w["model"]["deepxc"].pop("document_counts")),
        "fewer counts": edited(lambda w: w["model"]["deepxc"]["document_counts"].pop()),
        "unknown setting": edited(lambda w: w["model"]["deepxc"]["settings"].update(stemming=True)),
        "other case rule": edited(lambda w: w["normalizer"]["normalizers"].pop()),
        "other splitter": edited(lambda w: w["pre_tokenizer"]["pattern"].update(Regex="[a-z]+")),
        "model of another kind": edited(lambda w: w["model"].update(type="Nonsense")),
        "no section": edited(lambda w: w["model"].pop("deepxc")),
    }


def test_damaged_files_are_refused_by_name(titles: list[str], tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    BagOfTokens().fit(titles).save(path)
    for kind, content in damage(path.read_bytes()).items():
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"tokenizer\.json") as caught:
            BagOfTokens.load(path)
        assert caught.value.remedy, kind
        assert isinstance(caught.value, ModelFolderError) or kind in ("no section", "not a tokenizer")
    with pytest.raises(UserError, match=r"absent\.json"):
        BagOfTokens.load(tmp_path / "absent.json")


def test_saving_keeps_the_old_file_when_it_fails(titles: list[str], tmp_path: Path) -> None:
    bag = BagOfTokens().fit(titles)
    path = tmp_path / "tokenizer.json"
    bag.save(path)
    before = path.read_bytes()
    bag.definition.extras["unwritable"] = object()
    with pytest.raises(TypeError):
        bag.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["tokenizer.json"]

"""Pretrained tokenizers, tried with one trained here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from deepxc.errors import ModelFolderError, UserError
from deepxc.text.pretrained import PretrainedTokenizer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def trained(titles: list[str]) -> Tokenizer:
    """A BERT-like tokenizer with special tokens around the text."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
    trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(titles, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def test_ids_and_mask(trained: Tokenizer, titles: list[str]) -> None:
    encoded = PretrainedTokenizer(trained, max_length=8).encode(titles)
    assert encoded.ids.shape == encoded.mask.shape == (len(titles), 8)
    for text, ids, mask in zip(titles, encoded.ids, encoded.mask, strict=True):
        whole = trained.encode(text).ids
        expected = whole if len(whole) <= 8 else [*whole[:7], trained.token_to_id("[SEP]")]
        assert ids[mask == 1].tolist() == expected
        assert set(ids[mask == 0].tolist()) <= {trained.token_to_id("[PAD]")}
    assert trained.truncation is None  # the given tokenizer is not changed


@pytest.mark.parametrize("ids_at_once", [1, 40, 10_000])
def test_batches_hold_every_text_once_and_little_padding(
    trained: Tokenizer, titles: list[str], ids_at_once: int
) -> None:
    tokenizer = PretrainedTokenizer(trained, max_length=16)
    together = tokenizer.encode(titles)
    seen = []
    for batch in tokenizer.batches(titles, ids_at_once=ids_at_once):
        assert batch.ids.size <= max(ids_at_once, batch.ids.shape[1])
        width = batch.ids.shape[1]
        np.testing.assert_array_equal(batch.ids, together.ids[batch.rows, :width])
        np.testing.assert_array_equal(batch.mask, together.mask[batch.rows, :width])
        assert batch.mask[0].all()  # none wider than its longest text
        seen += batch.rows.tolist()
    assert sorted(seen) == list(range(len(titles)))


def test_folders_and_files_open_alike(trained: Tokenizer, titles: list[str], tmp_path: Path) -> None:
    trained.save(str(tmp_path / "tokenizer.json"))
    expected = PretrainedTokenizer(trained).encode(titles).ids
    for source in (tmp_path, str(tmp_path), tmp_path / "tokenizer.json"):
        np.testing.assert_array_equal(PretrainedTokenizer.load(source).encode(titles).ids, expected)


def test_what_is_no_tokenizer_is_refused(trained: Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"folder without tokenizer\.json"):
        PretrainedTokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0", "mod')
    with pytest.raises(ModelFolderError, match=r"tokenizer\.json: no tokenizer"):
        PretrainedTokenizer.load(tmp_path)
    with pytest.raises(UserError, match=r"no/such/place"):
        PretrainedTokenizer.load(tmp_path / "no/such/place")
    with pytest.raises(UserError, match=r"max_length.*2 special"):
        PretrainedTokenizer(trained, max_length=2)


def test_no_texts_and_bad_texts(trained: Tokenizer) -> None:
    tokenizer = PretrainedTokenizer(trained)
    assert tokenizer.encode([]).ids.shape == (0, 0)
    assert list(tokenizer.batches([])) == []
    with pytest.raises(UserError, match=r"texts\[1\].*surrogate"):
        tokenizer.encode(["fine", "\ud83d"])
    with pytest.raises(UserError, match=r"texts\[0\].*NoneType"):
        tokenizer.encode([None])  # type: ignore[list-item]

"""Tokenizers that come with a pretrained encoder: ids and attention masks as arrays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer

from deepxc.errors import ModelFolderError, UserError
from deepxc.text.pieces import refuse_surrogates, texts_checked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_PAD_NAMES = ("[PAD]", "<pad>", "<|padding|>", "<|endoftext|>")
_TEXTS_AT_ONCE = 8_192


class EncodedTexts(NamedTuple):
    """Token ids of some texts, padded to the longest of them.

    Attributes:
        ids: `(n_texts, longest)`, int64.
        mask: The same shape, int64: 1 on tokens, 0 on padding.
    """

    ids: np.ndarray
    mask: np.ndarray


class EncodedBatch(NamedTuple):
    """One batch of texts of about the same length.

    Attributes:
        rows: Which texts, as row numbers.
        ids: Their token ids.
        mask: 1 on tokens, 0 on padding.
    """

    rows: np.ndarray
    ids: np.ndarray
    mask: np.ndarray


class PretrainedTokenizer:
    """Wraps a `tokenizers` object with what its encoder expects: special tokens, truncation, padding.

    Args:
        tokenizer: The object; it is copied, never changed.
        max_length: Ids a text at most, special tokens included.
        pad_id: Id that fills rows up; None takes the tokenizer's own.
    """

    def __init__(self, tokenizer: Tokenizer, *, max_length: int = 32, pad_id: int | None = None) -> None:
        if isinstance(max_length, bool) or not isinstance(max_length, int) or max_length < 1:
            raise UserError(f"{max_length!r} is not a whole number above 0", where="max_length")
        special = tokenizer.num_special_tokens_to_add(is_pair=False)
        if max_length <= special:
            raise UserError(
                f"{max_length} ids leave no room for text beside {special} special tokens",
                where="max_length",
                remedy=f"Give {special + 1} or more",
            )
        self.max_length = max_length
        self.pad_id = _pad_id(tokenizer) if pad_id is None else pad_id
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length)

    @classmethod
    def load(cls, source: str | Path, **named: Any) -> PretrainedTokenizer:  # noqa: ANN401 (passed on)
        """Open a folder that holds `tokenizer.json`, such a file, or a model's name on the hub.

        Args:
            source: A path; a string that is no path is taken for a hub name, which needs the `transformers` extra.
            **named: As in the class.
        """
        path = Path(source)
        if path.is_dir():
            if not (path / "tokenizer.json").is_file():
                raise UserError(
                    "a folder without tokenizer.json",
                    where=str(source),
                    remedy="Save the tokenizer in its fast form, which writes that file",
                )
            path = path / "tokenizer.json"
        if path.is_file():
            try:
                return cls(Tokenizer.from_file(str(path)), **named)
            except UserError:
                raise
            except Exception as error:  # tokenizers raises bare Exception
                raise ModelFolderError(f"no tokenizer ({error})", where=str(path), remedy="Fetch it again") from error
        return cls(_from_hub(str(source)), **named)

    @property
    def n_ids(self) -> int:
        """Rows of the encoder's embedding table that the tokenizer can ask for."""
        return self._tokenizer.get_vocab_size()

    def encode(self, texts: Iterable[str]) -> EncodedTexts:
        """Ids and mask of all texts, padded to the longest."""
        return self._padded(self._id_lists(texts_checked(texts)))

    def batches(self, texts: Iterable[str], *, ids_at_once: int = 8_192) -> Iterator[EncodedBatch]:
        """Batches of texts of like length, the longest first, so that little is spent on padding.

        Args:
            texts: The texts.
            ids_at_once: A batch holds as many texts as fit into this many ids, padding included; one at least.
        """
        if ids_at_once < 1:
            raise UserError(f"{ids_at_once!r} is not a whole number above 0", where="ids_at_once")
        lists = self._id_lists(texts_checked(texts))
        lengths = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        order = np.argsort(-lengths, kind="stable")
        start = 0
        while start < len(order):
            stop = start + max(1, ids_at_once // max(1, int(lengths[order[start]])))
            rows = order[start:stop]
            yield EncodedBatch(rows, *self._padded([lists[row] for row in rows.tolist()]))
            start = stop

    def to_json(self) -> str:
        """The tokenizer file's content, for a model folder."""
        return self._tokenizer.to_str()

    def _id_lists(self, texts: Sequence[str]) -> list[list[int]]:
        lists: list[list[int]] = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            part = list(texts[start : start + _TEXTS_AT_ONCE])
            try:
                lists.extend(encoded.ids for encoded in self._tokenizer.encode_batch_fast(part))
            except (UnicodeError, TypeError):
                refuse_surrogates(part, start)
                raise
        return lists

    def _padded(self, lists: list[list[int]]) -> EncodedTexts:
        lengths = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        inside = np.arange(lengths.max(initial=0)) < lengths[:, None]
        ids = np.full(inside.shape, self.pad_id, dtype=np.int64)
        ids[inside] = np.fromiter((i for row in lists for i in row), dtype=np.int64, count=int(lengths.sum()))
        return EncodedTexts(ids, inside.astype(np.int64))


def _pad_id(tokenizer: Tokenizer) -> int:
    """The id the tokenizer pads with, or that of a token by one of the usual names; 0 where masking must do."""
    if tokenizer.padding is not None:
        return int(tokenizer.padding["pad_id"])
    found = (tokenizer.token_to_id(name) for name in _PAD_NAMES)
    return next((i for i in found if i is not None), 0)


def _from_hub(name: str) -> Tokenizer:
    try:
        from transformers import AutoTokenizer  # pyrefly: ignore[missing-import]
    except ImportError:
        raise UserError(
            "neither a folder nor a file, and hub names need transformers",
            where=name,
            remedy="Check the path, or run pip install 'deepxc[transformers]'",
        ) from None
    try:
        loaded = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise UserError(
            f"no tokenizer found ({first})",
            where=name,
            remedy="Check the name and the network; without one, give a local folder that holds the model",
        ) from error
    backend = getattr(loaded, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise UserError("its tokenizer has no fast form", where=name, remedy="Choose a model with a fast tokenizer")
    return backend

"""Texts as rows of token ids of one length, for convolutional and recurrent encoders."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from deepxc.errors import ModelFolderError, UserError
from deepxc.text.definition import TokenDefinition, TokenSettings
from deepxc.text.learning import learn
from deepxc.text.pieces import TEXTS_AT_ONCE, TokenRows, pieces_of, texts_checked

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_SECTION = "sequences"


class PaddedIds(NamedTuple):
    """Token ids of each text, cut or filled up to one length.

    Attributes:
        ids: `(n_texts, length)`, int32.
        lengths: How many of each row's ids are tokens, int32; the rest is padding.
    """

    ids: np.ndarray
    lengths: np.ndarray


@dataclass(frozen=True)
class SequenceSettings:
    """How token ids become rows of one length.

    Attributes:
        length: Ids a row.
        unknown: `keep` gives tokens outside the vocabulary one shared id, `drop` leaves them out.
        stop_words: Words to leave out, compared after normalisation.
    """

    length: int = 32
    unknown: Literal["keep", "drop"] = "keep"
    stop_words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.stop_words, str):
            raise UserError("one string where a list of words belongs", where="stop_words", remedy="Put it in a list")
        object.__setattr__(self, "stop_words", tuple(self.stop_words))
        if isinstance(self.length, bool) or not isinstance(self.length, int) or self.length < 1:
            raise UserError(f"{self.length!r} is not a whole number above 0", where="length")
        if self.unknown not in ("keep", "drop"):
            raise UserError(f"{self.unknown!r} is neither 'keep' nor 'drop'", where="unknown")


class TokenSequences:
    """Turns texts into padded id sequences by the definition that a bag of tokens shares.

    Ids are the columns of the bag; the unknown token and the padding come after them, so an embedding table needs
    `n_ids` rows. Character n-grams have no order among words and are left out.

    Args:
        definition: The learned vocabulary (`BagOfTokens.definition`, `TokenDefinition.load`).
        settings: Length, unknown tokens and stop words.
    """

    def __init__(self, definition: TokenDefinition, settings: SequenceSettings | None = None) -> None:
        self.settings = settings or SequenceSettings()
        self.definition = definition
        if self.settings.stop_words and definition.settings.subwords is not None:
            raise UserError(
                "stop words are words, but these tokens are parts of words",
                where="stop_words",
                remedy="Give no stop words, or learn a vocabulary without subwords",
            )
        stop_words = texts_checked(self.settings.stop_words, "stop_words")
        self._pieces = pieces_of(definition, with_ngrams=False, stop_words=stop_words)
        self._dropped = np.zeros(definition.n_tokens + 2, dtype=bool)
        self._dropped[definition.pad_id] = True  # what a stop word reads as
        self._dropped[definition.unknown_id] = self.settings.unknown == "drop"

    @classmethod
    def learn(
        cls, texts: Iterable[str], settings: SequenceSettings | None = None, tokens: TokenSettings | None = None
    ) -> TokenSequences:
        """Learn the vocabulary from texts."""
        tokens = replace(tokens or TokenSettings(), ngrams=None)
        return cls(learn(texts_checked(texts), tokens).definition, settings)

    @property
    def pad_id(self) -> int:
        """Id that fills rows up."""
        return self.definition.pad_id

    @property
    def unknown_id(self) -> int:
        """Id of every token outside the vocabulary."""
        return self.definition.unknown_id

    @property
    def n_ids(self) -> int:
        """Rows of an embedding table: tokens, the unknown token, padding."""
        return self.definition.n_tokens + 2

    def transform(self, texts: Iterable[str]) -> PaddedIds:
        """Padded ids and lengths; safe to call from several threads at once."""
        checked = texts_checked(texts)
        ids = np.full((len(checked), self.settings.length), self.pad_id, dtype=np.int32)
        lengths = np.zeros(len(checked), dtype=np.int32)
        for start in range(0, len(checked), TEXTS_AT_ONCE):
            rows = self._pieces.read(checked[start : start + TEXTS_AT_ONCE], start)
            stop = start + len(rows.bounds) - 1
            self._fill(rows, ids[start:stop], lengths[start:stop])
        return PaddedIds(ids, lengths)

    def _fill(self, rows: TokenRows, ids: np.ndarray, lengths: np.ndarray) -> None:
        keep = ~self._dropped[rows.ids]
        kept_before = np.concatenate([[0], np.cumsum(keep)])
        begins = kept_before[rows.bounds[:-1]]
        np.minimum(kept_before[rows.bounds[1:]] - begins, self.settings.length, out=lengths, casting="unsafe")
        places = np.arange(self.settings.length)
        inside = places < lengths[:, None]
        ids[inside] = rows.ids[keep][(begins[:, None] + places)[inside]]

    def save(self, path: str | Path) -> None:
        """Write one `tokenizer.json` that holds the vocabulary and these settings."""
        extras = self.definition.extras | {_SECTION: asdict(self.settings)}
        replace(self.definition, extras=extras).save(path)

    @classmethod
    def load(cls, path: str | Path) -> TokenSequences:
        """Read saved sequences, or the file of a bag (then with default settings)."""
        definition = TokenDefinition.load(path)
        try:
            return cls(definition, SequenceSettings(**definition.extras.get(_SECTION, {})))
        except TypeError as error:
            raise ModelFolderError(f"damaged ({error})", where=str(path), remedy="Save it again") from None

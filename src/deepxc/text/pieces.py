"""Texts to token ids, each distinct piece of text tokenised once.

A piece is what `str.split()` leaves between whitespace. No whitespace character is part of a word, none is changed by
its neighbours when Unicode is normalised, and case is folded character by character: so the tokens of a text are its
pieces' tokens in a row, and a piece met before costs one dictionary lookup. This holds by construction and is tested
against whole-text tokenisation. In a text that is all ASCII, even less is needed: case is folded and every sign that is
no part of a word is blanked first, byte by byte, so that pieces are words and fewer of them are distinct.
"""

from __future__ import annotations

import re
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deepxc.errors import UserError
from deepxc.text.definition import NGRAM_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tokenizers import Tokenizer

    from deepxc.text.definition import TokenDefinition, TokenSettings

    ReadPieces = Callable[[list[str]], list[list[int]]]

TEXTS_AT_ONCE = 65_536  # one batch: bounds the memory of a pass over many texts
_CHUNK = 256  # texts whose pieces are held at the same time; small enough to stay in the CPU's cache
_LONGEST_KEPT = 128  # characters; longer pieces hardly come twice
_MEMORY_BYTES = 384 * 2**20  # start afresh past this


class TokenRows(NamedTuple):
    """Ids of all tokens of some texts in reading order; text `i` owns `ids[bounds[i]:bounds[i + 1]]`."""

    ids: np.ndarray
    bounds: np.ndarray


class WordReader:
    """Pieces to the ids of their words and, where set, of the words' character n-grams.

    ASCII needs no normaliser beyond case and no Unicode word rule, so Python's regex engine does it; everything else
    goes through `tokenizers`.

    Args:
        settings: How words are made.
        ids: Id of each word; a lookup of a new word must answer too (unknown, or a fresh id while learning).
        with_ngrams: Give n-grams too, if the settings ask for them.
    """

    def __init__(self, settings: TokenSettings, ids: Mapping[str, int], *, with_ngrams: bool = True) -> None:
        self._ascii_words = re.compile(r"\w+", re.ASCII).findall
        self._normaliser = settings.normaliser()
        self._splitter = settings.splitter()
        self._lowercase = settings.lowercase
        self._ngrams = settings.ngrams if with_ngrams else None
        self._ids = ids

    def __getstate__(self) -> dict[str, object]:
        return {k: v for k, v in self.__dict__.items() if k != "_ascii_words"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _ascii_words=re.compile(r"\w+", re.ASCII).findall)

    def __call__(self, pieces: list[str]) -> list[list[int]]:
        """Ids of each piece."""
        id_of = self._ids.__getitem__
        if self._ngrams is None:
            return [list(map(id_of, self.words(piece))) for piece in pieces]
        return [[i for word in self.words(piece) for i in map(id_of, self._with_ngrams(word))] for piece in pieces]

    def words(self, piece: str) -> list[str]:
        """Normalised words of a piece."""
        if piece.isascii():
            return self._ascii_words(piece.lower() if self._lowercase else piece)
        return [word for word, _ in self._splitter.pre_tokenize_str(self._normaliser.normalize_str(piece))]

    def _with_ngrams(self, word: str) -> list[str]:
        """The word, then its n-grams with the word's two ends marked."""
        assert self._ngrams is not None
        ended = f"<{word}>"
        lengths = range(self._ngrams[0], min(self._ngrams[1], len(ended)) + 1)
        grams = [NGRAM_PREFIX + ended[i : i + n] for n in lengths for i in range(len(ended) - n + 1)]
        return [word, *grams]


class SubwordReader:
    """Pieces to the ids of their learned subwords; ids of subwords that were not kept become `unknown_id`."""

    def __init__(self, tokenizer: Tokenizer, renumber: np.ndarray | None = None) -> None:
        self._tokenizer = tokenizer
        self._renumber = None if renumber is None else renumber.tolist()

    def __call__(self, pieces: list[str]) -> list[list[int]]:
        """Ids of each piece."""
        found = [encoded.ids for encoded in self._tokenizer.encode_batch_fast(pieces, add_special_tokens=False)]
        if self._renumber is None:
            return found
        new = self._renumber.__getitem__
        return [list(map(new, ids)) for ids in found]


class KnownWords(dict[str, int]):
    """Vocabulary in which every other word has one same id."""

    def __init__(self, ids: Mapping[str, int], unknown_id: int) -> None:
        super().__init__(ids)
        self._unknown_id = unknown_id

    def __missing__(self, word: str) -> int:
        return self._unknown_id

    def __reduce__(self) -> tuple[type[KnownWords], tuple[dict[str, int], int]]:
        return KnownWords, (dict(self), self._unknown_id)


def reader_of(definition: TokenDefinition, *, with_ngrams: bool = True, stop_words: Sequence[str] = ()) -> ReadPieces:
    """The reader that a learned definition asks for; stop words, known or not, read as padding."""
    if definition.settings.subwords is not None:
        renumber = np.arange(definition.tokenizer.get_vocab_size())
        renumber[definition.n_tokens :] = definition.unknown_id
        return SubwordReader(definition.tokenizer, renumber)
    known = KnownWords(definition.vocabulary, definition.unknown_id)
    reader = WordReader(definition.settings, known, with_ngrams=with_ngrams)
    for piece in (piece for entry in stop_words for piece in entry.split()):
        known.update(dict.fromkeys(reader.words(piece), definition.pad_id))
    return reader


class _Memory:
    """Pieces met so far. A code from 0 up is the piece's only id; code `-1-k` means the ids in `several[k]`."""

    __slots__ = ("bytes", "codes", "lock", "several")

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.several: list[tuple[int, ...]] = [()]
        self.bytes = 0
        self.lock = Lock()


class PieceCache:
    """Texts to token ids through a bounded memory of pieces; safe to call from several threads.

    Args:
        read_pieces: Gives the ids of pieces that are not remembered.
        lowercase: Whether the reader folds case.
        memory_bytes: About how much to remember before starting afresh.
    """

    def __init__(self, read_pieces: ReadPieces, *, lowercase: bool, memory_bytes: int = _MEMORY_BYTES) -> None:
        self._read_pieces = read_pieces
        self._lowercase = lowercase
        self._words_only = _ascii_words_only(lowercase)
        self._memory_bytes = memory_bytes
        self._memory = _Memory()

    def __getstate__(self) -> dict[str, object]:
        """A copy sent elsewhere learns its pieces again."""
        return {
            "read_pieces": self._read_pieces,
            "lowercase": self._lowercase,
            "memory_bytes": self._memory_bytes,
        }

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(**state)  # type: ignore[arg-type]

    def read(self, texts: Sequence[str], first_row: int = 0) -> TokenRows:
        """Token ids of some texts (one batch); `first_row` is the first one's row number in errors."""
        memory = self._bounded_memory()
        codes: list[int] = []
        bounds = [0]
        for start in range(0, len(texts), _CHUNK):
            self._read_chunk(memory, texts[start : start + _CHUNK], first_row + start, codes, bounds)
        ids, ends = _expand(np.array(codes, dtype=np.int64), memory.several)
        return TokenRows(ids, ends[bounds])

    def read_one(self, text: str) -> list[int]:
        """Token ids of one text, with the least overhead."""
        memory = self._bounded_memory()
        spaced = text.encode().translate(self._words_only).decode() if text.isascii() else text
        pieces = spaced.split()
        codes = list(map(memory.codes.get, pieces))
        if None in codes:
            codes = self._fill(memory, pieces, codes, [text], 0)
        ids: list[int] = []
        for code in codes:
            if code >= 0:  # type: ignore[operator]
                ids.append(code)  # type: ignore[arg-type]
            else:
                ids.extend(memory.several[-1 - code])  # type: ignore[operator]
        return ids

    def renumbered(self, new_ids: np.ndarray, read_pieces: ReadPieces) -> PieceCache:
        """What is remembered here, under other ids, for a reader that gives those."""
        new = new_ids.tolist()
        made = PieceCache(read_pieces, lowercase=self._lowercase)
        old, memory = self._memory, made._memory
        memory.codes = {piece: new[code] if code >= 0 else code for piece, code in old.codes.items()}
        memory.several = [tuple(map(new.__getitem__, ids)) for ids in old.several]
        memory.bytes = old.bytes
        return made

    def _bounded_memory(self) -> _Memory:
        """The memory for one call; a call under way keeps the one it began with."""
        memory = self._memory
        if memory.bytes > self._memory_bytes:
            memory = self._memory = _Memory()
        return memory

    def _read_chunk(
        self, memory: _Memory, texts: Sequence[str], first_row: int, codes: list[int], bounds: list[int]
    ) -> None:
        pieces: list[str] = []
        begun, words_only = len(codes), self._words_only
        for text in texts:
            spaced = text.encode().translate(words_only).decode() if text.isascii() else text
            pieces.extend(spaced.split())
            bounds.append(begun + len(pieces))
        found = list(map(memory.codes.get, pieces))
        codes.extend(self._fill(memory, pieces, found, texts, first_row) if None in found else found)  # type: ignore[arg-type]

    def _fill(
        self, memory: _Memory, pieces: list[str], codes: list[int | None], texts: Sequence[str], first_row: int
    ) -> list[int]:
        """The codes with those of unknown pieces filled in."""
        missing: list[int] = []
        at = -1
        while True:
            try:
                at = codes.index(None, at + 1)
            except ValueError:
                break
            missing.append(at)
        unknown = dict.fromkeys(map(pieces.__getitem__, missing))
        try:
            new = self._learn(memory, list(unknown))
        except (UnicodeError, TypeError):  # a batch of tokenizers calls it a TypeError
            refuse_surrogates(texts, first_row)
            raise
        for at in missing:
            codes[at] = new[pieces[at]]
        return codes  # type: ignore[return-value]

    def _learn(self, memory: _Memory, pieces: list[str]) -> dict[str, int]:
        new: dict[str, int] = {}
        with memory.lock:
            for piece, ids in zip(pieces, self._read_pieces(pieces), strict=True):
                if len(ids) == 1:
                    code = ids[0]
                elif ids:
                    memory.several.append(tuple(ids))
                    code = -len(memory.several)
                    memory.bytes += 56 + 40 * len(ids)
                else:
                    code = -1
                new[piece] = code
                if len(piece) <= _LONGEST_KEPT:
                    memory.codes[piece] = code
                    memory.bytes += 150 + len(piece)
        return new


def pieces_of(
    definition: TokenDefinition,
    *,
    with_ngrams: bool = True,
    stop_words: Sequence[str] = (),
    memory_bytes: int = _MEMORY_BYTES,
) -> PieceCache:
    """An empty cache for a learned definition; arguments as of `reader_of` and `PieceCache`."""
    reader = reader_of(definition, with_ngrams=with_ngrams, stop_words=stop_words)
    return PieceCache(reader, lowercase=definition.settings.lowercase, memory_bytes=memory_bytes)


def _ascii_words_only(lowercase: bool) -> bytes:
    """Table for `bytes.translate`: word characters stay or are folded, all other ASCII becomes a space."""
    kept = bytes(c if chr(c).isalnum() or c == ord("_") else ord(" ") for c in range(128)) + bytes(range(128, 256))
    return kept.lower() if lowercase else kept


def _expand(codes: np.ndarray, several: list[tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Ids for codes, and where the ids of each code begin (one more entry than codes)."""
    begins = np.arange(len(codes) + 1, dtype=np.int64)
    places = np.flatnonzero(codes < 0)
    if not len(places):
        return codes.astype(np.int32), begins
    used, which = np.unique(codes[places], return_inverse=True)
    groups = [several[-1 - code] for code in used.tolist()]
    sizes = np.fromiter(map(len, groups), dtype=np.int64, count=len(groups))
    flat = np.fromiter(chain.from_iterable(groups), dtype=np.int32, count=int(sizes.sum()))
    counts = np.ones(len(codes), dtype=np.int64)
    counts[places] = sizes[which]
    np.cumsum(counts, out=begins[1:])
    ids = np.empty(begins[-1], dtype=np.int32)
    single = codes >= 0
    ids[begins[:-1][single]] = codes[single]
    lengths = sizes[which]
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    source = np.repeat((np.cumsum(sizes) - sizes)[which], lengths) + within
    ids[np.repeat(begins[places], lengths) + within] = flat[source]
    return ids, begins


def texts_checked(texts: Iterable[str], where: str = "texts") -> Sequence[str]:
    """The texts as a sequence, each certain to be a string."""
    if isinstance(texts, (str, bytes)):
        raise UserError("one text where a list of texts belongs", where=where, remedy="Put it in a list")
    listed = texts if isinstance(texts, (list, tuple)) else list(texts)
    if not all(issubclass(kind, str) for kind in set(map(type, listed))):
        row = next(i for i, text in enumerate(listed) if not isinstance(text, str))
        raise UserError(
            f"not a text but {type(listed[row]).__name__}",
            where=f"{where}[{row}]",
            remedy="Give strings only; an empty string stands for a missing text",
        )
    return listed


def refuse_surrogates(texts: Sequence[str], first_row: int) -> None:
    """Raise for the first text that is not valid Unicode, if there is one."""
    for row, text in enumerate(texts, first_row):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UserError(
                f"half a character (U+{ord(text[error.start]):04X}, a lone surrogate) at position {error.start}",
                where=f"texts[{row}]",
                remedy="Decode the text with the encoding it was written in, or drop that character",
            ) from None

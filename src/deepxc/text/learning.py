"""Learns a vocabulary with document counts from texts, each text read once."""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import orjson
from tokenizers import Tokenizer, models, trainers

from deepxc.errors import UserError
from deepxc.text.definition import NGRAM_PREFIX, PAD, UNKNOWN, TokenDefinition, TokenSettings
from deepxc.text.pieces import (
    TEXTS_AT_ONCE,
    PieceCache,
    SubwordReader,
    TokenRows,
    WordReader,
    reader_of,
    refuse_surrogates,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class Learned(NamedTuple):
    """A vocabulary, the pieces met while learning it, and the texts' tokens in it."""

    definition: TokenDefinition
    pieces: PieceCache
    rows: list[TokenRows]


def learn(texts: Sequence[str], settings: TokenSettings) -> Learned:
    """Learn the vocabulary of `texts`; ids go by document count, ties by the token itself."""
    if not texts:
        raise UserError("no texts to learn a vocabulary from", where="texts")
    words: defaultdict[str, int] = defaultdict(count().__next__)
    if settings.subwords is None:
        reader: WordReader | SubwordReader = WordReader(settings, words)
        trained = None
    else:
        trained = _train_subwords(texts, settings, settings.subwords)
        reader = SubwordReader(trained)
    pieces = PieceCache(
        reader, lowercase=settings.lowercase, memory_bytes=2**62
    )  # old numbers must not be forgotten before the end
    rows = [pieces.read(texts[i : i + TEXTS_AT_ONCE], i) for i in range(0, len(texts), TEXTS_AT_ONCE)]
    tokens = list(words) if trained is None else _in_order(trained)
    counts = _document_counts(rows, len(tokens)).tolist()
    kept = _kept(tokens, counts, settings)
    new_ids = np.full(len(tokens) + 1, len(kept), dtype=np.int32)  # all else is unknown, and so is its own id
    new_ids[kept] = np.arange(len(kept), dtype=np.int32)
    ids = {tokens[old]: new for new, old in enumerate(kept.tolist())} | {UNKNOWN: len(kept), PAD: len(kept) + 1}
    model = models.WordLevel(ids, UNKNOWN) if trained is None else _renumbered_subwords(trained, ids)
    definition = TokenDefinition(settings, settings.tokenizer(model), [counts[i] for i in kept.tolist()], len(texts))
    renumbered = pieces.renumbered(new_ids, reader_of(definition))
    return Learned(definition, renumbered, [TokenRows(new_ids[r.ids], r.bounds) for r in rows])


def row_keys(rows: TokenRows, n_ids: int) -> tuple[np.ndarray, int]:
    """One sorted number per token, `row << shift | id`, and the shift; ids from `n_ids` up are left out."""
    shift = max(int(n_ids).bit_length(), 1)
    numbers = np.arange(len(rows.bounds) - 1, dtype=np.int64) << shift
    keys = np.repeat(numbers, np.diff(rows.bounds))
    keys |= rows.ids
    if len(rows.ids) and rows.ids.max() >= n_ids:
        keys = keys[rows.ids < n_ids]
    keys.sort()
    return keys, shift


def _document_counts(chunks: list[TokenRows], n_ids: int) -> np.ndarray:
    counts = np.zeros(n_ids, dtype=np.int64)
    for rows in chunks:
        keys, shift = row_keys(rows, n_ids)
        distinct = keys[np.flatnonzero(np.diff(keys, prepend=-1))]
        counts += np.bincount(distinct & ((1 << shift) - 1), minlength=n_ids)
    return counts


def _kept(tokens: list[str], counts: list[int], settings: TokenSettings) -> np.ndarray:
    """Old ids of the tokens to keep, in their new order."""
    least = settings.min_df if settings.ngram_min_df is None else settings.ngram_min_df
    needed = (least if token.startswith(NGRAM_PREFIX) else settings.min_df for token in tokens)
    frequent = [i for i, (n, enough) in enumerate(zip(counts, needed, strict=True)) if n >= enough]
    if not frequent:
        raise UserError(
            f"no token occurs in {settings.min_df} texts or more",
            where="min_df",
            remedy="Lower min_df, or give texts with words in them",
        )
    order = sorted(frequent, key=lambda i: (-counts[i], tokens[i]))
    return np.array(order[: settings.max_tokens], dtype=np.int64)


def _train_subwords(texts: Sequence[str], settings: TokenSettings, size: int) -> Tokenizer:
    """Byte pair encoding over the words."""
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        show_progress=False,
        special_tokens=[],  # they would be recognised in texts; ours live in the model alone
    )
    tokenizer = settings.tokenizer(models.BPE())
    try:
        tokenizer.train_from_iterator(texts, trainer)
    except UnicodeError:
        refuse_surrogates(texts, 0)
        raise
    return tokenizer


def _in_order(tokenizer: Tokenizer) -> list[str]:
    """Tokens by id."""
    vocabulary = tokenizer.get_vocab()
    return sorted(vocabulary, key=vocabulary.__getitem__)


def _renumbered_subwords(trained: Tokenizer, ids: dict[str, int]) -> models.BPE:
    """The same merges over new ids; subwords without a new id come last, because merges pass through them."""
    last = [token for token in _in_order(trained) if token not in ids]
    merges = [tuple(pair) for pair in orjson.loads(trained.to_str())["model"]["merges"]]
    return models.BPE(
        ids | {token: i for i, token in enumerate(last, len(ids))},
        merges,
        unk_token=UNKNOWN,
        fuse_unk=True,
    )

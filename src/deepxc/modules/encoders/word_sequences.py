"""Texts as sequences of word vectors: what convolutional and recurrent encoders read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from deepxc.modules.encoders.bags import texts_of, token_settings
from deepxc.modules.encoders.stored import TOKENIZER, StoredEncoder
from deepxc.modules.encoders.token_vectors import Start, start_vectors
from deepxc.modules.tables import RowTable
from deepxc.text.bag import BagOfTokens
from deepxc.text.sequences import PaddedIds, SequenceSettings, TokenSequences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from scipy import sparse

    from deepxc.data.dataset import Split
    from deepxc.text.definition import TokenSettings


class SequenceBatch(NamedTuple):
    """Sequences of words, laid end to end without padding and numbered among the distinct words of the batch.

    Attributes:
        words: The distinct words' ids, int64.
        places: Where in `words` each word of the first text is, then of the second, and so on, int64.
        lengths: Words of each text, int64.
    """

    words: np.ndarray
    places: np.ndarray
    lengths: np.ndarray


@dataclass(frozen=True, eq=False)
class SequenceInputs:
    """Texts as padded ids.

    Attributes:
        ids: (n, length), int32.
        lengths: How many of each row's ids are words.
    """

    ids: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: np.ndarray) -> SequenceBatch:
        """The given rows."""
        lengths = self.lengths[rows].astype(np.int64)
        inside = np.arange(self.ids.shape[1]) < lengths[:, None]
        words, places = np.unique(self.ids[rows][inside], return_inverse=True)
        return SequenceBatch(words.astype(np.int64), places.astype(np.int64, copy=False), lengths)


class WordSequenceEncoder(StoredEncoder):
    """What encoders of word sequences share: the vocabulary, the table of word vectors, reading.

    A subclass makes its further modules in `build` after this one's.
    """

    def __init__(
        self,
        *,
        word_dim: int,
        length: int,
        start: Start,
        tokens: TokenSettings | Mapping[str, Any] | None,
        seed: int,
        threads: int | None,
        stop_words: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.word_dim, self.length, self.start, self.stop_words = word_dim, length, start, list(stop_words)
        self.tokens = token_settings(tokens, ngrams=None)
        self.seed, self.threads = seed, threads
        self.reader: TokenSequences | None = None

    def build(self, n_ids: int) -> None:  # pyrefly: ignore[bad-override]
        """Make the table: a row for each token, one for unknown tokens, and one for padding, which stays unread."""
        self.table = RowTable(torch.empty(n_ids, self.word_dim))

    def learn(self, split: Split) -> SequenceInputs:
        """Learn the vocabulary and the start of its vectors."""
        texts = texts_of(split.inputs, type(self).__name__)
        self.reader = self.reading(texts)
        definition = self.reader.definition
        self.size(**self.sizes_for(self.reader))
        vectors = start_vectors(
            self.start,
            lambda: BagOfTokens.from_definition(definition).transform(texts),
            definition.n_tokens,
            definition,
            self.word_dim,
            self.seed,
            self.threads,
        )
        rest = np.zeros((self.reader.n_ids - len(vectors), self.word_dim), np.float32)
        self.table.weight = torch.from_numpy(np.concatenate([vectors, rest]))
        return SequenceInputs(*self.reader.transform(texts))

    def reading(self, texts: Sequence[str]) -> TokenSequences:
        """What turns texts into ids, learned from train texts."""
        settings = SequenceSettings(length=self.length, stop_words=tuple(self.stop_words))
        return TokenSequences.learn(texts, settings, self.tokens)

    def sizes_for(self, reader: TokenSequences) -> dict[str, int]:
        """What `build` is called with."""
        return {"n_ids": reader.n_ids}

    def read(self, inputs: Sequence[str] | sparse.csr_matrix | np.ndarray) -> SequenceInputs:
        """Read new texts; tokens that were not learned share one vector."""
        reader = self.checked().reader
        assert reader is not None
        padded: PaddedIds = reader.transform(texts_of(inputs, type(self).__name__))
        return SequenceInputs(*padded)

    def distinct_vectors(self, batch: SequenceBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Vectors of the batch's distinct words, and for each word which of them is its own.

        Each row is read once: so the table's gradient has a row for each word, not for each place where it occurs.
        """
        device = self.table.weight.device
        vectors = self.table.rows(torch.from_numpy(batch.words).to(device))
        return vectors, torch.from_numpy(batch.places).to(device)

    def word_vectors(self, batch: SequenceBatch) -> torch.Tensor:
        """Vectors of all texts' words, end to end: (words, word_dim)."""
        vectors, places = self.distinct_vectors(batch)
        return torch.nn.functional.embedding(places, vectors)

    def write_reading(self, folder: Path) -> None:
        """Save the vocabulary."""
        assert self.reader is not None
        self.reader.save(folder / TOKENIZER)

    def read_reading(self, folder: Path) -> None:
        """Open the vocabulary."""
        self.reader = TokenSequences.load(folder / TOKENIZER)

"""InceptionXML's feature architecture: convolutions along the dimensions of stacked word vectors."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepxc.errors import UserError
from deepxc.modules.dropout import byte_dropout
from deepxc.modules.encoders.enhancement import EmbeddingEnhancement
from deepxc.modules.encoders.strided import StridedConvolutions
from deepxc.modules.encoders.word_sequences import SequenceBatch, SequenceInputs, WordSequenceEncoder
from deepxc.text.sequences import TokenSequences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepxc.data.dataset import Split
    from deepxc.modules.encoders.token_vectors import Start
    from deepxc.text.definition import TokenSettings

logger = logging.getLogger(__name__)

_STRIDE = 4
_WIDTHS = (4, 8, 16)
_LAST_WIDTH = 16
_LONGEST = 32  # words of a text that the paper reads, and the most that the rule takes
_LENGTH_STEP = 4
_HELD_WHOLE = 0.99  # share of the train texts that the rule leaves whole
_SPREAD = 0.25  # of each number in a word's vector, where vectors are not read from a file


class InceptionEncoder(WordSequenceEncoder):
    """A text's word vectors, stacked, are an image that filters cross along the dimensions, seeing all words at once.

    Words and dimensions first attend to each other, and each dimension is projected to `channels` numbers
    (`EmbeddingEnhancement`). Three convolutions of widths 4, 8 and 16 then run along the dimensions, one of width 16
    over what they make, all with a stride of 4; its responses are the features: 480 of them for 300 dimensions and 32
    channels. As in the published code, every stage ends in GELU and batch normalisation.

    Args:
        word_dim: Length of a word's vector: a multiple of 4, from 64 on.
        length: Words of a text that are read; 0 takes as many as leave 99 % of the train texts whole, at most 32.
        channels: Channels of every stage.
        attention: Words and dimensions attend to each other.
        word_dropout: Share of the word vectors' numbers that a training step blanks.
        dropout: The same between the convolutions.
        stop_words: Words that are left out.
        start: Where word vectors start (see `deepxc.modules.encoders.token_vectors`).
        tokens: How texts become words; character n-grams are left out.
        operands: Format of training's products and activations, `float32` or `bfloat16`; prediction is in float32.
        seed: Seed.
        threads: Threads that `learn` may use; None takes all cores.
    """

    kind = "inception"

    def __init__(
        self,
        *,
        word_dim: int = 300,
        length: int = 32,
        channels: int = 32,
        attention: bool = True,
        word_dropout: float = 0.25,
        dropout: float = 0.25,
        stop_words: Sequence[str] = (),
        start: Start = "spectral",
        tokens: TokenSettings | Mapping[str, Any] | None = None,
        operands: str = "float32",
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        if word_dim % _STRIDE or word_dim < _STRIDE * _LAST_WIDTH:
            raise UserError(
                f"word vectors of {word_dim} numbers",
                where="word_dim",
                remedy=f"Use a multiple of {_STRIDE} from {_STRIDE * _LAST_WIDTH} on",
            )
        if operands not in ("float32", "bfloat16"):
            raise UserError(f"{operands!r} is neither 'float32' nor 'bfloat16'", where="operands")
        super().__init__(
            word_dim=word_dim,
            length=length,
            start=start,
            tokens=tokens,
            seed=seed,
            threads=threads,
            stop_words=stop_words,
        )
        self.channels, self.attention, self.operands = channels, attention, operands
        self.word_dropout, self.dropout = word_dropout, dropout
        self.dim = channels * ((word_dim // _STRIDE - _LAST_WIDTH) // _STRIDE + 1)

    def reading(self, texts: Sequence[str]) -> TokenSequences:
        """The vocabulary, and how many words of a text are read."""
        if self.length:
            return super().reading(texts)
        given, self.length = self.length, _LONGEST
        reader = super().reading(texts)
        self.length = given
        words = reader.transform(texts).lengths
        enough = int(np.quantile(words, _HELD_WHOLE)) if len(words) else 1
        length = min(_LONGEST, max(_LENGTH_STEP, -(-enough // _LENGTH_STEP) * _LENGTH_STEP))
        logger.info("%d words of a text are read: %d %% of the texts have no more", length, 100 * _HELD_WHOLE)
        return TokenSequences(reader.definition, replace(reader.settings, length=length))

    def sizes_for(self, reader: TokenSequences) -> dict[str, int]:
        """Rows of the table, and words of a text."""
        return super().sizes_for(reader) | {"length": reader.settings.length}

    def build(self, n_ids: int, length: int) -> None:  # pyrefly: ignore[bad-override]
        """Make the table and the convolutions."""
        super().build(n_ids)
        wide = len(_WIDTHS) * self.channels
        self.enhancement = EmbeddingEnhancement(self.word_dim, length, self.channels, attention=self.attention)
        self.branches = StridedConvolutions(self.channels, self.channels, _WIDTHS, stride=_STRIDE)
        self.last = StridedConvolutions(wide, self.channels, (_LAST_WIDTH,), stride=_STRIDE, circular=False)
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm1d(size) for size in (self.channels, wide, self.channels))

    def learn(self, split: Split) -> SequenceInputs:
        """Learn the vocabulary and the start of its vectors, which are brought to the spread of published ones."""
        inputs = super().learn(split)
        if isinstance(self.start, str) and self.start in ("random", "projection", "spectral"):
            rows = self.table.weight[:-2]
            self.table.weight[:-2] *= _SPREAD / rows.std().clamp_min(1e-9)
        return inputs

    def forward(self, batch: SequenceBatch) -> torch.Tensor:
        """Features, (rows, dim)."""
        enhanced = self._settled(self.enhancement(self._stacked(batch)), 0)
        seen = self._settled(self.branches(enhanced), 1)
        seen = byte_dropout(seen, self.dropout, self.training)
        features = self._settled(self.last(seen), 2).reshape(len(batch.lengths), self.dim)
        return features.to(self.table.weight.dtype)

    def _stacked(self, batch: SequenceBatch) -> torch.Tensor:
        """Word vectors of each text, zeros after its last word: (rows, length, word_dim)."""
        vectors, places = self.distinct_vectors(batch)
        n, length = len(batch.lengths), self.enhancement.length
        words = byte_dropout(torch.nn.functional.embedding(places, vectors), self.word_dropout, self.training)
        if self.training and self.operands == "bfloat16":
            words = words.bfloat16()
        first = np.cumsum(batch.lengths) - batch.lengths
        into = np.arange(len(batch.places)) + np.repeat(np.arange(n) * length - first, batch.lengths)
        padded = words.new_zeros(n * length, self.word_dim)
        return padded.index_copy(0, torch.from_numpy(into).to(words.device), words).view(n, length, self.word_dim)

    def _settled(self, x: torch.Tensor, stage: int) -> torch.Tensor:
        """GELU, then batch normalisation of each channel."""
        activated = torch.nn.functional.gelu(x)
        return self.norms[stage](activated.flatten(0, 1)).view(x.shape)

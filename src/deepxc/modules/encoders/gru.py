"""A gated recurrent network over word vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepxc.errors import UserError
from deepxc.modules.encoders.word_sequences import SequenceBatch, WordSequenceEncoder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepxc.modules.encoders.token_vectors import Start
    from deepxc.text.definition import TokenSettings


class WordGRU(WordSequenceEncoder):
    """The network's state after a text's last word; of both directions, one behind the other.

    Padding costs nothing: the sequences are packed. A text without words has zero features.

    Args:
        dim: Features; with two directions each has half of them.
        word_dim: Length of a word's vector.
        layers: Layers.
        bidirectional: Read backwards too.
        length: Words of a text that are read.
        start: Where word vectors start (see `deepxc.modules.encoders.token_vectors`).
        tokens: How texts become words; character n-grams are left out.
        word_dropout: Share of the word vectors' numbers that a training step blanks.
        seed: Seed.
        threads: Threads that `learn` may use; None takes all cores.
    """

    kind = "gru"

    def __init__(
        self,
        dim: int = 512,
        *,
        word_dim: int = 300,
        layers: int = 1,
        bidirectional: bool = True,
        length: int = 32,
        start: Start = "spectral",
        tokens: TokenSettings | Mapping[str, Any] | None = None,
        word_dropout: float = 0.0,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        super().__init__(word_dim=word_dim, length=length, start=start, tokens=tokens, seed=seed, threads=threads)
        if bidirectional and dim % 2:
            raise UserError(f"{dim} features for two directions", where="dim", remedy="Give an even number")
        self.dim, self.layers, self.bidirectional, self.word_dropout = dim, layers, bidirectional, word_dropout

    def build(self, n_ids: int) -> None:
        """Make the table and the network."""
        super().build(n_ids)
        directions = 1 + self.bidirectional
        self.gru = torch.nn.GRU(
            self.word_dim, self.dim // directions, self.layers, batch_first=True, bidirectional=self.bidirectional
        )

    def forward(self, batch: SequenceBatch) -> torch.Tensor:
        """Features, (rows, dim)."""
        words = torch.dropout(self.word_vectors(batch), self.word_dropout, self.training)
        features = words.new_zeros(len(batch.lengths), self.dim)
        filled = np.flatnonzero(batch.lengths)  # a packed sequence has at least one word
        if not len(filled):
            return features
        rows = torch.from_numpy(filled).to(words.device)
        packed = packed_sequence(words, batch.lengths[filled])
        _, states = self.gru(packed)
        last = states[-(1 + self.bidirectional) :].transpose(0, 1).reshape(len(rows), self.dim)
        return features.index_copy(0, rows, last)


def packed_sequence(words: torch.Tensor, lengths: np.ndarray) -> torch.nn.utils.rnn.PackedSequence:
    """Texts laid end to end as recurrent networks read them: all first words, then all second ones, longest text first.

    PyTorch's own functions make it of padded sequences only.
    """
    order = np.argsort(-lengths, kind="stable")
    sizes = np.bincount(lengths)[::-1].cumsum()[::-1][1:]  # texts that have a first word, a second one, ...
    starts = (np.cumsum(lengths) - lengths)[order]
    place = np.repeat(np.arange(len(sizes)), sizes)
    rank = np.arange(len(place)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    index = torch.from_numpy(starts[rank] + place).to(words.device)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return torch.nn.utils.rnn.PackedSequence(
        words.index_select(0, index),
        torch.from_numpy(sizes.copy()),
        torch.from_numpy(order).to(words.device),
        torch.from_numpy(back).to(words.device),
    )

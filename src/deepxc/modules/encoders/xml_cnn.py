"""XML-CNN's feature architecture: convolutions over word vectors, pooled in a few parts, then a bottleneck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepxc.errors import UserError
from deepxc.modules.encoders.word_sequences import SequenceBatch, WordSequenceEncoder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deepxc.modules.encoders.token_vectors import Start
    from deepxc.text.definition import TokenSettings


class XmlCNN(WordSequenceEncoder):
    """Filters of several widths slide over the words; the largest response in each part of the text is kept.

    The parts divide a text's own words evenly, as the paper writes it, not the padded length: short texts use every
    part, and a text's features do not depend on the batch that it comes in.

    Args:
        dim: Width of the bottleneck, which is the features'.
        word_dim: Length of a word's vector.
        widths: Words that a filter sees.
        filters: Filters of each width.
        parts: Parts that a text is pooled in.
        length: Words of a text that are read.
        start: Where word vectors start (see `deepxc.modules.encoders.token_vectors`).
        tokens: How texts become words; character n-grams are left out.
        word_dropout: Share of the word vectors' numbers that a training step blanks.
        dropout: The same of the features.
        seed: Seed.
        threads: Threads that `learn` may use; None takes all cores.
    """

    kind = "xml_cnn"

    def __init__(
        self,
        dim: int = 512,
        *,
        word_dim: int = 300,
        widths: Sequence[int] = (2, 4, 8),
        filters: int = 128,
        parts: int = 2,
        length: int = 32,
        start: Start = "spectral",
        tokens: TokenSettings | Mapping[str, Any] | None = None,
        word_dropout: float = 0.25,
        dropout: float = 0.5,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        super().__init__(word_dim=word_dim, length=length, start=start, tokens=tokens, seed=seed, threads=threads)
        if not widths or min(*widths, filters, parts) < 1:
            raise UserError("widths, filters and parts must be above 0", where="XmlCNN", remedy="Give larger numbers")
        self.dim, self.widths, self.filters, self.parts = dim, list(widths), filters, parts
        self.word_dropout, self.dropout = word_dropout, dropout

    def build(self, n_ids: int) -> None:
        """Make the table, the filters and the bottleneck."""
        super().build(n_ids)
        self.convolutions = torch.nn.ModuleList(
            torch.nn.Conv1d(self.word_dim, self.filters, width) for width in self.widths
        )
        self.bottleneck = torch.nn.Linear(len(self.widths) * self.filters * self.parts, self.dim)

    def forward(self, batch: SequenceBatch) -> torch.Tensor:
        """Features, (rows, dim)."""
        responses = torch.relu(self._responses(self._products(batch), batch.lengths))
        places, sizes = parts_of(batch.lengths, self.parts)
        if not len(places):
            pooled = responses.new_zeros(len(sizes), responses.shape[1])
        else:
            kept = responses.index_select(0, torch.from_numpy(places).to(responses.device))
            pooled = torch.segment_reduce(
                kept, "max", lengths=torch.from_numpy(sizes).to(responses.device), initial=0, unsafe=True
            )
        features = torch.relu(self.bottleneck(pooled.reshape(len(batch.lengths), -1)))
        return torch.dropout(features, self.dropout, self.training)

    def _products(self, batch: SequenceBatch) -> torch.Tensor:
        """What each place of each filter makes of each word, (words, places of all filters).

        One matrix product over the words that are there: no padding is multiplied, no word is copied for each window
        that it stands in, and without dropout each distinct word is multiplied once.
        """
        at_each_place = torch.cat([each.weight.permute(2, 0, 1).flatten(0, 1) for each in self._filters()])
        if self.training and self.word_dropout:
            return torch.dropout(self.word_vectors(batch), self.word_dropout, train=True) @ at_each_place.T
        vectors, places = self.distinct_vectors(batch)
        return torch.nn.functional.embedding(places, vectors @ at_each_place.T)

    def _responses(self, products: torch.Tensor, lengths: np.ndarray) -> torch.Tensor:
        """Every filter's response at every word, (words, filters of all widths); beyond a text's end there are zeros.

        A response is the sum of what the filter's first place makes of this word, its second of the next, and so on.
        """
        left = torch.from_numpy(words_left(lengths)).to(products.device)[:, None]
        at_place = products.split(self.filters, dim=1)
        responses, first = [], 0
        for width, each in zip(self.widths, self._filters(), strict=True):
            response = at_place[first] if each.bias is None else at_place[first] + each.bias
            for ahead in range(1, min(width, len(products))):
                in_text = (left[:-ahead] > ahead).to(products.dtype)
                there = at_place[first + ahead][ahead:] * in_text
                response = response + torch.nn.functional.pad(there, (0, 0, 0, ahead))
            responses.append(response)
            first += width
        return torch.cat(responses, dim=1)

    def _filters(self) -> list[torch.nn.Conv1d]:
        return list(self.convolutions)  # pyrefly: ignore[bad-return]


def words_left(lengths: np.ndarray) -> np.ndarray:
    """For each word of texts laid end to end, how many words its text has from there on, itself included."""
    ends = np.cumsum(lengths)
    return np.repeat(ends, lengths) - np.arange(int(lengths.sum()))


def parts_of(lengths: np.ndarray, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """Words of each part of each text, part by part, and how many each part has.

    Part j of m words begins at the floor of j*m/parts and ends at the ceiling of (j+1)*m/parts: where the words do not
    divide evenly neighbours share a word, and no part of a text with words is empty.
    """
    part = np.arange(parts)
    begins = part * lengths[:, None] // parts
    sizes = ((part + 1) * lengths[:, None] + parts - 1) // parts - begins
    begins += (np.cumsum(lengths) - lengths)[:, None]
    sizes, begins = sizes.ravel(), begins.ravel()
    before = np.cumsum(sizes) - sizes
    return np.repeat(begins - before, sizes) + np.arange(int(sizes.sum())), sizes

"""Texts as sparse rows of weighted tokens: TF-IDF over words, character n-grams or learned subwords."""

from __future__ import annotations

import math
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from deepxc.errors import UserError
from deepxc.text.definition import TokenDefinition, TokenSettings
from deepxc.text.learning import learn, row_keys
from deepxc.text.pieces import TEXTS_AT_ONCE, PieceCache, TokenRows, pieces_of, texts_checked

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_TABLED_COUNTS = 1_024  # repeats of one token in one text up to which the damping is looked up


class BagOfTokens:
    """Turns texts into a sparse matrix, one row a text and one column a token.

    The weights are scikit-learn's: `(1 + log tf) * idf`, idf smoothed, rows of unit length. One row comes out the
    same to the bit whether its text is transformed alone, among others or by a saved and loaded copy.

    Args:
        settings: Everything at once; or give single settings by name (see `TokenSettings`).
        **named: Single settings, such as `min_df=1` or `ngrams=(3, 5)`.
    """

    def __init__(self, settings: TokenSettings | None = None, **named: Any) -> None:  # noqa: ANN401 (passed on)
        if settings is not None and named:
            raise UserError("settings given twice", where="settings", remedy="Give an object or single names, not both")
        self.settings = settings or TokenSettings(**named)
        self._definition: TokenDefinition | None = None
        self._pieces: PieceCache | None = None

    @classmethod
    def from_definition(cls, definition: TokenDefinition, pieces: PieceCache | None = None) -> BagOfTokens:
        """The bag of a learned definition; `pieces` may bring what is remembered of the texts it came from."""
        bag = cls(definition.settings)
        bag._take(definition, pieces or pieces_of(definition))
        return bag

    def _take(self, definition: TokenDefinition, pieces: PieceCache) -> None:
        self._definition, self._pieces = definition, pieces
        self._idf = _inverse_frequencies(definition) if self.settings.idf else np.ones(definition.n_tokens)
        self._idf_list = self._idf.tolist()
        counts = np.arange(1, _TABLED_COUNTS, dtype=np.float64)
        damped = 1.0 + np.log(counts) if self.settings.sublinear_tf else counts
        self._damped = np.concatenate([[0.0], damped])
        self._damped_list = self._damped.tolist()
        nothing = np.empty(0, np.float32), np.empty(0, np.int32)
        self._empty_row = _csr(*nothing, np.zeros(2, np.int32), definition.n_tokens)

    @property
    def definition(self) -> TokenDefinition:
        """The learned vocabulary."""
        if self._definition is None:
            raise UserError("the bag of tokens has learned no vocabulary yet", remedy="Call fit first")
        return self._definition

    @property
    def vocabulary(self) -> dict[str, int]:
        """Column of each token, in the order of columns (most frequent first)."""
        return self.definition.vocabulary

    @property
    def n_tokens(self) -> int:
        """Number of columns."""
        return self.definition.n_tokens

    @property
    def idf(self) -> np.ndarray:
        """Weight of each column (all ones where `idf` is off)."""
        _ = self.definition
        return self._idf

    def fit(self, texts: Iterable[str]) -> BagOfTokens:
        """Learn vocabulary and document counts."""
        learned = learn(texts_checked(texts), self.settings)
        self._take(learned.definition, learned.pieces)
        return self

    def fit_transform(self, texts: Iterable[str]) -> sparse.csr_matrix:
        """`fit` and `transform` of the same texts, which are read only once."""
        learned = learn(texts_checked(texts), self.settings)
        self._take(learned.definition, learned.pieces)
        return self._matrix(learned.rows)

    def transform(self, texts: Iterable[str]) -> sparse.csr_matrix:
        """One float32 row a text, columns sorted; safe to call from several threads at once."""
        checked = texts_checked(texts)
        if len(checked) == 1:
            _ = self.definition
            row = copy(self._empty_row)  # a matrix made anew checks itself for as long as the text takes to read
            row.indices, row.data = self.transform_one(checked[0])
            row.indptr = np.array([0, len(row.indices)], dtype=np.int32)
            return row
        pieces = self._reader()
        starts = range(0, len(checked), TEXTS_AT_ONCE)
        return self._matrix([pieces.read(checked[i : i + TEXTS_AT_ONCE], i) for i in starts])

    def transform_one(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Columns (int32, sorted) and values (float32) of one text, without the cost of a matrix object."""
        ids = self._reader().read_one(text)
        if len(ids) >= _TABLED_COUNTS:
            row = self._matrix([TokenRows(np.array(ids, dtype=np.int32), np.array([0, len(ids)]))])
            return row.indices, row.data
        counts: dict[int, int] = {}
        for i in ids:
            counts[i] = counts.get(i, 0) + 1
        counts.pop(len(self._idf_list), None)  # the unknown token
        columns = sorted(counts)
        damped, idf = self._damped_list, self._idf_list
        weights = [damped[counts[i]] * idf[i] for i in columns]
        if self.settings.normalize:
            total = 0.0
            for weight in weights:  # in order, as in _weighted: the last bit counts
                total += weight * weight
            length = math.sqrt(total)
            weights = [weight / length for weight in weights]
        return np.array(columns, dtype=np.int32), np.array(weights, dtype=np.float32)

    def save(self, path: str | Path) -> None:
        """Write the one file (`tokenizer.json`) that reproduces this bag exactly."""
        self.definition.save(path)

    @classmethod
    def load(cls, path: str | Path) -> BagOfTokens:
        """Read a saved bag."""
        return cls.from_definition(TokenDefinition.load(path))

    def _reader(self) -> PieceCache:
        _ = self.definition
        assert self._pieces is not None
        return self._pieces

    def _matrix(self, chunks: list[TokenRows]) -> sparse.csr_matrix:
        """One matrix from the token rows; the chunks are let go as they are used."""
        parts = []
        chunks.reverse()
        while chunks:
            parts.append(self._weighted(chunks.pop()))
        if not parts:
            return sparse.csr_matrix((0, self.n_tokens), dtype=np.float32)
        sizes = np.concatenate([[0], *(part[2] for part in parts)])
        bounds = np.cumsum(sizes)
        kind = np.int32 if bounds[-1] < 2**31 else np.int64
        indices, values = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        return _csr(values, indices.astype(kind, copy=False), bounds.astype(kind), self.n_tokens)

    def _weighted(self, rows: TokenRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Columns, values and tokens per row of one chunk."""
        keys, shift = row_keys(rows, self.n_tokens)
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        distinct = keys[first]
        repeats = np.diff(first, append=len(keys))
        columns = (distinct & ((1 << shift) - 1)).astype(np.int32)
        row = distinct >> shift
        n_rows = len(rows.bounds) - 1
        weights = self._damped_counts(repeats) * self._idf[columns]
        if self.settings.normalize:
            lengths = np.sqrt(np.bincount(row, weights=weights * weights, minlength=n_rows))  # adds in order
            weights /= lengths[row]
        return columns, weights.astype(np.float32), np.bincount(row, minlength=n_rows)

    def _damped_counts(self, repeats: np.ndarray) -> np.ndarray:
        if not len(repeats) or repeats.max() < _TABLED_COUNTS:
            return self._damped[repeats]
        return 1.0 + np.log(repeats) if self.settings.sublinear_tf else repeats.astype(np.float64)


def _inverse_frequencies(definition: TokenDefinition) -> np.ndarray:
    counts = np.array(definition.document_counts, dtype=np.float64)
    return np.log((1.0 + definition.n_texts) / (1.0 + counts)) + 1.0


def _csr(values: np.ndarray, indices: np.ndarray, bounds: np.ndarray, n_columns: int) -> sparse.csr_matrix:
    matrix = sparse.csr_matrix((values, indices, bounds), shape=(len(bounds) - 1, n_columns))
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix

"""Texts, or features given in their place, as sparse rows: what bag encoders read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from deepxc.errors import UserError
from deepxc.modules.encoders.stored import TOKENIZER
from deepxc.modules.tables import BagBatch
from deepxc.text.bag import BagOfTokens
from deepxc.text.definition import TokenSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from deepxc.text.definition import TokenDefinition


@dataclass(frozen=True, eq=False)
class BagInputs:
    """Rows of weighted tokens.

    Attributes:
        matrix: One row a text, one column a token.
    """

    matrix: sparse.csr_matrix

    def __len__(self) -> int:
        return self.matrix.shape[0]

    def take(self, rows: np.ndarray) -> BagBatch:
        """The given rows."""
        return BagBatch.take(self.matrix, rows)


class BagReader:
    """Reads texts by a vocabulary that it learned, or takes sparse features whose number of columns it noted.

    Args:
        settings: How texts become tokens. Of these, `normalize` goes for features too.
    """

    def __init__(self, settings: TokenSettings) -> None:
        self.settings = settings
        self.n_columns = 0
        self.bag: BagOfTokens | None = None

    @property
    def definition(self) -> TokenDefinition | None:
        """The vocabulary; None where features are read."""
        return self.bag.definition if self.bag else None

    def learn(self, inputs: object) -> sparse.csr_matrix:
        """Learn from train rows and read them."""
        if not is_matrix(inputs):
            self.bag = BagOfTokens(self.settings)
            matrix = self.bag.fit_transform(inputs)  # pyrefly: ignore[bad-argument-type] (it checks them itself)
            self.n_columns = matrix.shape[1]
            return matrix
        self.bag, self.n_columns = None, getattr(inputs, "shape", (0, 0))[1]
        return self._features(inputs)

    def read(self, inputs: object) -> sparse.csr_matrix:
        """Read further rows."""
        if is_matrix(inputs):
            if self.bag:
                raise UserError("a matrix, but the encoder learned from texts", where="X", remedy="Give the texts")
            return self._features(inputs)
        if not self.bag:
            raise UserError("texts, but the encoder learned from features", where="X", remedy="Give their features")
        return self.bag.transform(inputs)  # pyrefly: ignore[bad-argument-type]

    def _features(self, inputs: Any) -> sparse.csr_matrix:  # noqa: ANN401
        if not sparse.issparse(inputs):
            raise UserError(
                "dense features where a sparse matrix belongs",
                where="X",
                remedy="Give a scipy.sparse matrix, or use the encoder for dense features",
            )
        if inputs.shape[1] != self.n_columns:
            raise UserError(
                f"{inputs.shape[1]} columns where {self.n_columns} were learned",
                where="X",
                remedy="Make the features as those of the train rows were made",
            )
        matrix = sparse.csr_matrix(inputs, dtype=np.float32)
        if not np.isfinite(matrix.data).all():
            raise UserError("features that are not finite", where="X", remedy="Mend or drop them")
        return _to_unit_rows(matrix) if self.settings.normalize else matrix

    def write(self, folder: Path) -> None:
        """Save the vocabulary, if there is one."""
        if self.bag:
            self.bag.save(folder / TOKENIZER)

    @classmethod
    def read_from(cls, folder: Path, settings: TokenSettings, n_columns: int) -> BagReader:
        """Open what `write` saved."""
        reader = cls(settings)
        reader.n_columns = n_columns
        if (folder / TOKENIZER).is_file():
            reader.bag = BagOfTokens.load(folder / TOKENIZER)
        return reader


def is_matrix(inputs: object) -> bool:
    """Whether these are features rather than texts; an array of strings is texts."""
    return sparse.issparse(inputs) or (isinstance(inputs, np.ndarray) and inputs.dtype.kind not in "OUS")


def token_settings(given: TokenSettings | Mapping[str, Any] | None, **fixed: Any) -> TokenSettings:  # noqa: ANN401
    """Token settings from an object, from saved JSON, or the default ones; `fixed` are set whatever was given."""
    if given is None or isinstance(given, TokenSettings):
        return replace(given or TokenSettings(), **fixed)
    return TokenSettings(**{**given, **fixed})


def texts_of(inputs: Any, encoder: str) -> Sequence[str]:  # noqa: ANN401
    """The inputs, refused where they are features."""
    if is_matrix(inputs):
        raise UserError("a matrix where texts belong", where="X", remedy=f"{encoder} reads texts: give those")
    return inputs


def _to_unit_rows(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    squares = np.bincount(rows, weights=matrix.data.astype(np.float64) ** 2, minlength=matrix.shape[0])
    lengths = np.sqrt(np.where(squares > 0, squares, 1.0))
    data = (matrix.data / lengths[rows]).astype(np.float32)
    return sparse.csr_matrix((data, matrix.indices, matrix.indptr), shape=matrix.shape)

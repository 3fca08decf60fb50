"""MACH's feature architecture: a perceptron of some layers over the bag of tokens, which may be hashed."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse

from deepxc.errors import UserError
from deepxc.modules.encoders.bags import BagInputs, BagReader, token_settings
from deepxc.modules.encoders.stored import StoredEncoder
from deepxc.modules.encoders.token_vectors import Start, start_vectors
from deepxc.modules.tables import BagBatch, RowTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from deepxc.data.dataset import Split
    from deepxc.text.definition import TokenSettings


class MachMLP(StoredEncoder):
    """Rectified layers over the weighted sum of token vectors; the sum with its bias is the first of them.

    Args:
        dim: Features: the width of the last layer.
        hidden: Widths of the layers before it, at least one; the first is the length of a token's vector.
        hashed: Rows of the token table, which tokens share by a hash of their number; None gives each its own. Bounds
            the memory of vocabularies of character n-grams, whose many rare ones carry little.
        start: Where token vectors start; of hashed ones, only `random` and `projection` have a meaning.
        tokens: How texts become tokens.
        dropout: Share of the features that a training step blanks.
        seed: Seed, of the hash too.
        threads: Threads that `learn` may use; None takes all cores.
    """

    kind = "mach_mlp"

    def __init__(
        self,
        dim: int = 512,
        *,
        hidden: Sequence[int] = (512,),
        hashed: int | None = None,
        start: Start = "random",
        tokens: TokenSettings | Mapping[str, Any] | None = None,
        dropout: float = 0.0,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        super().__init__()
        if not hidden:
            raise UserError("no layer before the last", where="hidden", remedy="Give at least one width, as in (512,)")
        if hashed is not None and (hashed < 1 or start not in ("random", "projection")):
            raise UserError(
                f"{hashed} shared rows starting as {start!r}",
                where="hashed",
                remedy="Give a number above 0 and start='random' or 'projection'",
            )
        self.dim, self.hidden, self.hashed, self.start = dim, list(hidden), hashed, start
        self.tokens = token_settings(tokens)
        self.dropout, self.seed, self.threads = dropout, seed, threads
        self.reader = BagReader(self.tokens)

    def build(self, n_columns: int) -> None:  # pyrefly: ignore[bad-override]
        """Make the table and the layers."""
        first = self.hidden[0]
        self.table = RowTable(torch.empty(self.hashed or n_columns, first))
        self.bias = torch.nn.Parameter(torch.zeros(first))
        widths = [*self.hidden, self.dim]
        layers = [torch.nn.Linear(*pair) for pair in pairwise(widths)]
        rectified = [part for layer in layers for part in (layer, torch.nn.ReLU())]
        self.layers = torch.nn.Sequential(*rectified, torch.nn.Dropout(self.dropout))

    def learn(self, split: Split) -> BagInputs:
        """Learn the vocabulary and make the parameters."""
        matrix = self.reader.learn(split.inputs)
        self.size(n_columns=matrix.shape[1])
        rows, definition = len(self.table), self.reader.definition
        vectors = start_vectors(self.start, lambda: matrix, rows, definition, self.hidden[0], self.seed, self.threads)
        self.table.weight = torch.from_numpy(vectors)
        return self._inputs(matrix)

    def read(self, inputs: Sequence[str] | sparse.csr_matrix | np.ndarray) -> BagInputs:
        """Read new rows; tokens that were not learned are left out."""
        return self._inputs(self.checked().reader.read(inputs))

    def forward(self, batch: BagBatch) -> torch.Tensor:
        """Features, (rows, dim)."""
        return self.layers(torch.relu(self.table.bag(batch) + self.bias))

    def _inputs(self, matrix: sparse.csr_matrix) -> BagInputs:
        if self.hashed:
            matrix = hash_columns(matrix, self.hashed, self.seed)
        return BagInputs(matrix)

    def write_reading(self, folder: Path) -> None:
        """Save the vocabulary."""
        self.reader.write(folder)

    def read_reading(self, folder: Path) -> None:
        """Open the vocabulary."""
        self.reader = BagReader.read_from(folder, self.tokens, self.sizes["n_columns"])


def hash_columns(matrix: sparse.csr_matrix, buckets: int, seed: int) -> sparse.csr_matrix:
    """The same rows over `buckets` columns: each column goes to one of them, drawn once, and collisions add up."""
    bucket_of = np.random.default_rng([seed, matrix.shape[1]]).integers(0, buckets, matrix.shape[1], dtype=np.int32)
    parts = (matrix.data.copy(), bucket_of[matrix.indices], matrix.indptr.copy())
    hashed = sparse.csr_matrix(parts, shape=(matrix.shape[0], buckets))
    hashed.sum_duplicates()
    return hashed

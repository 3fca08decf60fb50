"""The bag of token vectors: `v = ReLU(sum of x_t e_t)`, the text encoder of Astec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from deepxc.errors import UserError
from deepxc.modules.encoders.bags import BagInputs, BagReader, token_settings
from deepxc.modules.encoders.stored import StoredEncoder
from deepxc.modules.encoders.token_vectors import Start, start_vectors
from deepxc.modules.tables import BagBatch, RowTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from scipy import sparse

    from deepxc.data.dataset import Split
    from deepxc.text.definition import TokenSettings


class TokenBag(StoredEncoder):
    """Sums the vectors of a text's tokens, weighted as the bag weighs them.

    A split without texts is read from its sparse features, one vector a column.

    Args:
        dim: Length of a token's vector, and of a text's.
        start: Where token vectors start (see `deepxc.modules.encoders.token_vectors`).
        activation: `relu` as in the paper, or `none`.
        tokens: How texts become tokens.
        trained: Whether token vectors move in training.
        seed: Seed.
        threads: Threads that `learn` may use; None takes all cores.
    """

    kind = "token_bag"

    def __init__(
        self,
        dim: int = 300,
        *,
        start: Start = "spectral",
        activation: Literal["relu", "none"] = "relu",
        tokens: TokenSettings | Mapping[str, Any] | None = None,
        trained: bool = True,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        super().__init__()
        if activation not in ("relu", "none"):
            raise UserError(f"{activation!r} is neither 'relu' nor 'none'", where="activation")
        self.dim, self.start, self.activation = dim, start, activation
        self.tokens = token_settings(tokens)
        self.trained, self.seed, self.threads = trained, seed, threads
        self.reader = BagReader(self.tokens)

    def build(self, n_tokens: int) -> None:  # pyrefly: ignore[bad-override]
        """Make the table."""
        self.table = RowTable(torch.empty(n_tokens, self.dim), trained=self.trained)

    def learn(self, split: Split) -> BagInputs:
        """Learn the vocabulary and the start of its vectors."""
        matrix = self.reader.learn(split.inputs)
        self.size(n_tokens=matrix.shape[1])
        definition = self.reader.definition
        vectors = start_vectors(
            self.start, lambda: matrix, matrix.shape[1], definition, self.dim, self.seed, self.threads
        )
        self.table.weight = torch.from_numpy(vectors)
        return BagInputs(matrix)

    def read(self, inputs: Sequence[str] | sparse.csr_matrix | np.ndarray) -> BagInputs:
        """Read new rows; tokens that were not learned are left out."""
        return BagInputs(self.checked().reader.read(inputs))

    def forward(self, batch: BagBatch) -> torch.Tensor:
        """Features, (rows, dim); zero for a text without known tokens."""
        bags = self.table.bag(batch)
        return torch.relu(bags) if self.activation == "relu" else bags

    def answer(self, inputs: BagInputs) -> np.ndarray:
        """Features of a few rows, without what PyTorch costs a single one of them."""
        matrix = inputs.matrix
        bags = self.table.sums(BagBatch(matrix.indptr, matrix.indices, matrix.data))
        return np.maximum(bags, 0) if self.activation == "relu" else bags

    def write_reading(self, folder: Path) -> None:
        """Save the vocabulary."""
        self.reader.write(folder)

    def read_reading(self, folder: Path) -> None:
        """Open the vocabulary."""
        self.reader = BagReader.read_from(folder, self.tokens, self.sizes["n_tokens"])

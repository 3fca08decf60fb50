"""DECAF's blocks: two vectors combined by learned gates, and the residual block over a bag of tokens (section 3)."""

from __future__ import annotations

import torch

from deepxc.modules.dropout import byte_dropout
from deepxc.modules.transfers.spectral import SpectralMatrix


class Combination(torch.nn.Module):
    """sigma(alpha) * a + sigma(beta) * b, number by number; both gates start half open.

    Args:
        dim: Length of the vectors.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.alpha = torch.nn.Parameter(torch.empty(dim))
        self.beta = torch.nn.Parameter(torch.empty(dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Open both gates half way: alpha = beta = 0."""
        with torch.no_grad():
            self.alpha.zero_()
            self.beta.zero_()

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """The combined rows."""
        return torch.sigmoid(self.alpha) * a + torch.sigmoid(self.beta) * b


class EmbeddingBlock(SpectralMatrix):
    """E(r) = sigma(alpha) * r + sigma(beta) * (R ReLU(r)), where r is a bag of token vectors, summed.

    Texts and labels have a block each. That of texts rectifies its result too: x = ReLU(E(r)).

    Args:
        dim: Length of a token vector.
        rectified: Whether the result goes through a last ReLU.
        bound: Largest spectral norm of R.
        dropout: Share of what leaves a ReLU that is dropped at random in training.
        seed: Of the power iteration.
    """

    def __init__(
        self, dim: int, *, rectified: bool = False, bound: float = 1.0, dropout: float = 0.5, seed: int = 0
    ) -> None:
        super().__init__(dim, bound=bound, seed=seed)
        self.rectified = rectified
        self.combination = Combination(dim)
        self.dropout = dropout

    def reset_parameters(self) -> None:
        """Start R anew; the gates are a module of their own and start anew by themselves."""
        self.reset_matrix()

    def forward(self, bags: torch.Tensor) -> torch.Tensor:
        """The embeddings of summed token vectors, one a row."""
        embedded = self.combination(bags, self.product(self._rectified(bags)))
        return self._rectified(embedded) if self.rectified else embedded

    def summed(self, bags: torch.Tensor, owners: torch.Tensor, count: int) -> torch.Tensor:
        """The sums of the embeddings of all rows with the same owner, shape (count, dim).

        Behind the inner ReLU the block is linear: rows are summed there, and the matrix meets one row an owner.
        """
        parts = bags, self._rectified(bags)
        plain, bent = (part.new_zeros(count, part.shape[1]).index_add(0, owners, part) for part in parts)
        return self.combination(plain, self.product(bent))

    def _rectified(self, rows: torch.Tensor) -> torch.Tensor:
        """A ReLU with dropout behind it."""
        return byte_dropout(torch.relu(rows), self.dropout, self.training)

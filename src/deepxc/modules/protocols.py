"""DeepXML's four modules, and the encoder that they pass on, as protocols.

| module | question | protocol |
|---|---|---|
| - | how does a text become a vector? | `Encoder` |
| I | what easier task teaches the features? | `Surrogate` |
| II | which few labels could it be? | `Shortlister` |
| III | how do the features become final? | `Transfer` |
| IV | which of those is it? | `Classifier` |

A part needs to inherit nothing: it has these methods or it has not, and `deepxc.testing` tells which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import torch
    from scipy import sparse

    from deepxc.data.dataset import Split
    from deepxc.modules.shortlists.views import Features


@runtime_checkable
class Inputs(Protocol):
    """Texts as an encoder reads them (a sparse matrix, padded ids, ...), row by row."""

    def __len__(self) -> int: ...

    def take(self, rows: np.ndarray) -> Any:  # noqa: ANN401 (an encoder and its inputs agree on what a batch is)
        """The given rows as a batch for `Encoder.forward`."""
        ...


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into feature vectors; a `torch.nn.Module`, its large tables held as `RowTable`."""

    dim: int

    def learn(self, split: Split) -> Inputs:
        """Learn what reading needs (a vocabulary, say) from train rows, size the parameters, and read the rows."""
        ...

    def read(self, inputs: Sequence[str] | sparse.csr_matrix | np.ndarray) -> Inputs:
        """Read new rows with what was learned."""
        ...

    def forward(self, batch: Any) -> torch.Tensor:  # noqa: ANN401
        """Features of a batch, shape (rows, dim), differentiable."""
        ...


@runtime_checkable
class Surrogate(Protocol):
    """Module I: an easier task on the same texts, as another label matrix to train the encoder on."""

    def targets(self, split: Split, features: sparse.csr_matrix | np.ndarray, seed: int) -> sparse.csr_matrix | None:
        """Surrogate labels of the train rows (n x few), or None where nothing is to be trained.

        Args:
            split: The train rows.
            features: What the rows look like before any training, sparse or dense, for surrogates that cluster.
            seed: Seed.
        """
        ...


@runtime_checkable
class Shortlister(Protocol):
    """Module II: the few labels that a text could have, from features that no longer move.

    Features are dense, or sparse token weights, or both at once (`deepxc.modules.shortlists.views.Views`), as the
    shortlister reads.
    """

    @property
    def proposes(self) -> bool:
        """Whether `shortlist` can be predicted from: samplers of random negatives answer nothing there."""
        ...

    def fit(self, features: Features, Y: sparse.csr_matrix, seed: int, threads: int) -> None:
        """Learn from the train rows' features and labels."""
        ...

    def shortlist(self, features: Features, k: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """At most k labels of each row (ids int64, -1 where fewer; scores float32, -inf there), best first."""
        ...

    def negatives(
        self, features: Features, Y: sparse.csr_matrix, k: int, threads: int = 1, draw: int = 0
    ) -> np.ndarray:
        """At most k labels of each train row that it does not have but might seem to, each once.

        Args:
            features: Features of the rows.
            Y: Their labels, none of which is a negative.
            k: Most labels a row.
            threads: At most so many; the answer does not depend on it.
            draw: Number of the epoch or batch: what is random differs from draw to draw, and is the same in the same.

        Returns:
            Ids (int32), shape (rows, at most k), -1 after a row's last.
        """
        ...


@runtime_checkable
class Transfer(Protocol):
    """Module III: from the encoder that the surrogate taught to the features of the real task."""

    def attach(self, encoder: Encoder, seed: int) -> torch.nn.Module:
        """A module that maps the encoder's features to final features; decides which parameters still train."""
        ...


@runtime_checkable
class Classifier(Protocol):
    """Module IV: one score for a text and a label, trained on shortlisted labels only."""

    def start(self, n_labels: int, dim: int, seed: int, vectors: np.ndarray | None = None) -> None:
        """Make the parameters; `vectors` (labels x dim) is where they start, if given."""
        ...

    def logits(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Scores of every row against every label of a pool, shape (rows, pool), differentiable."""
        ...

    def vectors(self) -> np.ndarray:
        """One vector a label, such that the score is its inner product with the features (plus a bias, if any)."""
        ...

"""One vector a label: Astec's classifier, of which a step of training touches only the pool's rows."""

from __future__ import annotations

import numpy as np
import torch

from deepxc.errors import DataError, UserError
from deepxc.labels.blocks import Workers, even_blocks
from deepxc.modules.tables import RowTable

_BLOCKS = 64
_WORTH_THREADS = 4096  # label vectors scored in a call that is worth starting threads for


class OneVsAll(torch.nn.Module):
    """A label's score is the inner product of its vector and the features, plus its bias.

    Both are row tables, so that only the rows of labels in a batch's pool get gradients.

    Args:
        bias: Learn one number a label beside its vector, as the published code does.
    """

    table: RowTable
    bias: RowTable | None

    def __init__(self, *, bias: bool = True) -> None:
        super().__init__()
        self.has_bias = bias

    def start(
        self,
        n_labels: int,
        dim: int,
        seed: int,
        vectors: np.ndarray | None = None,
        bias: np.ndarray | None = None,
    ) -> None:
        """Make the parameters.

        Args:
            n_labels: Number of labels.
            dim: Length of a feature vector.
            seed: Of the random start.
            vectors: One vector a label to start from; by default random ones, as evenly wide as Xavier's rule says.
            bias: One number a label; 0 by default.
        """
        if vectors is None:
            generator = torch.Generator().manual_seed(seed)
            reach = (6 / (n_labels + dim)) ** 0.5
            weight = torch.empty(n_labels, dim).uniform_(-reach, reach, generator=generator)
        else:
            weight = torch.from_numpy(np.array(vectors, np.float32, order="C"))
            if weight.shape != (n_labels, dim):
                raise DataError(f"vectors of shape {tuple(weight.shape)} for {n_labels} labels of {dim} features")
        self.table = RowTable(weight)
        self.bias = None
        if bias is not None and not self.has_bias:
            raise UserError("a bias for a classifier without one", where="bias", remedy="Use OneVsAll(bias=True)")
        if self.has_bias:
            column = np.zeros(n_labels) if bias is None else np.asarray(bias)
            if column.size != n_labels:
                raise DataError(f"{column.size} biases for {n_labels} labels")
            self.bias = RowTable(torch.from_numpy(np.array(column, np.float32).reshape(n_labels, 1)))

    def __len__(self) -> int:
        return len(self._started())

    def forward(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The same as `logits`."""
        return self.logits(features, labels)

    def logits(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Scores of every row against every label of a pool (distinct ids), shape (rows, pool), differentiable."""
        scores = features @ self.weights(labels).T
        return scores if self.bias is None else scores + self.bias.rows(labels).T

    def weights(self, labels: torch.Tensor) -> torch.Tensor:
        """The vectors of a pool's labels, differentiable."""
        return self._started().rows(labels)

    def every_weight(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The vectors of all labels and, if there are any, their biases (labels x 1); not copied, differentiable."""
        table = self._started()
        return table.every_row(), None if self.bias is None else self.bias.every_row()

    def score(self, features: np.ndarray, ids: np.ndarray, *, threads: int = 1) -> np.ndarray:
        """Exact scores of given labels of each row, without an array of rows x all labels.

        Args:
            features: Final features, n x dim.
            ids: Labels of each row, n x k; -1 for none.
            threads: At most so many; one query does best with one.

        Returns:
            Scores (float32), n x k, -inf where the id is -1.
        """
        bias = None if self.bias is None else self.bias.weight.detach().cpu().numpy()
        return score_given(features, self.vectors(), ids, bias=bias, threads=threads)

    def vectors(self) -> np.ndarray:
        """One vector a label; on the CPU this is the table itself, not a copy."""
        return self._started().weight.detach().float().cpu().numpy()

    def biases(self) -> np.ndarray | None:
        """One number a label, or None."""
        self._started()
        return None if self.bias is None else self.bias.weight.detach().float().cpu().numpy()[:, 0]

    def add(self, vectors: np.ndarray, bias: np.ndarray | None = None) -> None:
        """Append labels, known by the vectors given; a bias of None is the mean of the others'."""
        table = self._started()
        fresh = torch.as_tensor(np.asarray(vectors, np.float32), dtype=table.weight.dtype, device=table.weight.device)
        if fresh.ndim != 2 or fresh.shape[1] != table.dim:
            raise DataError(f"vectors of shape {tuple(fresh.shape)} for features of {table.dim}")
        if bias is not None and len(bias) != len(fresh):
            raise DataError(f"{len(bias)} biases for {len(fresh)} labels")
        self.table = RowTable(torch.cat((table.weight, fresh)), trained=table.trained)
        if self.bias is not None:
            old = self.bias.weight
            column = old.new_empty(len(fresh), 1)
            if bias is None:
                column.fill_(float(old.mean()) if len(old) else 0.0)
            else:
                column.copy_(torch.as_tensor(np.asarray(bias, np.float32)).reshape(-1, 1))
            self.bias = RowTable(torch.cat((old, column)), trained=self.bias.trained)

    def _started(self) -> RowTable:
        if "table" not in self._modules:
            raise UserError("the classifier has no parameters yet", where="classifier", remedy="Call start first")
        return self.table


def score_given(
    features: np.ndarray, vectors: np.ndarray, ids: np.ndarray, *, bias: np.ndarray | None = None, threads: int = 1
) -> np.ndarray:
    """Inner products of each row with the vectors of its given labels (see `OneVsAll.score`)."""
    from deepxc.modules.classifiers.kernels import gather_scores

    rows = np.ascontiguousarray(features, np.float32)
    table = np.ascontiguousarray(vectors, np.float32)
    ids = np.ascontiguousarray(ids, np.int64)
    if rows.ndim != 2 or ids.ndim != 2 or len(rows) != len(ids) or rows.shape[1] != table.shape[1]:
        raise DataError(f"features of shape {rows.shape} and ids of {ids.shape} for vectors of {table.shape}")
    if ids.size and (ids.max() >= len(table) or ids.min() < -1):
        raise DataError(f"ids from {ids.min()} to {ids.max()} for {len(table)} labels")
    out = np.empty(ids.shape, np.float32)
    if threads <= 1 or ids.size < _WORTH_THREADS:
        gather_scores(rows, table, ids, out)
    else:
        with Workers(threads) as workers:
            cuts = even_blocks(np.arange(len(rows) + 1), _BLOCKS)
            workers.map(lambda cut: gather_scores(rows[slice(*cut)], table, ids[slice(*cut)], out[slice(*cut)]), cuts)
    if bias is not None:
        out += np.asarray(bias, np.float32).reshape(-1)[np.maximum(ids, 0)]
    return out

"""Tables with a row for every token or label, of which a step of training touches only a few.

A dense gradient of such a table would be as large as the table, and so would every step of a dense optimiser. Here a
lookup remembers the rows that it read; their gradients wait in the table until the optimiser moves those rows alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import torch

if TYPE_CHECKING:
    from scipy import sparse


class BagBatch(NamedTuple):
    """Texts as weighted token numbers: the three arrays of a CSR matrix, `indptr` starting at 0."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    @classmethod
    def take(cls, matrix: sparse.csr_matrix, rows: np.ndarray) -> Self:
        """The given rows of a sparse matrix, in the types that the compiled loops read."""
        rows = np.asarray(rows)
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
            bounds = matrix.indptr[rows[0] : rows[-1] + 2]  # neighbours lie together: SciPy would copy them one by one
            part = slice(bounds[0], bounds[-1])
            indptr, indices, values = bounds - bounds[0], matrix.indices[part], matrix.data[part]
        else:
            chosen: sparse.csr_matrix = matrix[rows]  # pyrefly: ignore[bad-assignment]
            indptr, indices, values = chosen.indptr, chosen.indices, chosen.data
        return cls(
            indptr.astype(np.int64, copy=False),
            indices.astype(np.int32, copy=False),
            values.astype(np.float32, copy=False),
        )


class RowTable(torch.nn.Module):
    """A table whose rows are read by number and trained by row.

    The table is a buffer of the module: it moves, saves and loads with it, and is none of its `parameters()`.

    Args:
        weight: The table, rows x dim.
        trained: Whether lookups collect gradients.
    """

    weight: torch.Tensor

    def __init__(self, weight: torch.Tensor, *, trained: bool = True) -> None:
        super().__init__()
        self.register_buffer("weight", weight.contiguous())
        self.trained = trained
        self.pending: list[tuple[torch.Tensor, torch.Tensor]] = []
        """Gradients that wait for the optimiser: distinct row numbers, and one gradient row for each."""

    @property
    def dim(self) -> int:
        """Length of a row."""
        return self.weight.shape[1]

    def __len__(self) -> int:
        return self.weight.shape[0]

    def rows(self, numbers: torch.Tensor) -> torch.Tensor:
        """The rows with these distinct numbers, differentiable."""
        return _Rows.apply(self._handle(), self, numbers)

    def every_row(self) -> torch.Tensor:
        """The whole table, not copied, differentiable: its gradient is as large as the table."""
        return _EveryRow.apply(self._handle(), self)

    def bag(self, batch: BagBatch) -> torch.Tensor:
        """Weighted sums of rows, one for each text of the batch, differentiable."""
        return _Bag.apply(self._handle(), self, batch)

    def sums(self, batch: BagBatch) -> np.ndarray:
        """What `bag` gives, of a table in memory as float32, with nothing remembered."""
        return _summed(self.weight.numpy(), batch)

    def take_gradient(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Distinct rows and their summed gradients from all lookups since the last call; None where there were none."""
        pending, self.pending = self.pending, []
        if len(pending) < 2:
            return pending[0] if pending else None
        if len(pending) == 2 and all(_compiled(gradient) for _, gradient in pending):
            return _sum_of_two(*pending)
        rows, place = torch.unique(torch.cat([rows for rows, _ in pending]), return_inverse=True)
        gradients = torch.cat([gradient for _, gradient in pending])
        return rows, gradients.new_zeros(len(rows), self.dim).index_add_(0, place, gradients)

    def _handle(self) -> torch.Tensor:
        """An empty tensor that makes autograd call backward; the table itself must not get a dense gradient."""
        return torch.empty(0, dtype=self.weight.dtype, device=self.weight.device, requires_grad=self.trained)


def _sum_of_two(
    one: tuple[torch.Tensor, torch.Tensor], other: tuple[torch.Tensor, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of both and their summed gradients, read and written once: tables that two sides share need it a step.

    PyTorch's way, below, copies everything together, clears an array of that size and adds into it.
    """
    from deepxc.modules.kernels_tables import add_chosen

    numbers = [rows.numpy() for rows, _ in (one, other)]
    rows = np.union1d(*numbers)
    sources = np.full((2, len(rows)), -1, np.int64)
    for source, own in zip(sources, numbers, strict=True):
        source[np.searchsorted(rows, own)] = np.arange(len(own))
    first, second = (gradient.contiguous() for _, gradient in (one, other))
    out = torch.empty(len(rows), first.shape[1])
    add_chosen(first.numpy(), second.numpy(), sources[0], sources[1], out.numpy())
    return torch.from_numpy(rows), out


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, _handle: torch.Tensor, table: RowTable, numbers: torch.Tensor) -> torch.Tensor:  # noqa: ANN401
        ctx.table, ctx.numbers = table, numbers
        return table.weight.index_select(0, numbers)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, None, None]:  # noqa: ANN401  # pyrefly: ignore[bad-override]
        ctx.table.pending.append((ctx.numbers, gradient))
        return None, None, None


class _EveryRow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, _handle: torch.Tensor, table: RowTable) -> torch.Tensor:  # noqa: ANN401
        ctx.table = table
        return table.weight.detach()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, None]:  # noqa: ANN401  # pyrefly: ignore[bad-override]
        ctx.table.pending.append((torch.arange(len(gradient), device=gradient.device), gradient))
        return None, None


class _Bag(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, _handle: torch.Tensor, table: RowTable, batch: BagBatch) -> torch.Tensor:  # noqa: ANN401
        ctx.table, ctx.batch = table, batch
        weight = table.weight
        if not _compiled(weight):
            return _bag_by_torch(weight, batch)
        return torch.from_numpy(_summed(weight.numpy(), batch))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, None, None]:  # noqa: ANN401  # pyrefly: ignore[bad-override]
        table, batch = ctx.table, ctx.batch
        tokens, bounds, order = _group_by_token(batch.indices)
        rows = np.repeat(np.arange(len(batch.indptr) - 1, dtype=np.int32), np.diff(batch.indptr))[order]
        values = batch.values[order]
        if _compiled(gradient):
            from deepxc.modules.kernels_tables import bag_backward

            summed = torch.empty(len(tokens), table.dim)
            bag_backward(bounds, rows, np.asarray(values, np.float32), gradient.contiguous().numpy(), summed.numpy())
        else:
            device = gradient.device
            parts = gradient[torch.as_tensor(rows, device=device)]
            parts *= torch.as_tensor(values, device=device).to(gradient.dtype)[:, None]
            place = torch.as_tensor(np.repeat(np.arange(len(tokens)), np.diff(bounds)), device=device)
            summed = gradient.new_zeros(len(tokens), table.dim).index_add_(0, place, parts)
        table.pending.append((torch.from_numpy(tokens).to(gradient.device), summed))
        return None, None, None


def _summed(weight: np.ndarray, batch: BagBatch) -> np.ndarray:
    """Weighted sums of rows, one for each text of the batch."""
    from deepxc.modules.kernels_tables import bag_forward, bag_of_one

    out = np.empty((len(batch.indptr) - 1, weight.shape[1]), np.float32)
    if len(out) == 1:
        bag_of_one(np.asarray(batch.indices, np.int32), np.asarray(batch.values, np.float32), weight, out[0])
        return out
    bag_forward(
        np.asarray(batch.indptr, np.int64),
        np.asarray(batch.indices, np.int32),
        np.asarray(batch.values, np.float32),
        weight,
        out,
    )
    return out


def _compiled(tensor: torch.Tensor) -> bool:
    """Whether the compiled loops can work on this tensor: the rest goes through PyTorch's own operations."""
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32


def _group_by_token(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct tokens, the order that sorts the entries by token, and each token's bounds in that order.

    Token and place are sorted as one integer: NumPy sorts integers with vector instructions, and as no two are equal
    the order is the stable one.
    """
    keys = indices.astype(np.int64) << 32
    keys |= np.arange(len(indices))
    keys.sort()
    order = keys & 0xFFFFFFFF
    keys >>= 32
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[starts], np.append(starts, len(keys)), order


def _bag_by_torch(weight: torch.Tensor, batch: BagBatch) -> torch.Tensor:
    device = weight.device
    return torch.nn.functional.embedding_bag(
        torch.as_tensor(batch.indices, device=device).long(),
        weight,
        torch.as_tensor(batch.indptr, device=device).long(),
        mode="sum",
        per_sample_weights=torch.as_tensor(batch.values, device=device).to(weight.dtype),
        include_last_offset=True,
    )

"""Optimisers of one `RowTable`: only the rows that were read move, and their moments with them.

`RowAdam` is the lazy variant of Adam: the moments of a row that was not read do not decay. With `count="steps"` all
rows share the number of steps so far, as in `torch.optim.SparseAdam`; with `count="rows"` each row has its own, so
that a row's first step is as long in the thousandth batch as in the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import torch

if TYPE_CHECKING:
    import numpy as np

    from deepxc.modules.tables import RowTable

Second = Literal["full", "row"]
Count = Literal["steps", "rows"]


class RowRule(Protocol):
    """Moves the rows of one table against their gradients."""

    def step(self, rate: float) -> None:
        """Take the gradients that wait in the table and move its rows."""
        ...

    def state(self) -> dict[str, torch.Tensor]:
        """The tensors that a resumed training needs, not copied."""
        ...


class RowAdam:
    """Adam, row by row.

    Args:
        table: The table.
        betas: Decay of the two moments.
        epsilon: Added to the root of the second moment.
        second: One second moment for every weight (`full`), or one for every row (`row`), which halves the memory and
            gives all weights of a row the same step length.
        moments: Format of the first moment. The second is always float32: a step changes it by less than bfloat16
            can show.
        count: What the bias correction counts.
    """

    def __init__(
        self,
        table: RowTable,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        second: Second = "full",
        moments: Literal["float32", "bfloat16"] = "float32",
        count: Count = "steps",
    ) -> None:
        self.table, self.betas, self.epsilon = table, betas, epsilon
        weight = table.weight
        self._first = torch.zeros_like(weight, dtype=torch.bfloat16 if moments == "bfloat16" else None)
        self._second = torch.zeros_like(weight) if second == "full" else weight.new_zeros(len(table))
        self._steps = torch.zeros(len(table) if count == "rows" else 1, dtype=torch.int32, device=weight.device)

    def step(self, rate: float) -> None:
        """Take the gradients that wait in the table and move its rows."""
        found = self.table.take_gradient()
        if found is None:
            return
        rows, gradient = found
        rates, corrections = self._corrections(rows, rate)
        if _compiled(self.table.weight):
            self._step_compiled(rows, gradient, rates, corrections)
        else:
            self._step_by_torch(rows, gradient, rates[:, None], corrections[:, None])

    def state(self) -> dict[str, torch.Tensor]:
        """The moments and the counts."""
        return {"first": self._first, "second": self._second, "steps": self._steps}

    def _corrections(self, rows: torch.Tensor, rate: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Each row's rate with the first moment's bias taken out, and what takes it out of the second's root."""
        if len(self._steps) == 1:
            self._steps += 1
            steps = self._steps.double()
        else:
            self._steps[rows] += 1
            steps = self._steps[rows].double()
        rates = rate / (1 - self.betas[0] ** steps)
        corrections = (1 - self.betas[1] ** steps).rsqrt()
        kind = self.table.weight.dtype
        return rates.to(kind).expand(len(rows)), corrections.to(kind).expand(len(rows))

    def _step_compiled(
        self, rows: torch.Tensor, gradient: torch.Tensor, rates: torch.Tensor, corrections: torch.Tensor
    ) -> None:
        import numpy as np

        from deepxc.training import kernels_rows as kernels

        halved = self._first.dtype == torch.bfloat16
        first = self._first.view(torch.uint16) if halved else self._first
        if self._second.dim() == 2:
            kernel = kernels.adam_full_halved if halved else kernels.adam_full
        else:
            kernel = kernels.adam_row_halved if halved else kernels.adam_row
        arrays = (rows, gradient, self.table.weight, first, self._second, rates, corrections)
        kernel(*map(_array, arrays), *map(np.float32, (*self.betas, self.epsilon)))

    def _step_by_torch(
        self, rows: torch.Tensor, gradient: torch.Tensor, rates: torch.Tensor, corrections: torch.Tensor
    ) -> None:
        beta1, beta2 = self.betas
        first = torch.lerp(gradient, self._first[rows].to(gradient.dtype), beta1)
        self._first[rows] = first.to(self._first.dtype)
        square = gradient.square() if self._second.dim() == 2 else gradient.square().mean(1)
        second = torch.lerp(square, self._second[rows], beta2)
        self._second[rows] = second
        root = second.sqrt() if second.dim() == 2 else second.sqrt()[:, None]
        self.table.weight[rows] -= rates * first / (root * corrections + self.epsilon)


class RowAdagrad:
    """Adagrad, row by row.

    Args:
        table: The table.
        epsilon: Added to the root of the sum of squares.
        start: Where that sum starts.
        second: One sum for every weight (`full`), or one of mean squares for every row (`row`).
    """

    def __init__(self, table: RowTable, *, epsilon: float = 1e-10, start: float = 0.0, second: Second = "full") -> None:
        self.table, self.epsilon = table, epsilon
        weight = table.weight
        self._squares = torch.full_like(weight if second == "full" else weight[:, 0], start).contiguous()

    def step(self, rate: float) -> None:
        """Take the gradients that wait in the table and move its rows."""
        found = self.table.take_gradient()
        if found is None:
            return
        rows, gradient = found
        full = self._squares.dim() == 2
        if _compiled(self.table.weight):
            import numpy as np

            from deepxc.training.kernels_rows import adagrad_full, adagrad_row

            arrays = map(_array, (rows, gradient, self.table.weight, self._squares))
            (adagrad_full if full else adagrad_row)(*arrays, *map(np.float32, (rate, self.epsilon)))
            return
        self._squares[rows] += gradient.square() if full else gradient.square().mean(1)
        root = self._squares[rows].sqrt()
        self.table.weight[rows] -= rate * gradient / ((root if full else root[:, None]) + self.epsilon)

    def state(self) -> dict[str, torch.Tensor]:
        """The sums of squares."""
        return {"squares": self._squares}


class RowSGD:
    """Plain gradient descent, row by row."""

    def __init__(self, table: RowTable) -> None:
        self.table = table

    def step(self, rate: float) -> None:
        """Take the gradients that wait in the table and move its rows."""
        found = self.table.take_gradient()
        if found is None:
            return
        rows, gradient = found
        if _compiled(self.table.weight):
            import numpy as np

            from deepxc.training.kernels_rows import descend

            descend(*map(_array, (rows, gradient, self.table.weight)), *map(np.float32, (rate,)))
        else:
            self.table.weight.index_add_(0, rows, gradient, alpha=-rate)

    def state(self) -> dict[str, torch.Tensor]:
        """Nothing: a step depends on nothing but the gradient."""
        return {}


def _compiled(weight: torch.Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype == torch.float32


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()

"""Convolutions whose filters advance by their stride, as one matrix product over blocks of positions.

Positions are cut into blocks as long as the stride. A filter of any width then sees a few whole blocks, so that what
it makes of every block at every place in its window is one product of all blocks with all filters; the response of a
window is the sum of a few of these, each shifted by its place. Nothing is copied once for each window that it is in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from deepxc.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Shift(NamedTuple):
    """Columns of the product that belong to one place of one filter: where they are, whose, and how far off."""

    start: int
    filter: int
    blocks: int


class StridedConvolutions(torch.nn.Module):
    """Parallel convolutions of one stride, their channels side by side.

    Args:
        channels_in: Channels of the input.
        channels_out: Channels of each convolution.
        widths: Positions that the filters of each convolution see.
        stride: Positions from one window to the next.
        circular: Windows run over the ends and go on at the other end; there are as many as blocks, and each is
            centred on its block. Otherwise windows stay inside.
    """

    def __init__(
        self, channels_in: int, channels_out: int, widths: Sequence[int], *, stride: int = 4, circular: bool = True
    ) -> None:
        super().__init__()
        odd = [width for width in widths if width < stride or (circular and (width - stride) % 2)]
        if odd:
            raise UserError(
                f"filters of width {odd[0]} for a stride of {stride}",
                where="widths",
                remedy="Use widths from the stride on, by even steps where windows go round",
            )
        self.channels_in, self.channels_out, self.stride, self.circular = channels_in, channels_out, stride, circular
        self.filters = torch.nn.ParameterList(torch.empty(channels_out, channels_in, width) for width in widths)
        self._shifts = self._places()
        self._kept: tuple[list[torch.Tensor], torch.Tensor] | None = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the filters anew, as `torch.nn.Conv1d` does."""
        for weight in self.filters:
            torch.nn.init.kaiming_uniform_(weight, a=5**0.5)

    def windows(self, positions: int) -> int:
        """How many windows there are for so many positions."""
        if self.circular:
            return positions // self.stride
        return (positions - max(weight.shape[2] for weight in self.filters)) // self.stride + 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Responses of (rows, positions, channels): (rows, windows, channels of all filters)."""
        rows, positions, channels = x.shape
        blocks = positions // self.stride
        if self.circular and positions % self.stride:
            raise UserError(f"{positions} positions do not divide by {self.stride}", where="positions")
        whole = x if positions == blocks * self.stride else x[:, : blocks * self.stride]
        matrix = self._matrix() if torch.is_grad_enabled() else self._kept_matrix()
        product = whole.reshape(rows * blocks, self.stride * channels) @ matrix.to(x.dtype)
        product = product.view(rows, blocks, -1)
        size = self.channels_out, len(self.filters), self.windows(positions)
        if torch.is_grad_enabled():
            return _ShiftedSum.apply(product, self._shifts, *size)
        return _shifted_sum(product, self._shifts, *size)

    def _kept_matrix(self) -> torch.Tensor:
        """The matrix of the filters as they are now, made once for all predictions with them."""
        if self._kept is not None and self._kept[1].device != self.filters[0].device:
            self._kept = None
        if self._kept is None or not all(map(torch.equal, self._kept[0], self.filters)):
            self._kept = [weight.detach().clone() for weight in self.filters], self._matrix()
        return self._kept[1]

    def _matrix(self) -> torch.Tensor:
        """All filters at all of their places: (stride x channels in, places x channels out)."""
        parts = []
        for weight in self.filters:
            before, count = self._span(weight.shape[2])
            left = before * self.stride - self._overhang(weight.shape[2])
            wide = torch.nn.functional.pad(weight, (left, count * self.stride - weight.shape[2] - left))
            by_place = wide.view(self.channels_out, self.channels_in, count, self.stride).permute(3, 1, 2, 0)
            parts.append(by_place.reshape(self.stride * self.channels_in, count * self.channels_out))
        return torch.cat(parts, dim=1)

    def _overhang(self, width: int) -> int:
        """Positions that a window begins before its block."""
        return (width - self.stride) // 2 if self.circular else 0

    def _span(self, width: int) -> tuple[int, int]:
        """Blocks that a window begins before its own, and how many it reaches into."""
        overhang = self._overhang(width)
        before = -(-overhang // self.stride)
        after = -(-(width - overhang) // self.stride)
        return before, before + after

    def _places(self) -> list[Shift]:
        shifts, start = [], 0
        for number, weight in enumerate(self.filters):
            before, count = self._span(weight.shape[2])
            for place in range(count):
                shifts.append(Shift(start, number, place - before))
                start += self.channels_out
        return shifts


class _ShiftedSum(torch.autograd.Function):
    """Adds up the places of each filter, each taken from as many blocks ahead as its place is."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        product: torch.Tensor,
        shifts: list[Shift],
        channels: int,
        filters: int,
        windows: int,
    ) -> torch.Tensor:
        ctx.shifts, ctx.channels, ctx.shape = shifts, channels, product.shape
        return _shifted_sum(product, shifts, channels, filters, windows)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None, None]:  # noqa: ANN401  # pyrefly: ignore[bad-override]
        channels = ctx.channels
        blocks, windows = ctx.shape[1], gradient.shape[1]
        of_product = gradient.new_empty(ctx.shape) if windows == blocks else gradient.new_zeros(ctx.shape)
        for shift in ctx.shifts:
            whole = of_product[:, :, shift.start : shift.start + channels]
            of_filter = gradient[:, :, shift.filter * channels : (shift.filter + 1) * channels]
            for target, source in _aligned(blocks, windows, shift.blocks):
                whole[:, source] = of_filter[:, target]
        return of_product, None, None, None, None


def _shifted_sum(product: torch.Tensor, shifts: list[Shift], channels: int, filters: int, windows: int) -> torch.Tensor:
    out = product.new_empty(len(product), windows, filters * channels)
    begun: set[int] = set()
    for shift in sorted(shifts, key=lambda each: abs(each.blocks)):
        whole = product[:, :, shift.start : shift.start + channels]
        into = out[:, :, shift.filter * channels : (shift.filter + 1) * channels]
        for target, source in _aligned(product.shape[1], windows, shift.blocks):
            if shift.filter in begun:
                into[:, target] += whole[:, source]
            else:
                into[:, target] = whole[:, source]
        begun.add(shift.filter)
    return out


def _aligned(blocks: int, windows: int, ahead: int) -> list[tuple[slice, slice]]:
    """Windows, and the blocks so many ahead of them; in two runs where those go round the end."""
    if windows != blocks:  # no window begins before the first block or reaches beyond the last
        return [(slice(0, windows), slice(ahead, ahead + windows))]
    ahead %= blocks
    if ahead == 0:
        return [(slice(0, blocks), slice(0, blocks))]
    return [(slice(0, blocks - ahead), slice(ahead, blocks)), (slice(blocks - ahead, blocks), slice(0, ahead))]

"""Negatives drawn evenly from all labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from deepxc.modules.shortlists.row_blocks import over_rows
from deepxc.modules.shortlists.sampling import Sampler

if TYPE_CHECKING:
    from deepxc.modules.shortlists.row_blocks import LabelRows


class Uniform(Sampler):
    """Every label that a row does not have is as likely as any other."""

    kind: ClassVar[str] = "uniform"

    def _draw(self, rows: LabelRows, k: int, key: np.uint64, threads: int) -> np.ndarray:
        out = np.full((len(rows), k), -1, np.int32)
        fill_with_random(out, 0, rows, key, threads)
        return out


def fill_with_random(out: np.ndarray, start: int, rows: LabelRows, key: np.uint64, threads: int) -> None:
    """Fill the places from `start` on, and empty ones before, with random labels, none of them a row's own or twice."""
    from deepxc.modules.shortlists.kernels import fill_uniform

    def work(first: int, last: int) -> None:
        fill_uniform(first, rows.between(first, last), rows.labels, rows.n_labels, key, start, out[first:last])

    over_rows(len(out), threads, work)

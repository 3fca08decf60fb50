"""Filter files: `row label` a line, the pairs that are left out of scoring."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepxc.data.files import text_lines
from deepxc.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from deepxc.data.readers.folder import Folder

NAMES = ("filter_labels_{}.txt", "{}_filter_labels.txt")


def read_all(folder: Folder, sizes: dict[str, int], labels: int) -> dict[str, np.ndarray]:
    """The pairs of every part that has a filter file.

    Args:
        folder: Where to look.
        sizes: Rows of each part.
        labels: Number of labels.
    """
    return {part: read(path, sizes[part], labels) for part, path in folder.parts(*NAMES).items() if part in sizes}


def read(path: Path, rows: int, labels: int) -> np.ndarray:
    """Pairs of (row, label), shape (m, 2); the file may be empty."""
    lines = text_lines(path, may_be_empty=True)
    try:
        pairs = np.array([(int(row), int(label)) for row, label in map(str.split, filter(str.strip, lines))], np.int64)
    except ValueError:
        raise _fault(path, lines, rows, labels) from None
    if not len(pairs):
        return np.empty((0, 2), np.int64)
    if pairs.min() < 0 or pairs[:, 0].max() >= rows or pairs[:, 1].max() >= labels:
        raise _fault(path, lines, rows, labels)
    return pairs


def _fault(path: Path, lines: list[str], rows: int, labels: int) -> DataError:
    """The error for the first line that is no pair, or out of range."""
    for number, line in enumerate(lines, 1):
        cells = line.split()
        where = f"{path}:{number}"
        if not cells:
            continue
        if len(cells) != 2 or not all(cell.lstrip("-").isdigit() for cell in cells):
            return DataError(f"`{line.strip()[:40]}` is not a pair", where=where, remedy="Write `row label` a line")
        row, label = map(int, cells)
        if not 0 <= row < rows:
            return DataError(f"row {row} is not one of {rows}", where=where, remedy="Count rows from 0")
        if not 0 <= label < labels:
            return DataError(f"label {label} is not one of {labels}", where=where, remedy="Count labels from 0")
    raise AssertionError("every pair is in range")

"""A data set in memory: texts or features, sparse labels, filter pairs, and where each row came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from deepxc.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scipy import sparse

    from deepxc.data.label_space import LabelSpace


@dataclass(frozen=True)
class Source:
    """Where the rows of a split came from, so that a report can name file and line."""

    path: str
    lines: np.ndarray | None = None  # line of each row, from 1; None: rows are consecutive lines
    first_line: int = 1  # line of row 0; 0 where rows are not lines, and `lines` then holds row numbers

    def at(self, row: int) -> str:
        """`file:line` of a row, or `file, row N` in files without lines."""
        place = row + max(self.first_line, 0) if self.lines is None else int(self.lines[row])
        return f"{self.path}, row {place}" if self.first_line <= 0 else f"{self.path}:{place}"


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of a data set: train, validation or test.

    Attributes:
        labels: The label space that `Y` points into.
        Y: Sparse label matrix (float32 weights, rows sorted by label id, no explicit zeros).
        texts: One text a row, or None where the data came as features.
        X: Feature matrix, one row a text, or None where the data came as text.
        ids: External id of each row, or None.
        filter_pairs: (row, label) pairs left out of scoring, shape (m, 2).
        source: Where the rows came from.
    """

    labels: LabelSpace
    Y: sparse.csr_matrix
    texts: Sequence[str] | None = None
    X: sparse.csr_matrix | np.ndarray | None = None
    ids: Sequence[str] | None = None
    filter_pairs: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.int64))
    source: Source | None = None

    def __post_init__(self) -> None:
        if self.texts is None and self.X is None:
            raise DataError("a split needs texts or features", remedy="Give texts= or X=")
        for part, size in (
            ("texts", None if self.texts is None else len(self.texts)),
            ("feature rows", None if self.X is None else self.X.shape[0]),
            ("ids", None if self.ids is None else len(self.ids)),
        ):
            if size is not None and size != self.Y.shape[0]:
                raise DataError(f"{size} {part} but {self.Y.shape[0]} label rows")
        if self.Y.shape[1] != len(self.labels):
            raise DataError(f"label matrix has {self.Y.shape[1]} columns but there are {len(self.labels)} labels")

    def __len__(self) -> int:
        return self.Y.shape[0]

    @property
    def inputs(self) -> Sequence[str] | sparse.csr_matrix | np.ndarray:
        """What a model reads: the texts where there are texts, else the features."""
        if self.texts is not None:
            return self.texts
        assert self.X is not None
        return self.X

    def at(self, row: int) -> str:
        """Where a row came from, for messages."""
        return self.source.at(row) if self.source else f"row {row}"

    def take(self, rows: np.ndarray | Sequence[int]) -> Split:
        """The given rows, in that order, with their filter pairs renumbered."""
        rows = np.asarray(rows, dtype=np.int64)
        position = np.full(len(self), -1, np.int64)
        position[rows] = np.arange(len(rows))
        pairs = self.filter_pairs
        if len(pairs):
            pairs = np.column_stack((position[pairs[:, 0]], pairs[:, 1]))
            pairs = pairs[pairs[:, 0] >= 0]
        source = self.source
        if source is not None:
            lines = source.lines if source.lines is not None else np.arange(len(self)) + max(source.first_line, 0)
            source = Source(source.path, lines[rows], source.first_line)
        return Split(
            labels=self.labels,
            Y=self.Y[rows],  # pyrefly: ignore[bad-argument-type] (SciPy's types do not say that rows of CSR are CSR)
            texts=None if self.texts is None else [self.texts[i] for i in rows],
            X=None if self.X is None else self.X[rows],  # pyrefly: ignore[bad-argument-type]
            ids=None if self.ids is None else [self.ids[i] for i in rows],
            filter_pairs=pairs,
            source=source,
        )


@dataclass(frozen=True, eq=False)
class Dataset:
    """A label space with a train split and, where the source has them, validation and test splits."""

    name: str
    labels: LabelSpace
    train: Split
    test: Split | None = None
    validation: Split | None = None

    @classmethod
    def read(cls, path: str | Path, **options: object) -> Dataset:
        """Read a folder, a file or a built-in sample set, in any layout deepxc knows.

        See `deepxc.data.reading` for the layouts and the options of each.
        """
        from deepxc.data.reading import read_dataset

        return read_dataset(path, **options)

"""Matrices in the XC repository's text form: a header with the sizes, then one row of `id:value` a line.

Ids count from 0. A line that begins with `#` is no row, an empty line is an empty row. Ids that do not ascend are
put in order; an id that stands twice in a row is a fault, for whether to add or to replace would be a guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepxc.data.files import empty_file, read_bytes
from deepxc.data.label_matrix import row_of
from deepxc.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scipy import sparse


@dataclass(frozen=True)
class SparseText:
    """A parsed file.

    Attributes:
        matrix: The pairs of each row.
        lines: Line of each row, from 1.
        labels: The label lists that open the rows in the old single-file layout, or None.
    """

    matrix: sparse.csr_matrix
    lines: np.ndarray
    labels: sparse.csr_matrix | None = None


def read_sparse_text(path: Path, *, signed: bool = True) -> SparseText:
    """Read `rows columns` and the rows that follow.

    Args:
        path: The file, gzip or not.
        signed: Whether values below 0 are allowed.

    Raises:
        DataError: A header that is missing or disagrees with the rows, or a row that cannot be parsed.
    """
    data = read_bytes(path)
    (rows, columns), start = _header(data, path, ("rows", "columns"))
    return _parse(data, start, path, rows, columns, None, signed=signed)


def read_labelled_sparse_text(path: Path) -> SparseText:
    """Read the old single-file layout: `rows features labels`, then `label,label id:value id:value`."""
    data = read_bytes(path)
    (rows, columns, labels), start = _header(data, path, ("rows", "features", "labels"))
    return _parse(data, start, path, rows, columns, labels, signed=True)


def is_header(line: bytes, size: int) -> bool:
    """Whether a line is a header of that many sizes."""
    parts = line.split()
    return len(parts) == size and all(part.isdigit() for part in parts)


def _header(data: bytes, path: Path, parts: Sequence[str]) -> tuple[list[int], int]:
    end = data.find(b"\n")
    line = data if end < 0 else data[:end]
    if not line.strip():
        raise empty_file(path) if not data.strip() else _no_header(path, parts)
    if not is_header(line, len(parts)):
        raise _no_header(path, parts)
    return [int(part) for part in line.split()], len(data) if end < 0 else end + 1


def _no_header(path: Path, parts: Sequence[str]) -> DataError:
    return DataError(
        f"the first line does not give {len(parts)} sizes",
        where=f"{path}:1",
        remedy=f"Begin the file with its header: {' '.join(parts)}",
    )


def _parse(
    data: bytes, start: int, path: Path, rows: int, columns: int, labels: int | None, *, signed: bool
) -> SparseText:
    from deepxc.data import sparse_text_kernel as kernel

    if max(columns, labels or 0) > np.iinfo(np.int32).max:
        raise DataError("more than 2^31 columns", where=f"{path}:1", remedy="Renumber the columns")
    buffer = np.frombuffer(data, np.uint8)
    line_count, colons, commas = kernel.count_marks(buffer, start)
    indptr, indices, values = (
        np.zeros(line_count + 1, np.int64),
        np.empty(colons, np.int32),
        np.empty(colons, np.float32),
    )
    label_indptr = np.zeros(line_count + 1, np.int64)
    label_indices = np.empty(0 if labels is None else commas + line_count, np.int32)
    lines = np.empty(line_count, np.int64)
    found, line, position, fault, ascending = kernel.parse_rows(
        buffer,
        start,
        columns,
        -1 if labels is None else labels,
        signed,
        indptr,
        indices,
        values,
        label_indptr,
        label_indices,
        lines,
    )
    if fault:
        raise _fault(data, path, line, position, fault, columns, labels)
    found = _without_blank_end(indptr, label_indptr, found, rows)
    if found != rows:
        raise DataError(
            f"the header says {rows} rows but there are {found}",
            where=f"{path}:1",
            remedy="Mend the header, or fetch the file again if it was cut off",
        )
    matrix = _matrix(indptr, indices, values, found, columns)
    if not ascending:
        _order(matrix, path, lines)
    label_matrix = None
    if labels is not None:
        ones = np.ones(label_indptr[found], np.float32)
        label_matrix = _matrix(label_indptr, label_indices, ones, found, labels)
    return SparseText(matrix, lines[:found], label_matrix)


def _without_blank_end(indptr: np.ndarray, label_indptr: np.ndarray, found: int, rows: int) -> int:
    """Rows found, less the blank lines at the end of the file that are more than the header says."""
    while found > rows and indptr[found] == indptr[found - 1] and label_indptr[found] == label_indptr[found - 1]:
        found -= 1
    return found


def _matrix(indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, rows: int, columns: int) -> sparse.csr_matrix:
    from scipy import sparse

    size = int(indptr[rows])
    kind = np.int32 if size < np.iinfo(np.int32).max else np.int64
    return sparse.csr_matrix(
        (values[:size], indices[:size].astype(kind, copy=False), indptr[: rows + 1].astype(kind)),
        shape=(rows, columns),
    )


def _order(matrix: sparse.csr_matrix, path: Path, lines: np.ndarray) -> None:
    """Sort each row's ids in place, refusing an id that stands twice."""
    matrix.has_sorted_indices = False
    matrix.sort_indices()
    same = np.flatnonzero(matrix.indices[1:] == matrix.indices[:-1])
    rows = np.searchsorted(matrix.indptr, same, side="right")
    inside = rows == np.searchsorted(matrix.indptr, same + 1, side="right")
    if inside.any():
        first = int(same[inside][0])
        line = int(lines[row_of(matrix.indptr, first)])
        raise _twice(path, line, int(matrix.indices[first]))


def _twice(path: Path, line: int, column: int | str) -> DataError:
    return DataError(f"id {column} stands twice in one row", where=f"{path}:{line}", remedy="List every id once a row")


def _fault(
    data: bytes, path: Path, line: int, position: int, fault: int, columns: int, labels: int | None
) -> DataError:
    """The kernel's fault in words, with the token it stumbled on."""
    from deepxc.data import sparse_text_kernel as kernel

    start = position
    while start > 0 and data[start - 1] not in b" \t\r\n":
        start -= 1
    token = data[start : start + 40].split()[0].decode("utf-8", "replace") if data[start : start + 40].split() else ""
    where = f"{path}:{line}"
    if fault == kernel.TWICE:
        return _twice(path, line, token.split(":")[0])
    what, remedy = {
        kernel.BAD_ID: (f"`{token}` does not begin with an id", "Write pairs as id:value, ids from 0"),
        kernel.NO_COLON: (f"`{token}` is not a pair", "Write pairs as id:value, ids from 0"),
        kernel.BAD_VALUE: (f"the value of `{token}` is not a number", "Write pairs as id:value"),
        kernel.NOT_FINITE: (f"the value of `{token}` is not finite", "Leave the pair out or give it a finite value"),
        kernel.ID_TOO_LARGE: (
            f"the id of `{token}` is past the last of {columns} columns",
            "Count ids from 0, or mend the header",
        ),
        kernel.NEGATIVE: (f"the weight of `{token}` is negative", "Give a weight of at least 0"),
        kernel.LABEL_TOO_LARGE: (
            f"a label of `{token}` is past the last of {labels} labels",
            "Count label ids from 0, or mend the header",
        ),
        kernel.BAD_LABEL: (f"`{token}` is not a list of labels", "Write label ids joined by commas, without spaces"),
    }[fault]
    return DataError(what, where=where, remedy=remedy)

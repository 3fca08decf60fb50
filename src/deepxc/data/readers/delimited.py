"""CSV and TSV with named columns, and what stands between the labels of one cell."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import orjson

from deepxc.data.dataset import Source
from deepxc.data.files import decode, empty_file, read_bytes
from deepxc.data.readers.fields import choose_fields
from deepxc.data.rows import LabelLists, Rows, resolve
from deepxc.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from deepxc.data.label_space import LabelSpace
    from deepxc.data.readers.options import ReadOptions

Splitter = Callable[[str], list[str]]
MARKED = re.compile(r"\s*<\S+>(\s+<\S+>)*\s*")
NUMBERS = re.compile(r"\s*\d+([\s,]+\d+)*\s*")
SEPARATORS = ("|", ";")


class Table:
    """A delimited file in memory: its header, its records and the line where each begins."""

    def __init__(self, path: Path, delimiter: str | None = None, *, header: bool = True) -> None:
        text = decode(read_bytes(path), path)
        self.path = path
        delimiter = delimiter or _delimiter(text)
        try:
            self.records, self.lines = _parse(text, path, delimiter, quoted=True, header=header)
        except DataError:
            if delimiter != "\t":
                raise
            # Half of all TSV files quote as CSV does, the other half hold quotes as they are.
            self.records, self.lines = _parse(text, path, delimiter, quoted=False, header=header)
        self.header: list[str] = []
        if header:
            self.header = [name.strip() for name in self.records.pop(0)]
            first = self.lines.pop(0)
            twice = next((name for name in self.header if self.header.count(name) > 1), None)
            if twice is not None:
                raise DataError(
                    f"the column {twice!r} stands twice",
                    where=f"{path}:{first}",
                    remedy="Give every column its own name",
                )
        if not self.records:
            raise empty_file(path)

    def column(self, name: str) -> list[str]:
        """All cells of a column."""
        place = self.header.index(name)
        return [record[place] for record in self.records]


def read_rows(path: Path, options: ReadOptions, vocabulary: LabelSpace | None = None) -> Rows:
    """Read a file whose first line names its columns."""
    table = Table(path)
    fields = choose_fields(table.header, options, f"{path}:1")
    source = Source(str(path), np.array(table.lines))
    columns = [table.column(name) for name in fields.text]
    texts = columns[0] if len(columns) == 1 else [" ".join(filter(None, cells)) for cells in zip(*columns, strict=True)]
    labels = None
    if fields.label is not None:
        cells = table.column(fields.label)
        split = splitter(cells, options.separator, vocabulary, source)
        lists = [split(cell) for cell in cells]
        weights = None
        if fields.weight is not None:
            weights = _weights(table.column(fields.weight), list(map(len, lists)), source)
        labels = LabelLists.of_lists(lists)
        labels = LabelLists(labels.indptr, labels.codes, labels.names, weights)
        if fields.positions:
            labels = _positions(labels, source)
    return Rows(source, texts, labels, table.column(fields.id) if fields.id else None)


def has_known_header(first_line: str, delimiter: str) -> bool:
    """Whether a line is a header: it has a column named as people name texts."""
    from deepxc.data.readers.fields import IDS, LABELS, TEXT

    cells = {cell.strip().strip('"').lower() for cell in first_line.split(delimiter)}
    return bool(cells & set(TEXT)) and bool(len(cells) == 1 or cells & {*LABELS, *IDS})


def splitter(cells: Sequence[str], separator: str | None, vocabulary: LabelSpace | None, source: Source) -> Splitter:
    """How to split the label cells of a column.

    In this order: what the user says, JSON lists, `<uri> <uri>`, row numbers, what makes most of them labels of the
    vocabulary, `|`, `;`. Commas alone are refused: names hold commas too, and a guess would make other labels.
    """
    if separator is not None:
        return _by(separator)
    filled = [cell for cell in cells if cell and not cell.isspace()]
    if filled and all(cell.lstrip()[0] == "[" for cell in filled):
        return lambda cell: _json_list(cell, cells, source)
    if all(map(MARKED.fullmatch, filled)):
        return lambda cell: [uri[1:-1] for uri in cell.split()]
    if vocabulary is not None:
        ways = [_by(mark) for mark in ("", *SEPARATORS, ",", " ")]
        return max(ways, key=lambda way: _known_share(way, filled, vocabulary))
    if all(map(NUMBERS.fullmatch, filled)):
        return lambda cell: cell.replace(",", " ").split()
    for mark in SEPARATORS:
        if any(mark in cell for cell in filled):
            return _by(mark)
    row = next((i for i, cell in enumerate(cells) if "," in cell), None)
    if row is not None:
        raise DataError(
            f"does `{cells[row][:60]}` hold one label or several",
            where=source.at(row),
            remedy="Say separator=',' for several or separator='' for one label a cell",
        )
    if filled and all(cell.startswith(("http://", "https://")) for cell in filled):
        return str.split
    return _by("")


def _by(mark: str) -> Splitter:
    if not mark:
        return lambda cell: [cell.strip()] if cell.strip() else []
    return lambda cell: [part for part in map(str.strip, cell.split(mark)) if part]


def _known_share(way: Splitter, cells: Sequence[str], vocabulary: LabelSpace) -> float:
    """Share of the labels that the vocabulary holds, if cells are split that way."""
    sample = list(dict.fromkeys(chain.from_iterable(map(way, cells[:2000]))))
    return float((resolve(sample, vocabulary) >= 0).mean()) if sample else 0.0


def _json_list(cell: str, cells: Sequence[str], source: Source) -> list[str]:
    if not cell.strip():
        return []
    try:
        return [str(label) for label in orjson.loads(cell)]
    except orjson.JSONDecodeError:
        where = source.at(cells.index(cell))
        raise DataError(f"`{cell[:60]}` is not a JSON list", where=where, remedy="Mend the cell") from None


def _positions(labels: LabelLists, source: Source) -> LabelLists:
    """Labels of a column that holds rows of the label space."""
    names = labels.names or []
    bad = next((code for code, name in enumerate(names) if not name.isdigit() or len(name) > 18), None)
    if bad is not None:
        row = int(np.searchsorted(labels.indptr, int(np.flatnonzero(labels.codes == bad)[0]), side="right")) - 1
        raise DataError(
            f"label {names[bad]!r} is not a row number", where=source.at(row), remedy="Name the column labels"
        )
    numbers = np.array([int(name) for name in names], np.int64)
    return LabelLists(labels.indptr, numbers[labels.codes], None, labels.weights)


def _weights(cells: Sequence[str], counts: Sequence[int], source: Source) -> np.ndarray:
    """Weights of a column, split like numbers, one a label."""
    weights: list[float] = []
    for row, (cell, count) in enumerate(zip(cells, counts, strict=True)):
        parts = [part for part in re.split(r"[\s|;,\[\]]+", cell) if part]
        try:
            weights += map(float, parts)
        except ValueError:
            raise DataError(
                f"weights `{cell[:60]}` are not numbers", where=source.at(row), remedy="Mend them"
            ) from None
        if len(parts) != count:
            raise DataError(
                f"{len(parts)} weights for {count} labels", where=source.at(row), remedy="Give one weight a label"
            )
    return np.array(weights, np.float64)


def _delimiter(text: str) -> str:
    """The delimiter of a header line: of tab, comma and semicolon the most frequent."""
    line = text[: text.find("\n") if "\n" in text else len(text)]
    return max("\t,;", key=line.count)


def _parse(text: str, path: Path, delimiter: str, *, quoted: bool, header: bool) -> tuple[list[list[str]], list[int]]:
    """Records and the line where each begins; blank lines are no records."""
    limit = csv.field_size_limit(sys.maxsize)  # a long text is no fault; the old limit is put back
    records: list[list[str]] = []
    lines: list[int] = []
    line = 1
    try:
        reader = csv.reader(
            io.StringIO(text, newline=""),
            delimiter=delimiter,
            strict=True,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        )
        for record in reader:
            if record:
                records.append(record)
                lines.append(line)
            line = reader.line_num + 1
    except csv.Error as fault:
        raise DataError(
            f"not valid CSV ({fault})", where=f"{path}:{line}", remedy='Close every quote and write a quote as ""'
        ) from None
    finally:
        csv.field_size_limit(limit)
    if not records:
        raise empty_file(path)
    width = len(records[0])
    for record, number in zip(records, lines, strict=True):
        if header and len(record) != width:
            raise DataError(
                f"{len(record)} cells in a file of {width} columns",
                where=f"{path}:{number}",
                remedy="Put cells that hold the delimiter in double quotes",
            )
    return records, lines

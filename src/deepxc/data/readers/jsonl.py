"""JSON lines: one object a row, with its text, its labels and, if there are some, weights and an id.

Labels may be names, ids, numbers, or objects such as `{"uri": ...}`, `{"label": ...}`, `{"id", "name", "score"}`;
`target_ind` holds rows of the label space and `target_rel` their weights. A file that is one JSON array of such
objects reads the same, but its faults are told by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from deepxc.data.dataset import Source
from deepxc.data.files import HEAD_BYTES, empty_file, line_blocks, not_utf8, read_bytes, read_head
from deepxc.data.readers.fields import Fields, choose_fields
from deepxc.data.rows import LabelLists, Rows, starts
from deepxc.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from deepxc.data.readers.options import ReadOptions

LABEL_IDS = ("id", "uri", "uid", "code", "notation")
LABEL_NAMES = ("name", "label", "title")
LABEL_WEIGHTS = ("weight", "score")


def is_json(name: str, head: bytes) -> bool:
    """Whether a file holds JSON objects: by its ending, and where that says nothing, by what it begins with.

    A table or a plain text may begin with a brace, so `.csv` and `.tsv` are never JSON, and any other file only where
    its first line is an object with fields (or its first bytes an array of objects).
    """
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return True
    if name.endswith((".csv", ".tsv", ".tab")):
        return False
    begin = head.lstrip()
    if begin[:2] == b"[{":
        return True
    line, end, _ = begin.partition(b"\n")
    if not end and len(head) >= HEAD_BYTES:  # a first line longer than what was read of it
        return begin[:2] == b'{"'
    try:
        first = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(first, dict) and bool(first)


def read_rows(path: Path, options: ReadOptions) -> Rows:
    """Read a JSON lines file, its labels too where a row has some."""
    collected = _Collector(path, options)
    for lines, objects in objects_of(path):
        collected.add(lines, objects)
    return collected.rows()


def objects_of(path: Path) -> Iterator[tuple[np.ndarray | None, list[dict[str, Any]]]]:
    """The objects of a file in blocks, and the line of each; None where the file is one array."""
    if read_head(path, 256).lstrip()[:1] == b"[":
        yield None, _array(path)
        return
    for first, lines in line_blocks(path):
        numbers = np.arange(first, first + len(lines))
        filled = lines
        if not all(lines):  # blank lines are no rows
            numbers = numbers[np.fromiter(map(bool, lines), bool, len(lines))]
            filled = [line for line in lines if line]
        try:
            objects = list(map(orjson.loads, filled))
        except orjson.JSONDecodeError:
            raise _broken_line(path, filled, numbers) from None
        if set(map(type, objects)) - {dict}:
            row = next(i for i, value in enumerate(objects) if not isinstance(value, dict))
            raise _not_an_object(f"{path}:{numbers[row]}")
        yield numbers, objects


def _array(path: Path) -> list[dict[str, Any]]:
    data = read_bytes(path)
    try:
        objects = orjson.loads(data)
    except orjson.JSONDecodeError as fault:
        line = data[: fault.pos].count(b"\n") + 1
        raise DataError(f"not valid JSON ({fault.msg})", where=f"{path}:{line}", remedy="Mend the JSON") from None
    for row, value in enumerate(objects):
        if not isinstance(value, dict):
            raise _not_an_object(f"{path}, row {row}")
    return objects


def _not_an_object(where: str) -> DataError:
    return DataError("the row is not a JSON object", where=where, remedy='Write one {"text": ...} a row')


def _broken_line(path: Path, lines: Sequence[bytes], numbers: np.ndarray) -> DataError:
    """The error for the first line that does not parse."""
    for line, number in zip(lines, numbers, strict=True):
        try:
            orjson.loads(line)
        except orjson.JSONDecodeError as fault:
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as bad:
                return not_utf8(path, int(number), line[bad.start])
            what = f"not valid JSON at column {fault.colno} ({fault.msg.split(': line')[0]})"
            return DataError(what, where=f"{path}:{number}", remedy="Write one JSON object a line")
    raise AssertionError("every line parses")


class _Collector:
    """Gathers columns from blocks of objects, by whole columns as long as rows are regular."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.path = path
        self.options = options
        self.present: dict[str, None] = {}
        self.numbers: list[np.ndarray | None] = []
        self.texts: list[str] = []
        self.ids: list[Any] = []
        self.cells: list[Any] = []
        self.counts: list[int] = []
        self.weights: list[float] = []
        self.weight_counts: list[int] = []
        self.names: dict[str, str] = {}
        self.filtered: list[list[str]] = []
        self.fields: Fields | None = None

    def add(self, numbers: np.ndarray | None, objects: list[dict[str, Any]]) -> None:
        """Take the next block of rows."""
        if not objects:
            return
        base = len(self.texts)
        self.numbers.append(numbers)
        before = len(self.present)
        self.present.update(dict.fromkeys(chain.from_iterable(objects)))
        if (
            len(self.present) > before or self.fields is None
        ):  # a field may first appear late; what is read depends on all of them
            self._choose()
        fields = self.fields
        assert fields is not None
        self._add_texts(objects, fields.text, base)
        if fields.id is not None:
            self.ids += [""] * (base - len(self.ids))
            self.ids += [_plain(value) for value in map(_getter(fields.id), objects)]
        if fields.label is not None:
            self.counts += [0] * (base - len(self.counts))
            self._add_labels(list(map(_getter(fields.label), objects)), positions=fields.positions, base=base)
        if fields.weight is not None:
            self.weight_counts += [0] * (base - len(self.weight_counts))
            given = list(map(_as_list, map(_getter(fields.weight), objects)))
            self.weights += chain.from_iterable(given)
            self.weight_counts += map(len, given)
        if fields.filtered is not None:
            self.filtered += [[]] * (base - len(self.filtered))
            self.filtered += [[str(cell) for cell in value or ()] for value in map(_getter(fields.filtered), objects)]

    def _choose(self) -> None:
        before = self.fields
        self.fields = choose_fields(self.present, self.options, self._at(max(len(self.texts), 0)))
        if before is not None and before.label is not None and before.label != self.fields.label:
            raise DataError(
                f"labels stand in {before.label!r} above and in {self.fields.label!r} here",
                where=self._at(len(self.texts)),
                remedy="Use one field, or say which with label=",
            )

    def _at(self, row: int) -> str:
        base = 0
        for numbers in self.numbers:
            if numbers is None:
                break
            if row < base + len(numbers):
                return f"{self.path}:{numbers[row - base]}"
            base += len(numbers)
        return f"{self.path}, row {row}"

    def _add_texts(self, objects: list[dict[str, Any]], fields: tuple[str, ...], base: int) -> None:
        if len(fields) == 1:
            texts = list(map(_getter(fields[0]), objects))
        else:
            texts = [_joined([row.get(name) for name in fields]) for row in objects]
        if set(map(type, texts)) == {str}:
            self.texts += texts
            return
        for row, text in enumerate(texts):
            if isinstance(text, str):
                continue
            if text is None and any(name in objects[row] for name in fields):
                texts[row] = ""  # null: there, but empty
                continue
            what = f"the row has no {' or '.join(fields)}" if text is None else f"the text is a {type(text).__name__}"
            raise DataError(what, where=self._at(base + row), remedy=f"Give every row a string as {fields[0]!r}")
        self.texts += texts

    def _add_labels(self, values: list[Any], *, positions: bool, base: int) -> None:
        if set(map(type, values)) - {list}:
            values = [_as_list(value) for value in values]
        flat = list(chain.from_iterable(values))
        kinds = set(map(type, flat))
        counts = list(map(len, values))
        if positions:
            if kinds - {int}:
                raise self._bad_label(values, base, (int,), "a row number of the label file")
            self.cells += flat
        elif kinds <= {str}:
            self.cells += flat
        else:
            if kinds - {str, int, dict}:
                raise self._bad_label(values, base, (str, int, dict), "a name, an id or an object")
            self._add_objects(flat, counts, base)
        self.counts += counts

    def _add_objects(self, flat: list[Any], counts: list[int], base: int) -> None:
        """Labels that are objects or numbers: their id or name becomes the cell."""
        weighted = False
        for place, cell in enumerate(flat):
            if not isinstance(cell, dict):
                self.cells.append(str(cell))
                continue
            label = next((str(cell[key]) for key in LABEL_IDS if cell.get(key) is not None), None)
            name = next((str(cell[key]) for key in LABEL_NAMES if cell.get(key) is not None), None)
            if label is None and name is None:
                row = int(np.searchsorted(starts(counts), place, side="right")) - 1
                what = f"a label has none of {', '.join((*LABEL_IDS, *LABEL_NAMES))}"
                raise DataError(what, where=self._at(base + row), remedy='Write labels as {"id": ..., "name": ...}')
            if label is not None and name is not None:
                self.names[label] = name
            self.cells.append(label if label is not None else name)
            weighted |= any(key in cell for key in LABEL_WEIGHTS)
        if weighted and (self.fields is None or self.fields.weight is None):
            self.weight_counts += [0] * (base - len(self.weight_counts))
            self.weight_counts += counts
            self.weights += [_weight(cell) for cell in flat]

    def _bad_label(self, values: list[Any], base: int, kinds: tuple[type, ...], wanted: str) -> DataError:
        for row, cells in enumerate(values):
            for cell in cells:
                if type(cell) not in kinds:
                    return DataError(
                        f"label {cell!r} is not {wanted}", where=self._at(base + row), remedy="Mend the label"
                    )
        raise AssertionError("every label is of a known kind")

    def rows(self) -> Rows:
        """What was gathered."""
        size = len(self.texts)
        if not size or self.fields is None:
            raise empty_file(self.path)
        source = self._source()
        labels = None
        if self.fields.label is not None:
            weights = self._weights(source)
            if self.fields.positions:
                try:
                    codes = np.array(self.cells, np.int64)
                except OverflowError:
                    row = next(i for i, cell in enumerate(self.cells) if abs(cell) >= 1 << 63)
                    where = source.at(int(np.searchsorted(starts(self.counts), row, side="right")) - 1)
                    what = f"label id {self.cells[row]} is out of range"
                    raise DataError(what, where=where, remedy="Mend the label") from None
                labels = LabelLists(starts(self.counts), codes, None, weights)
            else:
                labels = LabelLists.of_names(self.cells, self.counts, weights)
        ids = self.ids if self.fields.id is not None else None
        filtered = LabelLists.of_lists(self.filtered) if self.fields.filtered is not None else None
        return Rows(source, self.texts, labels, ids, self.names, filtered)

    def _source(self) -> Source:
        numbers = [part for part in self.numbers if part is not None]
        if not numbers:
            return Source(str(self.path), first_line=0)
        lines = np.concatenate(numbers)
        consecutive = lines[-1] - lines[0] + 1 == len(lines)
        return Source(str(self.path), first_line=int(lines[0])) if consecutive else Source(str(self.path), lines)

    def _weights(self, source: Source) -> np.ndarray | None:
        if not self.weight_counts:
            return None
        self.weight_counts += [0] * (len(self.counts) - len(self.weight_counts))
        if self.weight_counts != self.counts:
            pairs = zip(self.weight_counts, self.counts, strict=True)
            row = next(i for i, (given, wanted) in enumerate(pairs) if given != wanted)
            what = f"{self.weight_counts[row]} weights for {self.counts[row]} labels"
            raise DataError(what, where=source.at(row), remedy="Give one weight a label")
        if set(map(type, self.weights)) - {int, float}:
            place = next(i for i, value in enumerate(self.weights) if type(value) not in (int, float))
            row = int(np.searchsorted(starts(self.counts), place, side="right")) - 1
            what = f"label weight {self.weights[place]!r} is not a number from 0 up"
            raise DataError(what, where=source.at(row), remedy="Give every label a finite weight of at least 0")
        return np.array(self.weights, np.float64)


def _getter(name: str) -> Any:  # noqa: ANN401 - a callable from an object to whatever JSON holds
    return lambda row: row.get(name)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _joined(values: list[Any]) -> Any:  # noqa: ANN401 - a fault keeps its own type, to be told later
    odd = next((value for value in values if value is not None and not isinstance(value, str)), None)
    if odd is not None or all(value is None for value in values):
        return odd
    return " ".join(value for value in values if value)


def _as_list(value: object) -> list[Any]:
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def _weight(cell: object) -> Any:  # noqa: ANN401 - checked where all weights are
    if not isinstance(cell, Mapping):
        return 1.0
    return next((cell[key] for key in LABEL_WEIGHTS if key in cell), 1.0)

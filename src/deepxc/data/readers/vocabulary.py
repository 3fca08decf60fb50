"""Label vocabularies: the XC repository's label file, Annif's TSV and CSV, JSON lines, one name a line, Parquet."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from deepxc.data.files import read_head, text_lines
from deepxc.data.label_space import LabelSpace
from deepxc.data.readers.delimited import Table
from deepxc.data.readers.jsonl import objects_of
from deepxc.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from deepxc.data.readers.folder import Folder

WORDS = ("lbl", "labels", "label", "vocab", "vocabulary", "subjects", "output-labels", "output-items")
ENDINGS = ("json", "jsonl", "ndjson", "tsv", "csv", "parquet", "txt")
IDS = ("uid", "id", "uri", "code", "notation")
NAMES = ("title", "name", "label", "prefLabel")
TEXTS = ("content", "description", "definition", "altLabels")


def find(folder: Folder) -> Path | None:
    """The vocabulary file of a folder, if it has one."""
    return folder.find(*(f"{word}.{ending}" for ending in ENDINGS for word in WORDS))


def read(path: Path, language: str | None = None) -> LabelSpace:
    """Read a label vocabulary; row numbers are line numbers.

    Args:
        path: The file.
        language: Language of the names where the file has columns such as `label_en`.
    """
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        from deepxc.data.readers.parquet import read_labels

        return read_labels(path)
    head = read_head(path, 256).lstrip()
    if head[:1] in (b"{", b"["):
        return _read_json(path)
    if name.endswith(".csv"):
        return _read_table(path, language)
    first = head.split(b"\n", 1)[0]
    if b"\t" in first or name.endswith(".tsv"):
        cells = [cell.strip().lower() for cell in first.decode("utf-8", "replace").split("\t")]
        return _read_table(path, language) if cells[0] in IDS else _read_tsv(path)
    lines = text_lines(path)
    unique(lines, lambda row: f"{path}:{row + 1}")
    return LabelSpace.from_names(lines)


def unique(ids: Sequence[str], at: Callable[[int], str]) -> None:
    """Refuse a label id that stands twice."""
    if len(set(ids)) == len(ids):
        return
    first: dict[str, int] = {}
    for row, label in enumerate(ids):
        if label in first:
            raise DataError(
                f"the label id {label!r} stands twice (first at {at(first[label])})",
                where=at(row),
                remedy="Give every label its own id",
            )
        first[label] = row


def _read_json(path: Path) -> LabelSpace:
    """One object a label; labels without ids are called by their names, or by their rows where names repeat.

    The row of a label is what `target_ind` means, so a blank line between labels is a fault.
    """
    ids: list[str] = []
    names: list[str] = []
    texts: list[str | None] = []
    places: list[int] = []
    numbered = True  # as long as no label has an id
    for lines, objects in objects_of(path):
        row = len(places)
        places += range(1, len(objects) + 1) if lines is None else lines.tolist()
        gap = None if lines is None else next((i for i, line in enumerate(places[row:], row + 1) if line != i), None)
        if gap is not None:
            raise DataError("blank line among the labels", where=f"{path}:{gap}", remedy="Delete the blank line")
        id_field = _first(objects, IDS)
        name_field = _first(objects, NAMES)
        numbered &= id_field is None
        if id_field is None and name_field is None:
            what = f"labels have none of {', '.join((*IDS, *NAMES))}"
            raise DataError(what, where=f"{path}:{places[row]}", remedy='Write {"uid": ..., "title": ...} a line')
        for number, value in enumerate(objects, row):
            name, label = _text(value.get(name_field or "")), value.get(id_field or "")
            if name is None and label is None:
                what = f"the label has no {id_field or name_field}"
                raise DataError(what, where=f"{path}:{places[number]}", remedy="Give every label an id or a name")
            ids.append(_text(name if label is None else label) or "")
            names.append(ids[-1] if name is None else name)
            texts.append(_said(value, names[-1]))
    if numbered and len(set(ids)) < len(ids):
        ids = [str(row) for row in range(len(ids))]
    unique(ids, lambda row: f"{path}:{places[row]}")
    if all(text is None for text in texts):
        return LabelSpace(ids, names)
    return LabelSpace(ids, names, [text or "" for text in texts])


def _first(objects: Sequence[dict[str, Any]], known: Sequence[str]) -> str | None:
    present = set(chain.from_iterable(objects))
    return next((name for name in known if name in present), None)


def _text(value: object) -> str | None:
    return None if value is None else value if isinstance(value, str) else str(value)


def _said(value: dict[str, Any], name: str) -> str | None:
    """What a label says: its `text` where given, even if that is none, else its name and description."""
    if "text" in value:
        return _text(value["text"])
    more = next((value[key] for key in TEXTS if value.get(key)), None)
    if isinstance(more, list):
        more = ", ".join(map(str, more))
    return f"{name} {more}".strip() if more else name


def _read_tsv(path: Path) -> LabelSpace:
    """`<uri>` tab name, and perhaps tab notation; no header."""
    ids, names = [], []
    for number, line in enumerate(text_lines(path), 1):
        cells = line.split("\t")
        if len(cells) < 2:
            raise DataError("no tab between uri and label", where=f"{path}:{number}", remedy="Write `<uri>` tab label")
        uri = cells[0].strip()
        ids.append(uri[1:-1] if uri.startswith("<") and uri.endswith(">") else uri)
        names.append(cells[1].strip())
    unique(ids, lambda row: f"{path}:{row + 1}")
    return LabelSpace(ids, names, names)


def _read_table(path: Path, language: str | None) -> LabelSpace:
    """Named columns: an id, a name in one or more languages, perhaps a description."""
    table = Table(path)
    by_lower = {name.lower(): name for name in table.header}
    id_column = next((by_lower[name] for name in IDS if name in by_lower), None)
    spoken = [name for name in table.header if name.lower().startswith(("label_", "preflabel_", "name_"))]
    name_column = next((by_lower[name.lower()] for name in NAMES if name.lower() in by_lower), None)
    if language is not None or name_column is None:
        name_column = _spoken(spoken, language, path) or name_column
    if id_column is None and name_column is None:
        what = f"no column is one of {', '.join((*IDS, *NAMES))}; there are {', '.join(table.header)}"
        raise DataError(what, where=f"{path}:1", remedy="Name the columns id and name")
    names = table.column(name_column or id_column or "")
    ids = [uri.strip().removeprefix("<").removesuffix(">") for uri in table.column(id_column)] if id_column else names
    unique(ids, lambda row: f"{path}:{table.lines[row]}")
    if "text" in by_lower:
        return LabelSpace(ids, names, table.column(by_lower["text"]))
    more = next((table.column(by_lower[name]) for name in TEXTS if name in by_lower), None)
    if more is None:
        return LabelSpace(ids, names, names)
    return LabelSpace(ids, names, [" ".join(filter(None, pair)) for pair in zip(names, more, strict=True)])


def _spoken(columns: Sequence[str], language: str | None, path: Path) -> str | None:
    """The name column of a language."""
    if not columns:
        return None
    known = {column.rsplit("_", 1)[1]: column for column in columns}
    if language is None and len(known) == 1:
        return columns[0]
    if language not in known:
        what = "label names in several languages" if language is None else f"no label names in language {language!r}"
        raise DataError(what, where=f"{path}:1", remedy=f"Say language= as one of {', '.join(known)}")
    return known[language]

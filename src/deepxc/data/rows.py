"""Rows as a file gives them, before their labels are known to be rows of a label space.

Every reader of row files fills `Rows`; `to_dataset` and `to_split` turn rows into the library's own types. A label
cell is a name (an id, a URI, a code, a name a person reads) or a position (a row number of the label space).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal

import numpy as np

from deepxc.data.dataset import Dataset, Source, Split
from deepxc.data.label_matrix import label_matrix, row_of
from deepxc.data.label_space import LabelSpace
from deepxc.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from scipy import sparse

Unknown = Literal["error", "drop", "add"]
EXAMPLES = 5


@dataclass(frozen=True)
class LabelLists:
    """A list of labels a row, each distinct name stored once.

    Attributes:
        indptr: Start of each row's labels in `codes`.
        codes: The labels: positions in `names`, or rows of the label space where `names` is None.
        names: The distinct names, or None where the file gives positions.
        weights: Weight of each label, or None where all are 1.
    """

    indptr: np.ndarray
    codes: np.ndarray
    names: list[str] | None = None
    weights: np.ndarray | None = None

    @classmethod
    def of_names(
        cls, cells: Sequence[str], counts: Sequence[int] | np.ndarray, weights: np.ndarray | None = None
    ) -> LabelLists:
        """From all rows' names in one list and the number of names in each row."""
        rows = {name: i for i, name in enumerate(dict.fromkeys(cells))}
        codes = np.fromiter(map(rows.__getitem__, cells), np.int64, len(cells))
        return cls(starts(counts), codes, list(rows), weights)

    @classmethod
    def of_lists(cls, lists: Iterable[Sequence[str]]) -> LabelLists:
        """From one list of names a row."""
        listed = list(lists)
        return cls.of_names(list(chain.from_iterable(listed)), list(map(len, listed)))


def starts(counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """Row starts from row lengths, as in CSR."""
    indptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    return indptr


@dataclass(frozen=True)
class Rows:
    """The rows of one file.

    Attributes:
        source: Where they came from.
        texts: One text a row, or None where the file has features alone.
        labels: Their labels, or None where the file has none.
        ids: Their ids, or None.
        names: Name of a label by its id, where the file gives both.
        filtered: Labels left out of scoring, or None.
        features: Features of each row, or None.
    """

    source: Source
    texts: list[str] | None
    labels: LabelLists | None = None
    ids: list[str] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    filtered: LabelLists | None = None
    features: sparse.csr_matrix | None = None

    def __len__(self) -> int:
        if self.texts is not None:
            return len(self.texts)
        return 0 if self.features is None else self.features.shape[0]


@dataclass(frozen=True)
class UnknownLabels:
    """Labels that rows name but the label space lacks.

    Attributes:
        count: How many labels of rows were left out.
        distinct: How many different labels that were.
        examples: The most frequent of them, each with the place where it first stands.
    """

    count: int = 0
    distinct: int = 0
    examples: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return self.count > 0

    def __str__(self) -> str:
        shown = ", ".join(f"{name!r} ({where})" for name, where in self.examples)
        return f"{self.count} labels ({self.distinct} different) are not in the label space: {shown}"


def to_dataset(
    name: str, parts: Mapping[str, Rows], labels: LabelSpace | None = None, unknown: Unknown = "error"
) -> Dataset:
    """A data set from the rows of its parts.

    Args:
        name: What to call it.
        parts: Rows of `train` and, where there are some, `test` and `validation`.
        labels: The vocabulary. Without one the label space is every name that a part uses, train or not, sorted,
            so that nothing is lost; where labels are positions it goes as far as the largest.
        unknown: What a label that the vocabulary lacks is: an error, left out, or added at its end.
    """
    for rows in parts.values():
        if rows.labels is None:
            raise DataError(
                "no labels found beside the texts",
                where=rows.source.path,
                remedy="Give a column or field named labels, or say which it is with label=",
            )
    if labels is None:
        labels = named_labels(parts.values())
    elif unknown == "add":
        labels = extended(labels, parts.values())
    return counted_dataset(name, {part: to_split(rows, labels, unknown)[0] for part, rows in parts.items()})


def counted_dataset(name: str, splits: Mapping[str, Split]) -> Dataset:
    """A data set whose label space counts the train labels and is one object in all splits."""
    labels = splits["train"].labels.counted(splits["train"].Y)
    shared = {part: replace(split, labels=labels) for part, split in splits.items()}
    return Dataset(name, labels, shared["train"], shared.get("test"), shared.get("validation"))


def named_labels(parts: Iterable[Rows]) -> LabelSpace:
    """The label space of labels known from rows alone: all that occur, in order; numbers are ordered as numbers."""
    parts = list(parts)
    lists = [rows.labels for rows in parts if rows.labels is not None]
    numbered = [part for part in lists if part.names is None]
    if numbered and len(numbered) < len(lists):
        paths = " and ".join(rows.source.path for rows in parts)
        raise DataError("one file gives labels by position, another by name", where=paths, remedy="Use one way")
    if numbered:
        return LabelSpace.numbered(1 + max((int(part.codes.max()) for part in numbered if len(part.codes)), default=-1))
    ids = set(chain.from_iterable(part.names or () for part in lists))
    numbers = all(map(is_number, ids))
    listed = sorted(ids, key=lambda name: (len(name), name)) if numbers else sorted(ids)
    known = {label: name for rows in parts for label, name in rows.names.items()}
    if not known:
        return LabelSpace.from_names(listed)
    names = [known.get(label, label) for label in listed]
    return LabelSpace(ids=listed, names=names, texts=names)


def extended(labels: LabelSpace, parts: Iterable[Rows]) -> LabelSpace:
    """The label space with the names it lacks added at the end, sorted."""
    parts = list(parts)
    used = {name for rows in parts if rows.labels is not None for name in rows.labels.names or ()}
    more = sorted(name for name in used if resolve([name], labels)[0] < 0)
    if not more:
        return labels
    if labels.features is not None:
        raise DataError("labels with features cannot be extended", remedy="Read with unknown='drop'")
    known = {label: name for rows in parts for label, name in rows.names.items()}
    names = [known.get(label, label) for label in more]
    texts = None if labels.texts is None else [*labels.texts, *names]
    return LabelSpace(ids=[*labels.ids, *more], names=[*labels.names, *names], texts=texts)


def resolve(cells: Sequence[str], labels: LabelSpace, names: Mapping[str, str] | None = None) -> np.ndarray:
    """Row of each cell in a label space, -1 where it has none.

    A cell is looked up as an id, then as a name that occurs once, then by the name its file gives beside it. A
    decimal number is a row number where no id of the label space is itself a number.
    """
    index = labels.index
    found = np.fromiter((index.get(cell, -1) for cell in cells), np.int64, len(cells))
    missing = np.flatnonzero(found < 0)
    if not len(missing):
        return found
    positions = not any(map(is_number, labels.ids))
    for i in missing.tolist():
        cell = cells[i]
        if names and cell in names:
            found[i] = index.get(names[cell], -1)
        elif positions and is_number(cell) and int(cell) < len(labels):
            found[i] = int(cell)
    return found


def is_number(text: str) -> bool:
    """Whether a text is a plain decimal number as one writes row numbers, without leading zeros."""
    return text.isascii() and text.isdigit() and (text[0] != "0" or len(text) == 1) and len(text) < 19


def to_split(rows: Rows, labels: LabelSpace, unknown: Unknown = "error") -> tuple[Split, UnknownLabels]:
    """Rows with their labels resolved against a label space, and what the label space lacks."""
    lists = rows.labels or LabelLists(np.zeros(len(rows) + 1, np.int64), np.empty(0, np.int64), [])
    known, missing = known_labels(lists, labels, rows.names, rows.source.at)
    if missing and unknown == "error":
        raise unknown_error(missing)
    Y = label_matrix(
        known.indptr,
        known.codes,
        known.weights,
        len(labels),
        rows.source.at,
        repeated="error" if lists.names is None else "merge",
    )
    pairs = np.empty((0, 2), np.int64)
    if rows.filtered is not None:
        kept, lost = known_labels(rows.filtered, labels, rows.names, rows.source.at)
        if lost and unknown == "error":
            raise unknown_error(lost)
        pairs = np.column_stack((np.repeat(np.arange(len(rows)), np.diff(kept.indptr)), kept.codes))
    return Split(labels, Y, rows.texts, rows.features, rows.ids, pairs, rows.source), missing


def unknown_error(missing: UnknownLabels) -> DataError:
    """The error for labels that a vocabulary lacks."""
    name, where = missing.examples[0]
    more = f" (and {missing.count - 1} more labels that are not)" if missing.count > 1 else ""
    return DataError(
        f"label {name!r} is not among the known labels{more}",
        where=where,
        remedy="Add it to the label vocabulary, or read with unknown='drop' or unknown='add'",
    )


def known_labels(
    lists: LabelLists, labels: LabelSpace, names: Mapping[str, str], at: Callable[[int], str]
) -> tuple[LabelLists, UnknownLabels]:
    """Label lists as rows of the label space, without those that it lacks, and what these are.

    Args:
        lists: The lists, by name or by position.
        labels: The label space.
        names: Name of a label by its id, where both are known.
        at: Where a row came from, for messages.
    """
    if lists.names is None:
        return lists, UnknownLabels()
    mapped = resolve(lists.names, labels, names)
    codes = mapped[lists.codes]
    lost = np.flatnonzero(codes < 0)
    if not len(lost):
        return replace(lists, codes=codes, names=None), UnknownLabels()
    counts = Counter(lists.codes[lost].tolist())
    top = [code for code, _ in counts.most_common(EXAMPLES)]
    places = [int(lost[np.flatnonzero(lists.codes[lost] == code)[0]]) for code in top]
    examples = tuple(
        (lists.names[code], at(row_of(lists.indptr, place))) for code, place in zip(top, places, strict=True)
    )
    kept = codes >= 0
    indptr = np.concatenate(([0], np.cumsum(kept)))[lists.indptr]
    weights = None if lists.weights is None else lists.weights[kept]
    return LabelLists(indptr, codes[kept], None, weights), UnknownLabels(len(lost), len(counts), examples)

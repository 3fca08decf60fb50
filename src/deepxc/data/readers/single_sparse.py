"""The XC repository's old layout: features and labels of a part in one file, or of all parts with split files."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from deepxc.data.dataset import Dataset, Source, Split
from deepxc.data.files import read_head, text_lines
from deepxc.data.label_matrix import label_matrix
from deepxc.data.label_space import LabelSpace
from deepxc.data.readers import filter_pairs
from deepxc.data.readers.folder import PARTS
from deepxc.data.rows import counted_dataset
from deepxc.data.sparse_text import is_header, read_labelled_sparse_text
from deepxc.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from deepxc.data.readers.folder import Folder
    from deepxc.data.readers.options import ReadOptions

ROW = re.compile(rb"[^\n:]*\d:|[\d,\s]*(\n|$)")  # a row has a pair, or labels alone, or nothing
SPLIT_WORDS = {"train": ("trsplit", "trnsplit", "trainsplit"), "test": ("tstsplit", "testsplit")}


def is_single_file(path: Path) -> bool:
    """Whether a file begins with the header `rows features labels`, and a row rather than a text comes next."""
    if not path.name.removesuffix(".gz").endswith((".txt", ".svm", ".dat")):
        return False
    header, _, rest = read_head(path, 512).partition(b"\n")
    return is_header(header, 3) and ROW.match(rest) is not None


def recognises(folder: Folder) -> bool:
    """Whether the folder has such files, by part or with split files."""
    return bool(_part_files(folder)) or _whole_file(folder) is not None


def read(folder: Folder, options: ReadOptions) -> Dataset:
    """Read the files of all parts, or one file and the split files that divide it."""
    name = options.name or folder.path.resolve().name
    found = _part_files(folder)
    if found:
        splits = {part: _read_split(path) for part, path in found.items()}
        for part, split in splits.items():
            shapes = [(s.Y.shape[1], _width(s)) for s in (split, splits["train"])]
            if shapes[0] != shapes[1]:
                what = "{} labels and {} features, but {} has {} and {}"
                raise DataError(
                    what.format(*shapes[0], found["train"], *shapes[1]),
                    where=f"{found[part]}:1",
                    remedy="Use files that were made together",
                )
        sizes = {part: len(split) for part, split in splits.items()}
        pairs = filter_pairs.read_all(folder, sizes, splits["train"].Y.shape[1])
        for part, filtered in pairs.items():
            splits[part] = replace(splits[part], filter_pairs=filtered)
        return counted_dataset(name, splits)
    whole = _whole_file(folder)
    assert whole is not None
    return _divided(whole, folder, options, name)


def read_file(path: Path, options: ReadOptions) -> Dataset:
    """Read one file as the train part."""
    return counted_dataset(options.name or path.name.split(".")[0], {"train": _read_split(path)})


def _read_split(path: Path) -> Split:
    text = read_labelled_sparse_text(path)
    assert text.labels is not None
    source = Source(str(path), text.lines)
    found = text.labels
    Y = label_matrix(found.indptr, found.indices, None, found.shape[1], source.at)
    return Split(labels=LabelSpace.numbered(Y.shape[1]), Y=Y, X=text.matrix, source=source)


def _width(split: Split) -> int:
    return 0 if split.X is None else split.X.shape[1]


def _part_files(folder: Folder) -> dict[str, Path]:
    """Files named by part (`train.txt`, `eurlex_train.txt`) that have the header; train among them, or none."""
    found = {}
    for part, words in PARTS.items():
        for name in folder:
            stem, _, ending = name.rpartition(".")
            if ending == "txt" and stem.lower().rpartition("_")[2] in words and is_single_file(folder.files[name]):
                found.setdefault(part, folder.files[name])
    return found if "train" in found else {}


def _whole_file(folder: Folder) -> Path | None:
    names = [name for name in folder if name.lower().removesuffix(".txt").endswith("data") and name.endswith(".txt")]
    if len(names) == 1 and _split_files(folder).keys() >= {"train"} and is_single_file(folder.files[names[0]]):
        return folder.files[names[0]]
    return None


def _split_files(folder: Folder) -> dict[str, Path]:
    found = {}
    for part, words in SPLIT_WORDS.items():
        for name in folder:
            if name.lower().removesuffix(".txt").endswith(words):
                found.setdefault(part, folder.files[name])
    return found


def _divided(path: Path, folder: Folder, options: ReadOptions, name: str) -> Dataset:
    """One file divided by a column of row numbers; they count from 1 if none is 0."""
    split = _read_split(path)
    columns = {part: _column(file, options.split_column) for part, file in _split_files(folder).items()}
    base = 0 if any((rows == 0).any() for rows in columns.values()) else 1
    splits = {}
    for part, numbers in columns.items():
        rows = numbers - base
        if len(rows) and (rows.min() < 0 or rows.max() >= len(split)):
            where = str(_split_files(folder)[part])
            what = f"a row number is past the {len(split)} rows of {path}"
            raise DataError(what, where=where, remedy="Use files that were made together")
        splits[part] = split.take(rows)
    return counted_dataset(name, splits)


def _column(path: Path, column: int) -> np.ndarray:
    rows = []
    for number, line in enumerate(text_lines(path), 1):
        cells = line.split()
        if not cells:
            continue
        if column >= len(cells) or not cells[column].isdigit():
            what = f"no row number in column {column}"
            raise DataError(what, where=f"{path}:{number}", remedy="Say which column with split_column=, from 0")
        rows.append(int(cells[column]))
    return np.array(rows, np.int64)

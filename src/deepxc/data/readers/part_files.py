"""One file of rows a part, in any row format: the XC repository's raw JSON, Annif's corpora, JSONL, CSV, Parquet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deepxc.data.readers import filter_pairs, vocabulary
from deepxc.data.readers.folder import PARTS
from deepxc.data.readers.row_files import ENDINGS, read_rows
from deepxc.data.rows import to_dataset
from deepxc.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from deepxc.data.dataset import Dataset
    from deepxc.data.readers.folder import Folder
    from deepxc.data.readers.options import ReadOptions


def recognises(folder: Folder) -> bool:
    """Whether the folder has a train file in a row format."""
    return "train" in part_files(folder)


def part_files(folder: Folder) -> dict[str, Path]:
    """The file of each part: `train.csv`, `trn.json`, and also `subjects-train.tsv` where that is the only one."""
    found = folder.parts(*(f"{{}}.{ending}" for ending in ENDINGS))
    for part, words in PARTS.items():
        if part in found:
            continue
        ends = tuple(f"{mark}{word}.{ending}" for mark in "-_." for word in words for ending in ENDINGS)
        named = [name for name in folder if name.lower().endswith(ends)]
        if len(named) == 1:
            found[part] = folder.files[named[0]]
    return found


def read(folder: Folder, options: ReadOptions) -> Dataset:
    """Read the parts against the folder's vocabulary, if it has one."""
    path = options.vocabulary or vocabulary.find(folder)
    labels = None if path is None else vocabulary.read(path, options.language)
    parts = {part: read_rows(file, options, labels) for part, file in part_files(folder).items()}
    data = to_dataset(options.name or folder.path.resolve().name, parts, labels, options.unknown)
    sizes = {part: len(rows) for part, rows in parts.items()}
    pairs = filter_pairs.read_all(folder, sizes, len(data.labels))
    if not pairs:
        return data
    if labels is None and any(rows.labels is not None and rows.labels.names is not None for rows in parts.values()):
        where = str(next(iter(folder.parts(*filter_pairs.NAMES).values())))
        raise DataError(
            "filter pairs need a label file to count in", where=where, remedy="Add lbl.json or say vocabulary="
        )
    split = {part: getattr(data, part) for part in parts}
    filtered = {part: replace(split[part], filter_pairs=pairs[part]) for part in pairs}
    return replace(data, **filtered)

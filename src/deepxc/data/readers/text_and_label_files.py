"""Texts in one file, their label names in another, line by line, as AttentionXML and LightXML lay them out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deepxc.data.files import text_lines
from deepxc.data.readers import text_lines as line_files
from deepxc.data.readers import vocabulary
from deepxc.data.readers.matrix_files import TEXTS as MATRIX_TEXTS
from deepxc.data.rows import LabelLists, to_dataset
from deepxc.errors import DataError

if TYPE_CHECKING:
    from deepxc.data.dataset import Dataset
    from deepxc.data.readers.folder import Folder
    from deepxc.data.readers.options import ReadOptions

TEXTS = tuple(name for name in MATRIX_TEXTS if name.endswith(".txt"))  # raw texts before tokenised ones
LABELS = ("{}_labels.txt",)


def recognises(folder: Folder) -> bool:
    """Whether train texts and train labels lie side by side."""
    return "train" in folder.parts(*LABELS) and "train" in folder.parts(*TEXTS)


def read(folder: Folder, options: ReadOptions) -> Dataset:
    """Read every part that has labels; they are separated by white space unless the options say otherwise."""
    texts = folder.parts(*TEXTS)
    parts = {}
    for part, path in folder.parts(*LABELS).items():
        if part not in texts:
            raise DataError("labels without texts", where=str(path), remedy="Add the part's texts")
        rows = line_files.read_bare(texts[part])
        lines = text_lines(path)
        if len(lines) != len(rows):
            raise DataError(
                f"{len(lines)} lines, but {texts[part]} has {len(rows)}",
                where=str(path),
                remedy="Give one line of labels a text",
            )
        split = [[cell.strip() for cell in line.split(options.separator or None) if cell.strip()] for line in lines]
        parts[part] = replace(rows, labels=LabelLists.of_lists(split))
    path = options.vocabulary or vocabulary.find(folder)
    labels = None if path is None else vocabulary.read(path, options.language)
    return to_dataset(options.name or folder.path.resolve().name, parts, labels, options.unknown)

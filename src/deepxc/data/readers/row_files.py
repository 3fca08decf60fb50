"""Files of rows: which reader a file needs, told from its name and its first bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from deepxc.data.files import read_head
from deepxc.data.readers import delimited, jsonl, text_lines
from deepxc.data.sparse_text import is_header
from deepxc.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from deepxc.data.label_space import LabelSpace
    from deepxc.data.readers.options import ReadOptions
    from deepxc.data.rows import Rows

PAIR = re.compile(rb"\s*\d+:[-+.\d]")
ENDINGS = ("jsonl", "ndjson", "json", "csv", "tsv", "parquet", "txt")


def read_rows(path: Path, options: ReadOptions, vocabulary: LabelSpace | None = None) -> Rows:
    """Read a file of rows in any row format.

    Args:
        path: The file, gzip or not.
        options: What the user says about it.
        vocabulary: The labels, where they are known; helps to split label cells.
    """
    head = read_head(path)
    name = path.name.removesuffix(".gz")
    if head[:4] == b"PAR1" or name.endswith(".parquet"):
        from deepxc.data.readers import parquet

        return parquet.read_rows(path, options)
    if jsonl.is_json(name, head):
        return jsonl.read_rows(path, options)
    lines = head.split(b"\n", 2)
    first = lines[0].decode("utf-8", "replace").rstrip("\r")
    if name.endswith((".tsv", ".tab")):
        if options.text or delimited.has_known_header(first, "\t"):
            return delimited.read_rows(path, options, vocabulary)
        return text_lines.read_short_text(path)
    if name.endswith(".csv"):
        return delimited.read_rows(path, options, vocabulary)
    if is_header(lines[0], 2) and PAIR.match(lines[1 % len(lines)]):
        raise DataError(
            "this is one file of a data set of sparse files", where=str(path), remedy="Give the folder that holds it"
        )
    if first.startswith(text_lines.FASTTEXT):
        return text_lines.read_fasttext(path)
    if text_lines.TEXT2TEXT.match(first):
        return text_lines.read_text2text(path)
    if "\t" in first:
        if delimited.has_known_header(first, "\t"):
            return delimited.read_rows(path, options, vocabulary)
        if delimited.MARKED.fullmatch(first.partition("\t")[2]):
            return text_lines.read_short_text(path)
    return text_lines.read_bare(path)

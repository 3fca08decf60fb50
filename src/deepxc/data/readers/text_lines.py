"""One text a line with its labels before or behind it: Annif's short texts, fastText, PECOS text2text, bare texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from deepxc.data.dataset import Source
from deepxc.data.files import empty_file, text_lines
from deepxc.data.rows import LabelLists, Rows, starts
from deepxc.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

FASTTEXT = "__label__"
TEXT2TEXT = re.compile(r"\d+(::[^,\t]*)?(,\d+(::[^,\t]*)?)*\t")


def read_bare(path: Path) -> Rows:
    """Texts without labels, one a line."""
    texts = text_lines(path)
    if not texts:
        raise empty_file(path)
    return Rows(Source(str(path)), texts)


def read_short_text(path: Path) -> Rows:
    """Annif's short texts: text, tab, `<uri> <uri>`."""
    texts, lists = [], []
    for number, line in enumerate(text_lines(path), 1):
        text, tab, cell = line.partition("\t")
        if not tab:
            raise DataError(
                "no tab between text and labels", where=f"{path}:{number}", remedy="Write text, a tab, `<uri> <uri>`"
            )
        texts.append(text)
        lists.append([uri[1:-1] if uri[0] == "<" and uri[-1] == ">" else uri for uri in cell.split()])
    return Rows(Source(str(path)), texts, LabelLists.of_lists(lists))


def read_fasttext(path: Path) -> Rows:
    """FastText's rows: labels that begin with `__label__`, then the text."""
    texts, lists = [], []
    for line in text_lines(path):
        labels, rest = [], line
        while rest.startswith(FASTTEXT):
            label, _, rest = rest.partition(" ")
            labels.append(label.removeprefix(FASTTEXT))
        texts.append(rest)
        lists.append(labels)
    return Rows(Source(str(path)), texts, LabelLists.of_lists(lists))


def read_text2text(path: Path) -> Rows:
    """PECOS rows: `0,1,2` or `0::0.5,1::0.2`, a tab, the text; numbers are rows of the label file."""
    texts: list[str] = []
    codes: list[int] = []
    counts: list[int] = []
    weights: list[float] = []
    for number, line in enumerate(text_lines(path), 1):
        cell, tab, text = line.partition("\t")
        if not tab:
            raise DataError(
                "no tab between labels and text", where=f"{path}:{number}", remedy="Write `0,1,2`, a tab, the text"
            )
        pairs = [part.partition("::") for part in cell.split(",")] if cell else []
        try:
            codes += [int(label) for label, _, _ in pairs]
            weights += [float(weight) if mark else 1.0 for _, mark, weight in pairs]
        except ValueError:
            raise DataError(
                f"`{cell[:60]}` is not a list of label numbers", where=f"{path}:{number}", remedy="Write `0,1,2`"
            ) from None
        counts.append(len(pairs))
        texts.append(text)
    labels = LabelLists(starts(counts), np.array(codes, np.int64), None, np.array(weights))
    return Rows(Source(str(path)), texts, labels)

"""A label space on disk: its strings as memory-mapped tables, so that opening costs nothing per label."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepxc.data.label_space import LabelSpace
from deepxc.persist.strings import StringTable
from deepxc.persist.tensors import Array, read_tensors, write_tensors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LABELS_FILE = "labels.safetensors"
"""Its name in a model folder."""
_FLAG = np.zeros(1, np.uint8)


def write_labels(path: Path, labels: LabelSpace) -> None:
    """Write ids, names, texts, features and frequencies into one file; a list used twice is written once."""
    tensors = _table("ids", labels.ids)
    if labels.names is not labels.ids:
        tensors |= _table("names", labels.names)
    if labels.texts is not None:
        tensors |= {"texts_are_names": _FLAG} if labels.texts is labels.names else _table("texts", labels.texts)
    if labels.features is not None:
        tensors["features"] = labels.features
    if labels.frequencies is not None:
        tensors["frequencies"] = labels.frequencies
    write_tensors(path, tensors)


def read_labels(path: Path) -> LabelSpace:
    """Open what `write_labels` wrote."""
    tensors = read_tensors(path)

    def strings(part: str) -> StringTable | None:
        blob = tensors.get(f"{part}_blob")
        return None if blob is None else StringTable(blob, tensors[f"{part}_ends"])

    ids = strings("ids")
    assert ids is not None
    names = strings("names") or ids
    texts = names if "texts_are_names" in tensors else strings("texts")
    return LabelSpace(ids, names, texts, tensors.get("features"), tensors.get("frequencies"))


def _table(part: str, strings: Sequence[str]) -> dict[str, Array]:
    table = StringTable.pack(strings)
    return {f"{part}_blob": table.blob, f"{part}_ends": table.ends}

"""What a user may say about a layout that the files do not say themselves."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepxc.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepxc.data.rows import Unknown


@dataclass(frozen=True)
class ReadOptions:
    """Options of `Dataset.read`.

    Attributes:
        layout: Name of the layout, where the files would be taken for another.
        name: What to call the data set; the folder's or file's name if not given.
        text: Field or column of the text, or several to join with a space.
        label: Field or column of the labels.
        id: Field or column of the row's id.
        weight: Field or column of the labels' weights.
        separator: What stands between the labels in one cell; an empty string where a cell is one label.
        vocabulary: File of the labels, where it does not lie beside the texts under a known name.
        language: Language of the label names where a vocabulary has several (`label_en`, `label_fi`, …).
        unknown: What a label that the vocabulary lacks is: `error`, `drop` (leave it out) or `add`.
        features: Whether to read feature matrices that lie beside texts.
        split_column: Column of the split files that the XC repository's small data sets come with, from 0.
    """

    layout: str | None = None
    name: str | None = None
    text: tuple[str, ...] = ()
    label: str | None = None
    id: str | None = None
    weight: str | None = None
    separator: str | None = None
    vocabulary: Path | None = None
    language: str | None = None
    unknown: Unknown = "error"
    features: bool = True
    split_column: int = 0

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ReadOptions:
        """Options from keywords; refuses an unknown one and names the nearest known one."""
        known = [part.name for part in fields(cls)]
        values = dict(given)
        for key in values:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"Did you mean {near[0]}" if near else f"Known options are {', '.join(known)}"
                raise UserError(f"{key!r} is not an option of reading data", remedy=hint)
        text = values.get("text")
        values["text"] = (text,) if isinstance(text, str) else tuple(text or ())
        if values.get("vocabulary") is not None:
            values["vocabulary"] = Path(values["vocabulary"])
        if values.get("unknown", "error") not in ("error", "drop", "add"):
            raise UserError(f"unknown={values['unknown']!r} is not one of error, drop, add")
        return cls(**values)

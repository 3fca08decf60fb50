"""Which field or column is the text, which the labels: the names people use, in order of preference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deepxc.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection

    from deepxc.data.readers.options import ReadOptions

TEXT = ("text", "title", "query", "sentence", "document", "input", "synopsis", "name")
CONTENT = "content"  # joined to a title where both are there
LABELS = (
    "labels",
    "subjects",
    "subject_uris",
    "target_ind",
    "label",
    "targets",
    "target",
    "tags",
    "subject",
    "categories",
    "category",
    "codes",
    "code",
)
POSITIONS = ("target_ind",)  # label fields that hold rows of the label space
IDS = ("id", "uid", "document_id", "doc_id")
WEIGHTS = ("weights", "target_rel", "weight")
FILTERED = ("filtered",)


@dataclass(frozen=True)
class Fields:
    """The fields that a row file is read by."""

    text: tuple[str, ...]
    label: str | None
    id: str | None
    weight: str | None
    filtered: str | None = None

    @property
    def positions(self) -> bool:
        """Whether labels are rows of the label space rather than names."""
        return self.label in POSITIONS


def choose_fields(present: Collection[str], options: ReadOptions, where: str, *, need_text: bool = True) -> Fields:
    """The fields to read, among those present; a field that the options name must be there."""
    by_lower = {name.lower(): name for name in reversed(list(present))}

    def pick(wanted: str | None, known: tuple[str, ...], what: str) -> str | None:
        if wanted is not None:
            if wanted not in present:
                raise missing_field(wanted, what, present, where)
            return wanted
        return next((by_lower[name] for name in known if name in by_lower), None)

    texts = [pick(name, (), "text") for name in options.text] or [pick(None, TEXT, "text")]
    chosen = tuple(name for name in texts if name is not None)
    if not chosen and CONTENT in by_lower:
        chosen = (by_lower[CONTENT],)
    elif not options.text and chosen and chosen[0].lower() == "title" and CONTENT in by_lower:
        chosen = (chosen[0], by_lower[CONTENT])
    if not chosen and need_text:
        raise missing_field("text", "text", present, where)
    return Fields(
        text=chosen,
        label=pick(options.label, LABELS, "label"),
        id=pick(options.id, IDS, "id"),
        weight=pick(options.weight, WEIGHTS, "weight"),
        filtered=pick(None, FILTERED, "filtered"),
    )


def missing_field(name: str, what: str, present: Collection[str], where: str) -> DataError:
    """The error for a field that is not there."""
    listed = ", ".join(list(present)[:12]) or "none"
    return DataError(
        f"no field named {name}; there are {listed}", where=where, remedy=f"Say which field it is with {what}="
    )

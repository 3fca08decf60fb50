"""What a check reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepxc.data.dataset import Split
    from deepxc.data.label_space import LabelSpace

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
_SHOWN = 60  # characters of a text that an example shows


@dataclass(frozen=True)
class Finding:
    """One kind of fault in a data set.

    Attributes:
        code: Short name of the kind, for machines.
        severity: `error`: models or figures will be wrong; `warning`: figures will probably mislead; `note`: good
            to know.
        what: What is wrong, in plain words.
        count: How many rows, labels or pairs are affected.
        example: The first case: where it stands, and what stands there.
        remedy: What to do about it.
    """

    code: str
    severity: Severity
    what: str
    count: int
    example: str
    remedy: str

    def as_dict(self) -> dict[str, str | int]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.severity}: {self.what}: {self.count:,}. First: {self.example}. {self.remedy}."


def ordered(findings: Sequence[Finding]) -> list[Finding]:
    """The gravest first, otherwise in the order given."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def quoted(text: str) -> str:
    """A text on one line, cut where it is long."""
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return repr(shown)


def row_example(split: Split, row: int) -> str:
    """Where a row stands, and its text."""
    where = split.at(int(row))
    return where if split.texts is None else f"{where} {quoted(split.texts[int(row)])}"


def label_example(labels: LabelSpace, label: int) -> str:
    """A label by number, id and name."""
    name, key = labels.names[int(label)], labels.ids[int(label)]
    known = quoted(key) if name == key else f"{quoted(key)} {quoted(name)}"
    return f"label {int(label)} {known}"

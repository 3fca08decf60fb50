"""What happened in a training: the loss of every batch, and a record of every epoch."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class History:
    """Grows while training goes on.

    Attributes:
        epochs: One record an epoch: its number, mean loss, learning-rate scale, seconds, and validation metrics.
        losses: The loss of every batch.
        stopped: Why training ended before its last epoch, if it did.
    """

    epochs: list[dict[str, Any]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    stopped: str | None = None

    def metric(self, name: str) -> list[float]:
        """One figure of every epoch that has it."""
        return [record[name] for record in self.epochs if name in record]

    def to_json(self) -> str:
        """The history as a JSON document."""
        return json.dumps(self.__dict__, allow_nan=False)

    @classmethod
    def from_json(cls, document: str) -> Self:
        """What `to_json` wrote."""
        return cls(**json.loads(document))

    def write(self, path: Path) -> None:
        """Write the JSON document; an older one is replaced in one step."""
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(self.to_json() + "\n", encoding="utf-8")
        fresh.replace(path)

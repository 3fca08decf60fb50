"""The folder an index is saved in: its data files and one small `index.json` that says what they hold."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

from deepxc.errors import ModelFolderError
from deepxc.search.protocol import Kind, Metric

FORMAT_VERSION = 1
DESCRIPTION = "index.json"


@dataclass(frozen=True)
class IndexDescription:
    """What `index.json` says.

    Attributes:
        kind: Which class wrote the folder.
        metric: The similarity.
        dim: Length of a vector.
        size: How many vectors.
        settings: What the class needs to search as it did when it was saved.
        format_version: Of the folder.
    """

    kind: Kind
    metric: Metric
    dim: int
    size: int
    settings: dict[str, Any] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION

    def write(self, folder: Path) -> None:
        """Save as `index.json`."""
        text = json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"
        (Path(folder) / DESCRIPTION).write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> IndexDescription:
        """Read `index.json`, and refuse what cannot be an index of ours."""
        path = Path(folder) / DESCRIPTION
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ModelFolderError("no saved index here", where=str(path), remedy="Build and save it again") from None
        except (OSError, ValueError) as error:
            raise damaged(path, str(error)) from error
        if not isinstance(found, dict):
            raise damaged(path, "not a JSON object")
        version = found.get("format_version")
        if isinstance(version, int) and version > FORMAT_VERSION:
            raise ModelFolderError(
                f"index format {version} is newer than the {FORMAT_VERSION} known here",
                where=str(path),
                remedy="Update deepxc",
            )
        try:
            description = cls(**found)
        except TypeError as error:
            raise damaged(path, str(error)) from error
        description.check(path)
        return description

    def check(self, path: Path) -> None:
        """Refuse values that no saved index has."""
        counts = (self.dim, self.size, self.format_version)
        if self.kind not in get_args(Kind) or self.metric not in get_args(Metric):
            raise damaged(path, f"unknown kind or metric ({self.kind!r}, {self.metric!r})")
        if not all(type(count) is int and count >= 0 for count in counts) or self.dim < 1:
            raise damaged(path, "dim, size or format_version is not a whole number")
        if not isinstance(self.settings, dict):
            raise damaged(path, "settings is not an object")


def damaged(path: Path, reason: str) -> ModelFolderError:
    """The error for a file that is there but cannot be an index's."""
    return ModelFolderError(f"damaged index ({reason})", where=str(path), remedy="Build and save it again")

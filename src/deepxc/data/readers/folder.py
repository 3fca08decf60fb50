"""The files of a folder by the name they would have unpacked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepxc.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTS = {  # what each part of a data set is called, by field and era
    "train": ("trn", "train", "training"),
    "test": ("tst", "test", "testing"),
    "validation": ("val", "valid", "validation", "dev"),
}


class Folder:
    """A folder whose files are found whether or not they are gzip."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[str, Path] = {}
        self.others: list[str] = []
        try:
            entries = sorted(path.iterdir())
        except OSError as fault:
            raise DataError(f"cannot be read: {fault.strerror}", where=str(path)) from fault
        for entry in entries:
            name = entry.name.removesuffix(".gz")
            if not entry.is_file():
                self.others.append(f"{entry.name}/")
            elif name not in self.files or name == entry.name:  # of both forms the unpacked one is read
                self.files[name] = entry

    def find(self, *names: str) -> Path | None:
        """The first of the given names that is there."""
        return next((self.files[name] for name in names if name in self.files), None)

    def need(self, *names: str) -> Path:
        """The first of the given names that is there; an error where none is."""
        found = self.find(*names)
        if found is None:
            raise DataError(f"{' or '.join(names)} is missing", where=str(self.path), remedy="Add it to the folder")
        return found

    def parts(self, *patterns: str) -> dict[str, Path]:
        """The file of each part, from patterns such as `{}_X_Y.txt` in order of preference."""
        found = {}
        for part, words in PARTS.items():
            path = self.find(*(pattern.format(word) for pattern in patterns for word in words))
            if path is not None:
                found[part] = path
        return found

    def listing(self, most: int = 6) -> str:
        """What is there, for messages."""
        names = [path.name for path in self.files.values()] + self.others
        if not names:
            return "nothing"
        more = f" and {len(names) - most} more" if len(names) > most else ""
        return ", ".join(names[:most]) + more

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

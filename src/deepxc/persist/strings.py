"""A list of strings as two arrays, so that a million label names open without being read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import overload

import numpy as np


class StringTable(Sequence[str]):
    """Strings laid end to end as UTF-8, each decoded when it is asked for."""

    def __init__(self, blob: np.ndarray, ends: np.ndarray) -> None:
        self.blob = blob
        self.ends = ends

    @classmethod
    def pack(cls, strings: Iterable[str]) -> StringTable:
        """Lay the strings end to end."""
        encoded = [s.encode("utf-8") for s in strings]
        ends = np.cumsum([len(e) for e in encoded], dtype=np.int64) if encoded else np.empty(0, np.int64)
        return cls(np.frombuffer(b"".join(encoded), np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError(i)
        start = int(self.ends[i - 1]) if i else 0
        return self.blob[start : int(self.ends[i])].tobytes().decode("utf-8")

"""The labels of a data set: what each is called, what it says, and how often it occurs in train."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from deepxc.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scipy import sparse


@dataclass(frozen=True, eq=False)
class LabelSpace:
    """Everything known about the labels; label `l` is row `l` of each part.

    Attributes:
        ids: The name a machine uses, unique (a URI, a code, a product number).
        names: The name a person reads; may repeat.
        texts: What the label says, for systems that read it; None where labels have no text.
        features: Sparse label features (one row a label) where the data came as features; None otherwise.
        frequencies: Train texts per label; None until a train split has been counted.
    """

    ids: Sequence[str]
    names: Sequence[str]
    texts: Sequence[str] | None = None
    features: sparse.csr_matrix | None = None
    frequencies: np.ndarray | None = None

    def __post_init__(self) -> None:
        for part, value in (("names", self.names), ("texts", self.texts), ("frequencies", self.frequencies)):
            if value is not None and len(value) != len(self.ids):
                raise DataError(f"{len(value)} label {part} for {len(self.ids)} labels", remedy="Give one a label")
        if self.features is not None and self.features.shape[0] != len(self.ids):
            raise DataError(f"{self.features.shape[0]} rows of label features for {len(self.ids)} labels")

    @classmethod
    def numbered(cls, size: int) -> LabelSpace:
        """Labels that have no names: they are called by their row number."""
        ids = [str(i) for i in range(size)]
        return cls(ids=ids, names=ids)

    @classmethod
    def from_names(cls, names: Iterable[str]) -> LabelSpace:
        """Labels known by name alone: the name is the id, and the text too."""
        listed = list(names)
        return cls(ids=listed, names=listed, texts=listed)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def index(self) -> dict[str, int]:
        """Row of every id, and of every name that is no id and occurs once."""
        rows = {name: i for i, name in enumerate(self.ids)}
        if self.names is not self.ids:
            seen: dict[str, int] = {}
            for i, name in enumerate(self.names):
                seen[name] = -1 if name in seen else i
            rows = {name: i for name, i in seen.items() if i >= 0} | rows
        return rows

    @property
    def zero_shot(self) -> list[str]:
        """The ids of labels that no train text has but that say something: only what they say can find them."""
        if self.texts is None or self.frequencies is None:
            return []
        return [self.ids[row] for row in np.flatnonzero(self.frequencies == 0).tolist() if self.texts[row].strip()]

    def counted(self, Y: sparse.csr_matrix) -> LabelSpace:
        """The same labels with frequencies counted over the rows of `Y`."""
        counts = np.bincount(Y.indices, minlength=len(self)).astype(np.int64)
        return LabelSpace(self.ids, self.names, self.texts, self.features, counts)

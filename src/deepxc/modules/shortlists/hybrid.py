"""Two shortlists in one, and random labels among the negatives: Astec's module II."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from deepxc.errors import UserError
from deepxc.modules.shortlists.centroids import Centroids
from deepxc.modules.shortlists.row_blocks import LabelRows, over_rows
from deepxc.modules.shortlists.sampling import draw_key
from deepxc.modules.shortlists.saving import Description, open_shortlister
from deepxc.modules.shortlists.searching import SearchingShortlister
from deepxc.modules.shortlists.texts import Texts
from deepxc.modules.shortlists.uniform import fill_with_random
from deepxc.search.vectors import check_count

if TYPE_CHECKING:
    from scipy import sparse

    from deepxc.modules.protocols import Shortlister
    from deepxc.modules.shortlists.views import Features

_FIRST, _SECOND = "first", "second"
_MOST_RANDOM = 0.5  # share of a row's negatives, where few are asked for


class Hybrid(SearchingShortlister):
    """Labels by the weighted sum of two shortlisters' scores; one that a shortlister does not name has 0 there.

    To combine one that reads dense features with one that reads tokens, give features as `Views`.

    Args:
        first: By default centroids.
        second: By default train texts.
        weight: Of the first's scores; the second's weigh the rest. 0.925 in the published code.
        depth: Least labels taken from each before they are merged: of what only one names, half the score is missing.
        random: Random labels among a row's negatives (50 in the paper), in the last places; at most half of them.
    """

    kind: ClassVar[str] = "hybrid"

    def __init__(
        self,
        first: Shortlister | None = None,
        second: Shortlister | None = None,
        *,
        weight: float = 0.925,
        depth: int = 100,
        random: int = 50,
    ) -> None:
        self.first = Centroids() if first is None else first
        self.second = Texts() if second is None else second
        self.weight = weight
        self.depth = depth
        self.random = random
        self.seed = 0

    def _settings(self) -> dict[str, Any]:
        return {"weight": self.weight, "depth": self.depth, "random": self.random}

    def fit(self, features: Features, Y: sparse.csr_matrix, seed: int, threads: int) -> None:
        """Fit both."""
        if not 0 <= self.weight <= 1:
            raise UserError(f"weight {self.weight}", where="weight", remedy="Give a number from 0 to 1")
        if self.random < 0:
            raise UserError(f"random {self.random}", where="random", remedy="Give 0 or more")
        self.seed, self.n_labels = seed, Y.shape[1]
        self.first.fit(features, Y, seed, threads)
        self.second.fit(features, Y, seed, threads)

    def shortlist(self, features: Features, k: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The k best labels of both."""
        k = check_count(k, "k")
        # A part can have grown: labels may be added to it.
        n_labels = max(self.n_labels, *(getattr(part, "n_labels", 0) for part in (self.first, self.second)))
        depth = max(k, min(self.depth, n_labels))
        first = self.first.shortlist(features, depth, threads)
        second = self.second.shortlist(features, depth, threads)
        return merged(first, second, self.weight, n_labels, k, threads)

    def negatives(
        self, features: Features, Y: sparse.csr_matrix, k: int, threads: int = 1, draw: int = 0
    ) -> np.ndarray:
        """The best labels of each row that it does not have, then random ones; others in each draw."""
        k = check_count(k, "k")
        random = min(self.random, int(k * _MOST_RANDOM))
        found = super().negatives(features, Y, k - random, threads)
        if not random:
            return found
        out = np.full((len(found), k), -1, np.int32)
        out[:, : k - random] = found
        fill_with_random(out, k - random, LabelRows.of(Y), draw_key(self.seed, draw), threads)
        return out

    def write(self, folder: Path) -> None:
        """Save into an existing, empty folder; both parts must be able to."""
        for name, part in ((_FIRST, self.first), (_SECOND, self.second)):
            if not hasattr(part, "write"):
                raise UserError(
                    f"{type(part).__name__} cannot be saved", where="shortlister", remedy="Give it write(folder)"
                )
            (Path(folder) / name).mkdir()
            part.write(Path(folder) / name)  # pyrefly: ignore[missing-attribute]
        Description(self.kind, self._settings() | {"seed": self.seed}, self.n_labels).write(folder)

    @classmethod
    def read_from(cls, folder: Path) -> Hybrid:
        """Open what was saved."""
        description = Description.read(folder, cls.kind)
        seed = int(description.settings.pop("seed", 0))
        found: Hybrid = description.make(cls, folder)
        found.first = open_shortlister(Path(folder) / _FIRST)
        found.second = open_shortlister(Path(folder) / _SECOND)
        found.n_labels, found.seed = description.n_labels, seed
        return found


def merged(
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
    weight: float,
    n_labels: int,
    k: int,
    threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """The k best labels of two shortlists (ids, scores) by weight x first + (1 - weight) x second."""
    from deepxc.modules.shortlists.kernels import merge

    a, b = (
        (np.ascontiguousarray(part[0], np.int64), np.ascontiguousarray(part[1], np.float32)) for part in (first, second)
    )
    ids, scores = np.empty((len(a[0]), k), np.int64), np.empty((len(a[0]), k), np.float32)

    def work(start: int, stop: int) -> None:
        p = slice(start, stop)
        merge(
            a[0][p], a[1][p], np.float32(weight), b[0][p], b[1][p], np.float32(1 - weight), n_labels, ids[p], scores[p]
        )

    over_rows(len(ids), threads, work)
    return ids, scores

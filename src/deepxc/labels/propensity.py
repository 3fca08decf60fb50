"""Label propensities: how likely a relevant label is to have been observed, by how often it occurs."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepxc.errors import UserError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# (A, B) as fitted once per family of data sets; the scores of a propensity-weighted metric are comparable only
# between runs that share them, so each family keeps its published pair.
PRESETS: dict[str, tuple[float, float]] = {
    "default": (0.55, 1.5),
    "amazon": (0.6, 2.6),
    "wikipedia": (0.5, 0.4),
}


@dataclass(frozen=True)
class Propensity:
    """The two constants of the propensity model, and what follows from them.

    Attributes:
        A: How fast the weight of a label falls with its frequency; 0 to switch the frequency off.
        B: Shift added to each frequency; positive, so that unseen labels have a finite weight.
    """

    A: float = PRESETS["default"][0]
    B: float = PRESETS["default"][1]

    def __post_init__(self) -> None:
        if not (math.isfinite(self.A) and self.A >= 0):
            raise UserError(f"A is {self.A}", where="propensity", remedy="Give a number that is not negative")
        if not (math.isfinite(self.B) and self.B > 0):
            raise UserError(f"B is {self.B}", where="propensity", remedy="Give a number above 0")

    @classmethod
    def preset(cls, name: str) -> Propensity:
        """The constants of a family of data sets: `default`, `amazon` or `wikipedia`.

        Raises:
            UserError: The name is not one of these; the message names the nearest.
        """
        if name not in PRESETS:
            near = difflib.get_close_matches(name.lower(), PRESETS, n=1, cutoff=0.0)
            raise UserError(
                f"no propensity preset is called {name!r}; the nearest is {near[0]!r}",
                where="propensity",
                remedy=f"Give one of {', '.join(sorted(PRESETS))}, or A and B",
            )
        return cls(*PRESETS[name])

    def inverse(self, frequencies: ArrayLike, n_texts: int) -> np.ndarray:
        """One over the propensity of each label; see `inverse_propensity`."""
        return inverse_propensity(frequencies, n_texts, self.A, self.B)


def inverse_propensity(
    frequencies: ArrayLike,
    n_texts: int,
    A: float = PRESETS["default"][0],
    B: float = PRESETS["default"][1],
) -> np.ndarray:
    """One over the propensity of each label: its weight in propensity-scored metrics.

    With C = (ln N - 1) (B + 1)^A the weight of a label that occurs n times is 1 + C (n + B)^-A: close to 1 for a
    frequent label, large for a rare one. A train set of one or two texts would make C negative and rare labels the
    lightest; it says nothing of what is missing, so C is then taken as 0 and every label weighs 1.

    Args:
        frequencies: Train texts (or the sum of their weights) per label, not negative.
        n_texts: Rows of the train label matrix, label-less rows included.
        A: See `Propensity`.
        B: See `Propensity`.

    Returns:
        float64 weights, one a label, each at least 1.
    """
    Propensity(A, B)  # refuses constants that make no sense
    counts = np.asarray(frequencies, dtype=np.float64)
    if n_texts < 1:
        raise UserError(f"{n_texts} train texts", where="n_texts", remedy="Count the rows of the train label matrix")
    if counts.size and not (np.isfinite(counts).all() and counts.min() >= 0):
        row = int(np.flatnonzero(~(np.isfinite(counts) & (counts >= 0)).ravel())[0])
        raise UserError(f"label {row} occurs {counts.ravel()[row]} times", where="frequencies")
    scale = max(math.log(n_texts) - 1.0, 0.0) * (B + 1.0) ** A
    return 1.0 + scale * (counts + B) ** -A

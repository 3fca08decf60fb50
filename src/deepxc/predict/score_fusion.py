"""What several scores of one label say together: a fixed rule, a regression tree, or calibrated logistic regression.

Each takes an array of candidates x scores, whose columns have names, and gives one number a candidate. The learned ones
are fitted on the candidates of texts that nothing else was fitted on, and are stored as plain arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from deepxc.errors import ModelFolderError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_DEPTH = 7  # of the published tree
_SMALLEST_LEAF = 20
_RIDGE = 1e-4
_ROUNDS = 60
_SETTLED = 1e-4


class ScoreFusion(Protocol):
    """One number of several."""

    kind: ClassVar[str]

    def score(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """The candidates' fused scores, in the shape of the columns."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """The arrays that it is made of."""
        ...


@dataclass(frozen=True)
class FixedRule:
    """The mean of classifier score and label similarity: nothing is fitted."""

    kind: ClassVar[str] = "fixed"

    def score(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Half of each."""
        return (columns["classifier"] + columns["similarity"]) / 2

    def state(self) -> dict[str, np.ndarray]:
        """Nothing."""
        return {}

    @classmethod
    def of(cls, state: Mapping[str, np.ndarray]) -> Self:  # noqa: ARG003 (nothing is stored)
        """The rule."""
        return cls()


@dataclass(frozen=True, eq=False)
class TreeFusion:
    """A regression tree's probability plus both scores, as in the published code.

    Attributes:
        columns: What the tree looks at.
        feature: The column that each node asks for, -1 in leaves.
        threshold: Up to which a candidate goes left.
        left: Left child of each node.
        right: Right child.
        value: Probability at each node.
    """

    columns: tuple[str, ...]
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    kind: ClassVar[str] = "tree"
    looks_at: ClassVar[tuple[str, ...]] = ("classifier", "similarity", "inverse_propensity")

    @classmethod
    def fit(cls, columns: Mapping[str, np.ndarray], truth: np.ndarray, seed: int = 0) -> Self:
        """Grow a tree of depth 7 on candidates (all columns flat, truth 0 or 1)."""
        from sklearn.tree import DecisionTreeRegressor

        X = np.column_stack([columns[name] for name in cls.looks_at]).astype(np.float32)
        grown = DecisionTreeRegressor(max_depth=_DEPTH, min_samples_leaf=_SMALLEST_LEAF, random_state=seed)
        tree: Any = grown.fit(X, truth.astype(np.float64)).tree_
        feature = np.where(tree.children_left < 0, -1, tree.feature)
        children = (tree.children_left.astype(np.int32), tree.children_right.astype(np.int32))
        return cls(cls.looks_at, feature.astype(np.int32), tree.threshold, *children, tree.value.ravel())

    def probability(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """What the tree says."""
        shape = columns[self.columns[0]].shape
        X = np.stack([np.asarray(columns[name], np.float32).ravel() for name in self.columns])
        node = np.zeros(X.shape[1], np.int32)
        for _ in range(_DEPTH):
            asked = self.feature[node]
            value = X[np.maximum(asked, 0), np.arange(len(node))]
            child = np.where(value <= self.threshold[node], self.left[node], self.right[node])
            node = np.where(asked < 0, node, child)
        return self.value[node].reshape(shape)

    def score(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Probability plus similarity plus classifier score."""
        return self.probability(columns) + columns["similarity"] + columns["classifier"]

    def state(self) -> dict[str, np.ndarray]:
        """The tree as arrays."""
        return {name: getattr(self, name) for name in ("feature", "threshold", "left", "right", "value")}

    @classmethod
    def of(cls, state: Mapping[str, np.ndarray]) -> Self:
        """The tree again."""
        return cls(cls.looks_at, *(state[name] for name in ("feature", "threshold", "left", "right", "value")))


@dataclass(frozen=True, eq=False)
class LogisticFusion:
    """The probability that a label is true, by logistic regression over all columns.

    Attributes:
        names: The columns, in the order of the weights.
        weights: What each weighs; the last number stands alone.
    """

    names: tuple[str, ...]
    weights: np.ndarray
    kind: ClassVar[str] = "logistic"

    @classmethod
    def fit(cls, columns: Mapping[str, np.ndarray], truth: np.ndarray, free: Collection[str] | None = None) -> Self:
        """Fit on candidates.

        Args:
            columns: Flat columns.
            truth: 0 or 1 for each candidate.
            free: Columns whose weights may be negative; any may by default. Others that would be are left out, one
                after the other: columns that say nearly the same otherwise cancel out on the candidates at hand, and
                mislead on others.
        """
        names = sorted(columns)
        while True:
            weights = _logistic_weights([columns[name] for name in names], truth)
            bad = [w if free is not None and name not in free else 0.0 for name, w in zip(names, weights, strict=False)]
            if min(bad, default=0.0) >= 0:
                return cls(tuple(names), weights.astype(np.float32))
            spread = [float(np.std(columns[name])) for name in names]
            del names[int(np.argmin(np.multiply(bad, spread)))]

    def score(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Probabilities."""
        total = np.full(np.shape(columns[self.names[0]]), self.weights[-1], np.float32)
        for name, weight in zip(self.names, self.weights, strict=False):
            total += weight * columns[name].astype(np.float32, copy=False)
        return 1 / (1 + np.exp(-np.clip(total, -60, 60)))

    def state(self) -> dict[str, np.ndarray]:
        """The weights by name."""
        return {f"weight.{name}": self.weights[i : i + 1] for i, name in enumerate((*self.names, ""))}

    @classmethod
    def of(cls, state: Mapping[str, np.ndarray]) -> Self:
        """The fusion again."""
        weights = {name.removeprefix("weight."): part[0] for name, part in state.items()}
        alone = weights.pop("")
        names = tuple(sorted(weights))  # the order in which they are summed, as `fit` has it
        return cls(names, np.array([*(weights[name] for name in names), alone], np.float32))


def _logistic_weights(columns: Sequence[np.ndarray], truth: np.ndarray) -> np.ndarray:
    """Newton's method on standardised columns; the weights are for the columns as they came, the last stands alone."""
    X = np.column_stack([*(np.asarray(column, np.float64) for column in columns), np.ones(len(truth))])
    mean, width = X.mean(axis=0), X.std(axis=0)
    mean[-1], width[-1] = 0.0, 1.0
    width[width == 0] = 1.0
    X = (X - mean) / width
    weights = np.zeros(X.shape[1])
    weights[-1] = np.log((truth.mean() + 1e-9) / (1 - truth.mean() + 1e-9))
    ridge = np.full(X.shape[1], _RIDGE * len(X))
    for _ in range(_ROUNDS):
        p = 1 / (1 + np.exp(-np.clip(X @ weights, -30, 30)))
        slope = X.T @ (p - truth) + ridge * weights
        curve = (X * (p * (1 - p))[:, None]).T @ X + np.diag(ridge)
        step = np.linalg.solve(curve, slope)
        weights -= step * min(1.0, 4.0 / max(1e-12, float(np.abs(step).max())))
        if np.abs(step).max() < _SETTLED:
            break
    plain = weights / width
    plain[-1] -= float((plain[:-1] * mean[:-1]).sum())
    return plain


_KINDS = {kind.kind: kind for kind in (FixedRule, TreeFusion, LogisticFusion)}


def open_fusion(kind: str, state: Mapping[str, np.ndarray]) -> FixedRule | TreeFusion | LogisticFusion:
    """A fusion of any kind from its arrays."""
    if kind not in _KINDS:
        raise ModelFolderError(f"a fusion of kind {kind!r}, which is not known here", remedy="Update deepxc")
    return _KINDS[kind].of(state)

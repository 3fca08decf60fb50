"""Which rows make up each batch: a function of seed, epoch and number alone, so that training can go on anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from deepxc.errors import UserError

Order = Callable[[int, np.random.Generator], np.ndarray]
"""The order of the rows in an epoch, from the epoch's number and a generator."""


class Batch(NamedTuple):
    """Rows to learn from, and randomness of their own for pools and the like."""

    rows: np.ndarray
    rng: np.random.Generator
    epoch: int
    number: int


class Batches:
    """Every row once an epoch, in an order that each epoch draws anew.

    Args:
        n: Number of rows.
        size: Rows of a batch; the last batch of an epoch has what is left.
        seed: Seed.
        order: The order of an epoch's rows; shuffled by default. It may leave rows out or take some twice, as long
            as all epochs are equally long.
        n_ordered: How many rows `order` gives, if not n.
    """

    def __init__(
        self, n: int, size: int, seed: int = 0, *, order: Order | None = None, n_ordered: int | None = None
    ) -> None:
        if size < 1:
            raise UserError("a batch needs at least one row", where="batch size", remedy="Give 1 or more")
        self.n, self.size, self.seed = n, size, seed
        self._order = order or (lambda _epoch, rng: rng.permutation(n))
        self._n_ordered = n if n_ordered is None else n_ordered

    def __len__(self) -> int:
        """Batches of an epoch."""
        return (self._n_ordered + self.size - 1) // self.size

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from number `start` on."""
        order = self._order(epoch, np.random.default_rng([self.seed, epoch]))
        assert len(order) == self._n_ordered, "all epochs must be equally long"
        for number in range(start, len(self)):
            rows = order[number * self.size : (number + 1) * self.size]
            yield Batch(rows, np.random.default_rng([self.seed, epoch, number + 1]), epoch, number)


def by_cluster(clusters: np.ndarray) -> Order:
    """An order in which rows of one cluster follow each other, clusters and their rows shuffled anew each epoch.

    Args:
        clusters: The cluster of each row.
    """
    clusters = np.asarray(clusters)
    names, cluster = np.unique(clusters, return_inverse=True)

    def order(_epoch: int, rng: np.random.Generator) -> np.ndarray:
        place = rng.permutation(len(names))[cluster]
        shuffled = rng.permutation(len(cluster))
        return shuffled[np.argsort(place[shuffled], kind="stable")]

    return order

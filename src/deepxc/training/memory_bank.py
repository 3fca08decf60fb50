"""NGAME's batches: texts that lie close together train together, so that each meets hard negatives for free.

Embeddings are noted as training computes them; no text is ever encoded for the sake of the order. Now and then the
noted ones are clustered anew, into clusters that grow with the epochs, and batches are made of whole clusters.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepxc.errors import UserError
from deepxc.labels.clusters import balanced_clusters
from deepxc.training.loop import Callback

if TYPE_CHECKING:
    from deepxc.training.loop import Run

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ClusterSchedule:
    """When texts are clustered, and how many share a cluster.

    Attributes:
        first: The first epoch (from 0) whose batches are made of clusters; the ones before are shuffled.
        every: Epochs for which a clustering serves.
        size: Texts of a cluster at first.
        doubling: Epochs at which that doubles, a number above itself as often as the training lasts.
        largest: Where the doubling ends.
    """

    first: int = 10
    every: int = 5
    size: int = 4
    doubling: tuple[int, ...] = (10, 20, 25, 50, 75, 100, 125, 150, 200)
    largest: int = 1024

    def __post_init__(self) -> None:
        if self.first < 1 or self.every < 1 or self.size < 1:
            raise UserError(
                "the bank is empty before the first epoch, and steps and sizes are at least 1",
                where="first, every, size",
                remedy="Give 1 or more",
            )

    def clusters_after(self, epoch: int) -> bool:
        """Whether texts are clustered after this epoch (from 0), for the next one."""
        return epoch + 1 >= self.first and (epoch + 1 - self.first) % self.every == 0

    def size_at(self, epoch: int) -> int:
        """Texts of a cluster in this epoch."""
        return min(self.largest, self.size << sum(epoch >= mark for mark in self.doubling))


class MemoryBank(Callback):
    """Notes embeddings, clusters them on schedule, and orders the rows of each epoch by cluster.

    It is told of embeddings by the learner, of epochs by the loop, and asked for orders by `Batches`. Noted embeddings
    and clusters are part of a checkpoint, so a training that resumes goes on with the same batches.

    Args:
        n: Rows.
        dim: Length of an embedding.
        schedule: When and how.
        seed: Of the clusters.
        threads: None for every core.
    """

    def __init__(
        self, n: int, dim: int, schedule: ClusterSchedule | None = None, *, seed: int = 0, threads: int | None = None
    ) -> None:
        self.schedule = schedule or ClusterSchedule()
        self.seed, self.threads = seed, threads
        self.noted = torch.zeros(n, dim, dtype=torch.float16)
        self.clusters: torch.Tensor | None = None

    def remember(self, rows: np.ndarray, embeddings: torch.Tensor) -> None:
        """Note the embeddings of these rows."""
        self.noted[torch.from_numpy(np.asarray(rows, np.int64))] = embeddings.to("cpu", torch.float16)

    def fill(self, embeddings: np.ndarray) -> None:
        """Note embeddings of all rows, which stand still, and cluster them for the first epoch."""
        self.noted.copy_(torch.from_numpy(embeddings))
        self._cluster(self.schedule.size_at(0), 0)

    def __call__(self, _epoch: int, rng: np.random.Generator) -> np.ndarray:
        """The order of an epoch's rows: clusters shuffled, the rows of a cluster together."""
        n = len(self.noted)
        if self.clusters is None:
            return rng.permutation(n)
        clusters = self.clusters.numpy()
        place = rng.permutation(int(clusters.max()) + 1)
        return np.argsort(place[clusters], kind="stable")

    def on_epoch_end(self, run: Run) -> None:
        """Cluster what was noted, if it is time to."""
        if self.schedule.clusters_after(run.epoch) and run.epoch + 1 < run.epochs:
            self._cluster(self.schedule.size_at(run.epoch + 1), run.epoch + 1)

    def _cluster(self, size: int, epoch: int) -> None:
        count = max(1, len(self.noted) // size)
        vectors = self.noted.float().numpy()
        clusters = balanced_clusters(vectors, count, seed=self.seed + epoch, threads=self.threads)
        self.clusters = torch.from_numpy(clusters)
        logger.info("epoch %d: batches of %d clusters of %d texts", epoch + 1, count, size)

    def state(self) -> dict[str, Any]:
        """What was noted, and the clusters."""
        return {"noted": self.noted} | ({} if self.clusters is None else {"clusters": self.clusters})

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over what `state` gave."""
        self.noted.copy_(state["noted"])
        self.clusters = state.get("clusters")

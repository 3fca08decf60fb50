"""Auxiliary vectors: what labels mean beyond their texts, shared among labels that are alike (DEXA, section 4).

A label's vector is N(E(z) + a), where E(z) is what the encoder makes of its text, a is the vector of the cluster that
the label is in, and N scales to length 1. While the encoder trains, the vectors take up what texts cannot say, which
would distort the encoder otherwise. Afterwards they are folded into one vector a label and dropped. E(z) has length 1,
as the paper defines it; the published code adds `a` before it scales.

Any learner that makes label vectors from label texts can add them: `augmented` is all it needs to call.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from deepxc.errors import UserError
from deepxc.labels.centroids import label_centroids
from deepxc.labels.clusters import balanced_clusters
from deepxc.labels.heads import head_labels
from deepxc.modules.tables import RowTable
from deepxc.modules.transfers.unit_norm import to_unit

if TYPE_CHECKING:
    from scipy import sparse

logger = logging.getLogger(__name__)

Method = Literal["balanced", "plain"]
_LABELS_A_VECTOR = 2  # by rule: the largest power of 2 that leaves so many labels to a vector, as in the paper


@dataclass(frozen=True)
class LabelGroups:
    """Which auxiliary vector each label has.

    Attributes:
        of_label: The vector's number for each label.
        count: How many vectors there are.
    """

    of_label: np.ndarray
    count: int


def group_labels(
    vectors: np.ndarray,
    n_clusters: int,
    frequencies: np.ndarray | None = None,
    *,
    own_from: int = 50,
    method: Method = "balanced",
    seed: int = 0,
    threads: int | None = None,
) -> LabelGroups:
    """Clusters of labels that are alike, and one group for each frequent label alone.

    Args:
        vectors: One row a label: embeddings of the label texts, or label centroids.
        n_clusters: Clusters of the labels that are not frequent; no more than there are of these. Below 0 by rule.
        frequencies: Train texts of each label; None where no label is frequent.
        own_from: Train texts from which a label is frequent and has a vector of its own; 0 for none.
        method: `balanced` is hierarchical balanced 2-means, `plain` is spherical k-means.
        seed: Same seed, same groups.
        threads: None for every core.
    """
    heads = np.empty(0, np.int64)
    if frequencies is not None and own_from:
        heads = head_labels(frequencies, threshold=own_from)
    rest = np.setdiff1d(np.arange(len(vectors)), heads, assume_unique=True)
    if n_clusters < 0:
        n_clusters = 1 << max(0, (len(rest) // _LABELS_A_VECTOR).bit_length() - 1)
    if n_clusters == 0:
        raise UserError("no auxiliary vectors", where="n_clusters", remedy="Give 1 or more, or -1 to go by rule")
    of_label = np.empty(len(vectors), np.int32)
    count = min(n_clusters, len(rest))
    if count:
        chosen = np.ascontiguousarray(vectors[rest], np.float32)
        if method == "balanced":
            of_label[rest] = balanced_clusters(chosen, count, seed=seed, threads=threads)
        else:
            of_label[rest] = _plain_clusters(chosen, count, seed, threads)
    of_label[heads] = count + np.arange(len(heads))
    logger.info("%d auxiliary vectors: %d clusters, %d frequent labels", count + len(heads), count, len(heads))
    return LabelGroups(of_label, count + len(heads))


def _plain_clusters(vectors: np.ndarray, count: int, seed: int, threads: int | None) -> np.ndarray:
    from deepxc.search.blocks import nearest
    from deepxc.search.centres import list_centres
    from deepxc.threads import thread_count

    centres = list_centres(vectors, count, seed, thread_count(threads))
    return nearest(centres, vectors, thread_count(threads)).astype(np.int32)


def semantic_gaps(embeddings: np.ndarray, features: np.ndarray, Y: sparse.csr_matrix, threads: int) -> np.ndarray:
    """How far each label's centroid is from its text's embedding: what the text does not say.

    Labels without train texts have a gap of zeros.

    Args:
        embeddings: Of the label texts, of length 1.
        features: Of the train texts, of length 1.
        Y: Labels of the train texts.
        threads: Threads.
    """
    centroids = np.asarray(label_centroids(Y, features, threads=threads))
    known = np.bincount(Y.indices, minlength=Y.shape[1]) > 0
    return np.where(known[:, None], centroids - embeddings, np.float32(0))


class AuxiliaryVectors(torch.nn.Module):
    """One trained vector a group of labels.

    Args:
        groups: Which vector each label has.
        dim: Length of a vector.
        seed: Of the random start (Xavier's rule).
        gaps: What label texts do not say (`semantic_gaps`): vectors then start at the mean gap of their labels, which
            is where Lemma 1 of the paper puts them.
    """

    of_label: torch.Tensor

    def __init__(self, groups: LabelGroups, dim: int, *, seed: int = 0, gaps: np.ndarray | None = None) -> None:
        super().__init__()
        self.register_buffer("of_label", torch.from_numpy(groups.of_label.astype(np.int64)))
        if gaps is None:
            reach = (6 / (groups.count + dim)) ** 0.5
            generator = torch.Generator().manual_seed(seed)
            weight = torch.empty(groups.count, dim).uniform_(-reach, reach, generator=generator)
        else:
            weight = _means(torch.from_numpy(np.asarray(gaps, np.float32)), self.of_label, groups.count)
        self.table = RowTable(weight)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def megabytes(self) -> float:
        """Memory of the vectors, moments of Adam included: O(K D), as long as training lasts."""
        return 3 * self.table.weight.nbytes / 1e6

    def augmented(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """N(E(z) + a): vectors of these labels from the embeddings of their texts, differentiable in both parts."""
        numbers, place = torch.unique(self.of_label[labels], return_inverse=True)
        return to_unit(embeddings + self.table.rows(numbers).index_select(0, place))

    def folded(self, embeddings: np.ndarray) -> np.ndarray:
        """The same for all labels at once, as vectors that need no auxiliary ones any more."""
        rows = torch.from_numpy(np.array(embeddings, np.float32))
        rows += self.table.weight.detach().cpu()[self.of_label.cpu()]
        return to_unit(rows).numpy()

    @torch.no_grad()
    def regroup(self, groups: LabelGroups) -> None:
        """Put labels into other groups: each new vector is the mean of those that its labels had.

        An optimiser's moments stay where they are; a few steps make them those of the new groups.
        """
        if groups.count != len(self.table):
            raise UserError(
                f"{groups.count} groups for {len(self.table)} vectors", where="groups", remedy="Keep their number"
            )
        device = self.table.weight.device
        of_label = torch.from_numpy(groups.of_label.astype(np.int64)).to(device)
        fresh = _means(self.table.weight[self.of_label], of_label, groups.count)
        self.table.weight.copy_(fresh)
        self.of_label.copy_(of_label)


def _means(rows: torch.Tensor, groups: torch.Tensor, count: int) -> torch.Tensor:
    sums = rows.new_zeros(count, rows.shape[1]).index_add_(0, groups, rows)
    return sums / torch.bincount(groups, minlength=count).clamp_min(1)[:, None].to(rows.dtype)

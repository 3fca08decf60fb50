"""One trained learner of InceptionXML+, ready to answer: clusters first, then the labels of the best of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deepxc.modules.classifiers.one_vs_all import score_given
from deepxc.modules.shortlists.label_groups import LabelGroups, best_columns
from deepxc.modules.transfers.saving import read_block, write_block
from deepxc.persist.tensors import read_tensors, write_tensors
from deepxc.search.restricted import SCORE_EACH
from deepxc.systems.member import Reading, rounded, with_bias

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from deepxc.modules.encoders.stored import StoredEncoder
    from deepxc.systems.new_labels import FreshLabels
    from deepxc.training.synchronised import Head

_TENSORS, _META_BLOCK = "member.safetensors", "meta-block.safetensors"
_CELLS = 1 << 23  # candidates scored at once, and cluster scores held at once


@dataclass
class ClusteredMember(Reading):
    """What a learner with two heads knows once it has been trained; answers as `Member` does.

    Attributes:
        meta_block: What makes features final for the clusters; `block` does for the labels.
        meta_vectors: One vector a cluster, its bias at the end.
        vectors: One vector a label, its bias at the end.
        groups: Which labels the clusters hold.
        top: Clusters whose labels are scored.
    """

    meta_block: torch.nn.Module
    meta_vectors: np.ndarray
    vectors: np.ndarray
    groups: LabelGroups
    top: int

    @classmethod
    def of(cls, encoder: StoredEncoder, meta: Head, extreme: Head, groups: LabelGroups, top: int) -> ClusteredMember:
        """Freeze what was trained; tables are rounded to the half precision that they are stored in."""
        for head in (meta, extreme):
            Reading(encoder, head.block).freeze()
        return cls(
            encoder,
            extreme.block,
            meta.block,
            with_bias(meta.classifier),
            with_bias(extreme.classifier),
            groups,
            min(top, len(groups)),
        )

    def final(self, features: np.ndarray) -> np.ndarray:
        """Final features for the labels, then for the clusters, each with a 1 behind them that meets the bias."""
        return np.hstack((super().final(features), Reading(self.encoder, self.meta_block).final(features)))

    def compared(self, final: np.ndarray) -> np.ndarray:
        """Where texts are near each other: the final features for the labels."""
        return final[:, : self.vectors.shape[1] - 1]

    def search(
        self, final: np.ndarray, k: int, allowed: np.ndarray | None, threads: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k candidates of the highest score for each row; where few labels are allowed, each is a candidate."""
        chosen = np.arange(len(self.vectors)) if allowed is None else np.flatnonzero(allowed)
        few = allowed is not None and len(chosen) <= SCORE_EACH
        width = max(1, len(chosen) if few else max(len(self.groups), self.top * self.groups.largest))
        step = max(1, _CELLS // width)
        parts = []
        for start in range(0, max(1, len(final)), step):
            some = final[start : start + step]
            ids = np.tile(chosen, (len(some), 1)) if few else self.candidates(some)
            if allowed is not None and not few:
                ids = np.where((ids >= 0) & allowed[ids], ids, -1)
            parts.append(_best(ids, self.score(some, ids, threads), k))
        return np.concatenate([ids for ids, _ in parts]), np.concatenate([scores for _, scores in parts])

    def candidates(self, final: np.ndarray) -> np.ndarray:
        """The labels of the best clusters of each row, -1 where there are fewer."""
        of_clusters = final[:, self.vectors.shape[1] :] @ self.meta_vectors.T
        return self.groups.candidates(best_columns(of_clusters, self.top)).astype(np.int64)

    def score(self, final: np.ndarray, ids: np.ndarray, threads: int = 1) -> np.ndarray:
        """The scores of given labels, -inf where the id is -1."""
        return score_given(final[:, : self.vectors.shape[1]], self.vectors, ids, threads=threads)

    def add(self, fresh: FreshLabels, threads: int) -> None:
        """Give new labels vectors that point at their texts, in the clusters that those texts belong to most."""
        final = self.final(self.intermediate(self.encoder.read(fresh.texts), threads))
        width = self.vectors.shape[1]
        best = self.search(final, 1, None, threads)[1][:, 0]
        vectors = fresh.vectors(final[:, : width - 1], best, float(np.median(self.vectors[:, -1])))
        of_clusters = final[:, width:] @ self.meta_vectors.T
        clusters = np.stack([of_clusters[fresh.owners == i].mean(axis=0).argmax() for i in range(len(fresh.names))])
        self.groups = self.groups.with_labels(clusters)
        self.vectors = np.concatenate((self.vectors, vectors))

    def write(self, folder: Path) -> None:
        """Write into an existing, empty folder."""
        super().write(folder)
        write_block(folder / _META_BLOCK, self.meta_block)
        tensors: dict[str, Any] = {
            "vectors": self.vectors.astype(np.float16),
            "meta_vectors": self.meta_vectors.astype(np.float16),
            "clusters": self.groups.clusters,
            "counts": np.array([len(self.groups), self.top], np.int32),
        }
        write_tensors(folder / _TENSORS, tensors)

    @classmethod
    def read(cls, folder: Path) -> ClusteredMember:
        """Open what `write` wrote."""
        reading = Reading.read(folder)
        tensors = read_tensors(folder / _TENSORS)
        count, top = map(int, tensors["counts"])
        return cls(
            reading.encoder,
            reading.block,
            read_block(folder / _META_BLOCK),
            rounded(tensors["meta_vectors"]),
            rounded(tensors["vectors"]),
            LabelGroups(tensors["clusters"], count),
            top,
        )


def _best(ids: np.ndarray, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k ids of the highest scores in each row, ties to the smaller id."""
    k = min(k, ids.shape[1])
    few = best_columns(scores, k)
    ids, scores = np.take_along_axis(ids, few, 1), np.take_along_axis(scores, few, 1)
    order = np.lexsort((ids, -scores), axis=1)
    return np.take_along_axis(ids, order, 1), np.take_along_axis(scores, order, 1)

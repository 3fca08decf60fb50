"""What a training leaves, ready to answer: how texts are read, and label vectors with an index over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepxc.modules.classifiers.kernels import gather_scores
from deepxc.modules.encoders import open_encoder
from deepxc.modules.encoders.encoding import encode
from deepxc.modules.shortlists.owned_vectors import OwnedVectors
from deepxc.modules.tables import RowTable
from deepxc.modules.transfers.saving import read_block, write_block
from deepxc.modules.transfers.spectral import SpectralMatrix
from deepxc.persist.tensors import read_tensors, write_tensors
from deepxc.search.restricted import search_allowed

if TYPE_CHECKING:
    from pathlib import Path

    from deepxc.modules.classifiers.one_vs_all import OneVsAll
    from deepxc.modules.encoders.stored import StoredEncoder
    from deepxc.modules.protocols import Inputs
    from deepxc.systems.new_labels import FreshLabels

_TENSORS, _BLOCK = "member.safetensors", "block.safetensors"


@dataclass
class Reading:
    """How texts become final features.

    Attributes:
        encoder: The encoder.
        block: What makes its features final: a residual or embedding block, scaling to length 1, or the identity.
    """

    encoder: StoredEncoder
    block: torch.nn.Module

    def freeze(self) -> None:
        """Settle what was trained.

        Tables are rounded to the half precision that they are stored in, so that a model answers alike before and
        after it is saved.
        """
        self.block.cpu().eval()
        self.encoder.cpu().eval()
        if isinstance(self.block, SpectralMatrix):
            self.block.settle()
        for part in self.encoder.modules():
            if isinstance(part, RowTable):
                part.weight = part.weight.half().float()

    def intermediate(self, inputs: Inputs, threads: int) -> np.ndarray:
        """The encoder's own features v."""
        return encode(self.encoder, inputs, threads=threads)

    def final(self, features: np.ndarray) -> np.ndarray:
        """Final features of intermediate ones, with a 1 behind them that meets the bias."""
        if not isinstance(self.block, torch.nn.Identity):
            with torch.no_grad():
                features = self.block(torch.from_numpy(features)).numpy()
        final = np.ones((len(features), features.shape[1] + 1), np.float32)
        final[:, :-1] = features
        return final

    def compared(self, final: np.ndarray) -> np.ndarray:
        """Where texts are near each other: the final features."""
        return final[:, :-1]

    def write(self, folder: Path) -> None:
        """Write into an existing, empty folder."""
        (folder / "encoder").mkdir()
        self.encoder.write(folder / "encoder")
        write_block(folder / _BLOCK, self.block)

    @classmethod
    def read(cls, folder: Path) -> Reading:
        """Open what `write` wrote."""
        return Reading(open_encoder(folder / "encoder"), read_block(folder / _BLOCK))


@dataclass
class Member(Reading):
    """What a learner knows once it has been trained.

    Attributes:
        vectors: One vector a label, its bias as one more number at the end.
        index: Finds the labels of the highest score.
    """

    vectors: np.ndarray
    index: OwnedVectors

    @classmethod
    def of(
        cls, encoder: StoredEncoder, block: torch.nn.Module, classifier: OneVsAll, seed: int, threads: int
    ) -> Member:
        """Freeze what was trained, and index the label vectors for inner products."""
        Reading(encoder, block).freeze()
        vectors = with_bias(classifier)
        everyone = np.arange(len(vectors))
        index = OwnedVectors.build(
            vectors, everyone, len(vectors), metric="inner_product", quick=True, seed=seed, threads=threads
        )
        return cls(encoder, block, vectors, index)

    def search(
        self, final: np.ndarray, k: int, allowed: np.ndarray | None, threads: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k allowed labels of the highest score for each row."""
        index: Any = self.index
        return search_allowed(index, self.vectors, final, k, allowed, threads=threads)

    def score(self, final: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """The scores of given labels, -inf where the id is -1."""
        scores = np.empty(ids.shape, np.float32)
        gather_scores(final, self.vectors, np.asarray(ids, np.int64), scores)
        return scores

    def add(self, fresh: FreshLabels, threads: int) -> None:
        """Give new labels vectors that point at their texts (see `FreshLabels.vectors`)."""
        final = self.final(self.intermediate(self.encoder.read(fresh.texts), threads))
        best = self.index.search(final, 1, threads)[1][:, 0]
        vectors = fresh.vectors(final[:, :-1], best, float(np.median(self.vectors[:, -1])))
        self.index.add(vectors, fresh.rows)
        self.vectors = np.concatenate((self.vectors, vectors))

    def write(self, folder: Path) -> None:
        """Write into an existing, empty folder."""
        super().write(folder)
        if self.index.vectors() is None:
            write_tensors(folder / _TENSORS, {"vectors": self.vectors.astype(np.float16)})
        (folder / "index").mkdir()
        self.index.write(folder / "index")

    @classmethod
    def read(cls, folder: Path) -> Member:
        """Open what `write` wrote."""
        reading = Reading.read(folder)
        index = OwnedVectors.read_from(folder / "index", "inner_product")
        vectors = index.vectors()
        if vectors is None:
            vectors = read_tensors(folder / _TENSORS)["vectors"].astype(np.float32)
        return cls(reading.encoder, reading.block, vectors, index)


def rounded(vectors: np.ndarray) -> np.ndarray:
    """Vectors as they come back from being stored in half precision."""
    return vectors.astype(np.float16).astype(np.float32)


def with_bias(classifier: OneVsAll) -> np.ndarray:
    """One vector a label, rounded, its bias as one more number at the end."""
    table, bias = classifier.vectors(), classifier.biases()
    return rounded(np.column_stack((table, np.zeros(len(table), np.float32) if bias is None else bias)))

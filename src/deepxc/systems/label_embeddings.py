"""Label embeddings beside classifiers: the second of the two vectors by which DEXA knows a label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deepxc.modules.classifiers.one_vs_all import score_given
from deepxc.modules.classifiers.reranker import confusions
from deepxc.modules.shortlists.owned_vectors import OwnedVectors
from deepxc.persist.tensors import read_tensors, write_tensors
from deepxc.search.restricted import search_allowed
from deepxc.systems.member import rounded

if TYPE_CHECKING:
    from pathlib import Path

    from scipy import sparse

_TENSORS, _INDEX = "embeddings.safetensors", "index"


@dataclass
class LabelEmbeddings:
    """One vector of length 1 a label, rounded as it is stored, and what finds the nearest.

    Attributes:
        vectors: The vectors.
        index: Over them.
        texts: Embeddings of the train texts, from training until they are indexed.
    """

    vectors: np.ndarray
    index: OwnedVectors
    texts: np.ndarray | None = None

    @classmethod
    def of(cls, vectors: np.ndarray, seed: int, threads: int) -> LabelEmbeddings:
        """Index vectors."""
        vectors = rounded(vectors)
        everyone, n = np.arange(len(vectors)), len(vectors)
        index = OwnedVectors.build(vectors, everyone, n, metric="inner_product", seed=seed, threads=threads)
        return cls(vectors, index)

    def search(
        self, features: np.ndarray, k: int, allowed: np.ndarray | None, threads: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k allowed labels of the highest similarity to each row."""
        index: Any = self.index
        return search_allowed(index, self.vectors, features, k, allowed, threads=threads)

    def score(self, features: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Similarity to given labels, -inf where the id is -1."""
        return score_given(features, self.vectors, ids)

    def mistaken(self, features: np.ndarray, Y: sparse.csr_matrix, k: int, threads: int) -> np.ndarray:
        """For each train row the k labels nearest to it that it does not have, -1 where fewer."""
        widest = int(np.diff(Y.indptr).max(initial=0))
        ids, _ = self.search(features, min(len(self.vectors), k + widest), None, threads)
        return confusions(ids.astype(np.int32), Y, k, threads=threads)

    def add(self, vectors: np.ndarray, rows: np.ndarray) -> None:
        """Append labels."""
        vectors = rounded(vectors)
        self.index.add(vectors, rows)
        self.vectors = np.concatenate((self.vectors, vectors))

    def write(self, folder: Path) -> None:
        """Write into an existing, empty folder."""
        write_tensors(folder / _TENSORS, {"vectors": self.vectors.astype(np.float16)})
        (folder / _INDEX).mkdir()
        self.index.write(folder / _INDEX)

    @classmethod
    def read(cls, folder: Path) -> LabelEmbeddings:
        """Open what `write` wrote."""
        vectors = read_tensors(folder / _TENSORS)["vectors"].astype(np.float32)
        return cls(vectors, OwnedVectors.read_from(folder / _INDEX, "inner_product"))


def unit_rows_of(rows: np.ndarray) -> np.ndarray:
    """The rows with length 1; rows of zeros stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return rows / np.maximum(lengths, np.float32(1e-12))[:, None]

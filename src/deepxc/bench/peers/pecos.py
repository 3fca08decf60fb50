"""PECOS: XR-Linear, a label tree with linear classifiers, in C++."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from deepxc.bench.peers.bag_peer import BagPeer, imported

if TYPE_CHECKING:
    from pathlib import Path

    from deepxc.bench.contestant import Trial

_BEAM = 10
_MODEL = "model"
# The library declares numpy below 2, which its compiled part does not need; it would not install beside ours.
_REMEDY = "Install it with: pip install --no-deps libpecos"


class PecosXrLinear(BagPeer):
    """XR-Linear over a tree from hierarchical k-means, with the library's defaults."""

    def __init__(self, *, label_texts: bool = False) -> None:
        super().__init__(label_texts=label_texts)
        self._xmc = imported("pecos.xmc", "libpecos", _REMEDY)
        self._models = imported("pecos.xmc.xlinear.model", "libpecos", _REMEDY)
        imported("pecos.utils.smat_util", "libpecos", _REMEDY).cs_matrix = _compressed
        self._model: Any = None
        self._threads = 1
        self._width = 0

    def _train(self, X: sparse.csr_matrix, Y: sparse.csr_matrix, trial: Trial) -> None:
        threads = trial.threads
        self._width = X.shape[1]
        vectors = self._xmc.LabelEmbeddingFactory.create(Y, X, method="pifa", threads=threads)
        tree = self._xmc.Indexer.gen(vectors, indexer_type="hierarchicalkmeans", threads=threads)
        self._model = self._models.XLinearModel.train(X, Y, C=tree, threads=threads)

    def _save(self, folder: Path) -> None:
        self._model.save(str(folder / _MODEL))

    def _open(self, folder: Path, threads: int) -> None:
        self._model = None
        self._model = self._models.XLinearModel.load(str(folder / _MODEL), is_predict_only=True)
        self._threads = threads

    def _rank(self, X: sparse.csr_matrix, k: int) -> np.ndarray:
        answers = self._predict(X, k)
        sizes = np.diff(answers.indptr)
        rows = np.repeat(np.arange(len(sizes)), sizes)
        order = np.lexsort((answers.indices, -answers.data, rows))
        rank = np.arange(len(order)) - np.repeat(answers.indptr[:-1], sizes)
        ids = np.full((len(sizes), k), -1, np.int64)
        ids[rows, rank] = answers.indices[order]
        return ids

    def _rank_one(self, columns: np.ndarray, values: np.ndarray, k: int) -> object:
        bounds = np.array([0, len(columns)], dtype=np.int32)
        return self._predict(sparse.csr_matrix((values, columns, bounds), shape=(1, self._width)), k)

    def _predict(self, X: sparse.csr_matrix, k: int) -> sparse.csr_matrix:
        return self._model.predict(X, only_topk=k, beam_size=max(_BEAM, k), threads=self._threads)


def _compressed(
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray],
    kind: type[sparse.csr_matrix],
    shape: tuple[int, int] | None = None,
    dtype: Any = None,  # noqa: ANN401 (numpy's word for it)
    copy: bool = False,
    check_contents: bool = False,
) -> sparse.csr_matrix:
    """Stands in for the library's own matrix constructor, which calls what newer numpy and scipy have taken away.

    Like that one it takes the arrays unchecked, so that answers cost what they did.
    """
    values, indices, bounds = arrays
    assert shape is not None
    made = kind(shape, dtype=dtype)
    take = np.array if copy else np.asarray
    made.indices = take(indices, dtype=sparse.get_index_dtype(indices, check_contents=check_contents))
    made.indptr = take(bounds, dtype=sparse.get_index_dtype(bounds, check_contents=check_contents))
    made.data = take(values, dtype=dtype)
    return made

"""omikuji: Parabel and Bonsai, forests of label trees with linear classifiers, in Rust."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from scipy import sparse

from deepxc.bench.peers.bag_peer import BagPeer, imported, padded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np

    from deepxc.bench.contestant import Trial

_BEAM = 10
_MODEL = "model"
_ROWS_AT_A_TIME = 1 << 14


class Omikuji(BagPeer):
    """Parabel by default; Bonsai with wide, unbalanced, shallow trees.

    Args:
        label_texts: As for every peer.
        **changed: Hyper-parameters that differ from the library's defaults, by its own names.
    """

    def __init__(self, *, label_texts: bool = False, **changed: Any) -> None:  # noqa: ANN401 (passed on)
        super().__init__(label_texts=label_texts)
        self._library = imported("omikuji", "omikuji")
        self._changed = changed
        self._model: Any = None

    def _train(self, X: sparse.csr_matrix, Y: sparse.csr_matrix, trial: Trial) -> None:
        params = self._library.Model.default_hyper_param()
        for name, value in self._changed.items():
            setattr(params, name, value)
        file = trial.folder / "train.txt"
        with trial.stages.stage("convert"):
            _write(file, X, Y)
        self._model = self._library.Model.train_on_data(str(file), params, trial.threads)
        file.unlink()

    def _save(self, folder: Path) -> None:
        self._model.save(str(folder / _MODEL))

    def _open(self, folder: Path, threads: int) -> None:
        self._model = None
        self._model = self._library.Model.load(str(folder / _MODEL))
        self._model.init_prediction_thread_pool(threads)

    def _rank(self, X: sparse.csr_matrix, k: int) -> np.ndarray:
        bounds = X.indptr.tolist()
        pairs = list(zip(X.indices.tolist(), X.data.tolist(), strict=True))
        return padded([self._answer(pairs[a:b], k) for a, b in pairwise(bounds)], k)

    def _rank_one(self, columns: np.ndarray, values: np.ndarray, k: int) -> object:
        return self._answer(list(zip(columns.tolist(), values.tolist(), strict=True)), k)

    def _answer(self, pairs: list[tuple[int, float]], k: int) -> list[tuple[int, float]]:
        return self._model.predict(pairs, beam_size=max(_BEAM, k), top_k=k)


def _write(file: Path, X: sparse.csr_matrix, Y: sparse.csr_matrix) -> None:
    """The file that the library trains from: a header, then labels and column:value pairs line by line."""
    with file.open("w", encoding="ascii") as out:
        out.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for start in range(0, X.shape[0], _ROWS_AT_A_TIME):
            rows = slice(start, start + _ROWS_AT_A_TIME)
            out.writelines(_lines(sparse.csr_matrix(X[rows]), sparse.csr_matrix(Y[rows])))


def _lines(X: sparse.csr_matrix, Y: sparse.csr_matrix) -> Iterator[str]:
    labels, label_bounds = list(map(str, Y.indices.tolist())), Y.indptr.tolist()
    pairs = [f"{column}:{value:.6g}" for column, value in zip(X.indices.tolist(), X.data.tolist(), strict=True)]
    bounds = X.indptr.tolist()
    for row in range(X.shape[0]):
        own = ",".join(labels[label_bounds[row] : label_bounds[row + 1]])
        yield f"{own} {' '.join(pairs[bounds[row] : bounds[row + 1]])}\n"

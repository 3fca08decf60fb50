"""napkinXC: a probabilistic label tree with linear classifiers, in C++."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepxc.bench.peers.bag_peer import BagPeer, imported, padded

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from scipy import sparse

    from deepxc.bench.contestant import Trial

_MODEL = "model"
_SEED = 0


class NapkinPlt(BagPeer):
    """The library's PLT with its defaults. It writes its model while it trains."""

    def __init__(self, *, label_texts: bool = False) -> None:
        super().__init__(label_texts=label_texts)
        self._library = imported("napkinxc.models", "napkinxc")
        self._model: Any = None

    def _train(self, X: sparse.csr_matrix, Y: sparse.csr_matrix, trial: Trial) -> None:
        self._model = self._library.PLT(str(trial.folder / _MODEL), threads=trial.threads, seed=_SEED, verbose=0)
        self._model.fit(X, Y)

    def _save(self, folder: Path) -> None:
        assert (folder / _MODEL).is_dir()

    def _open(self, folder: Path, threads: int) -> None:
        self._model = None
        self._model = self._library.PLT(str(folder / _MODEL), threads=threads, seed=_SEED, verbose=0)
        self._model.load()

    def _rank(self, X: sparse.csr_matrix, k: int) -> np.ndarray:
        return padded(self._model.predict_proba(X, top_k=k), k)

    def _rank_one(self, columns: np.ndarray, values: np.ndarray, k: int) -> object:
        return self._model.predict_proba([list(zip(columns.tolist(), values.tolist(), strict=True))], top_k=k)

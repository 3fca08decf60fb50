"""A label tree over given features, through a maintained library: the classifier of Parabel and Bonsai.

A tree shortlists and classifies in one, so it takes the place of modules II and IV: it learns from features and labels
and answers with ranked labels, and has neither vectors nor logits.
"""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from deepxc.errors import DataError, UserError
from deepxc.search.vectors import check_count

if TYPE_CHECKING:
    from types import ModuleType

_MODEL, _TRAIN = "tree", "train.txt"
_ROWS_AT_ONCE = 1 << 13
_BEAM = 10


class LabelTree:
    """A forest of balanced label trees by omikuji (Parabel by its defaults).

    Args:
        settings: Hyper-parameters that differ from the library's defaults, by its own names: for Bonsai
            `cluster_balanced=False, cluster_k=100, max_depth=3`.
    """

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - passed on
        self.settings = settings
        self._model: Any = None

    def fit(self, features: np.ndarray | sparse.csr_matrix, Y: sparse.csr_matrix, *, threads: int = 1) -> LabelTree:
        """Train on features, dense or sparse; rows without labels are left out."""
        library = _library()
        rows, labels = sparse.csr_matrix(features, dtype=np.float32), sparse.csr_matrix(Y)
        if rows.shape[0] != labels.shape[0]:
            raise DataError(f"{labels.shape[0]} rows of labels for {rows.shape[0]} rows of features")
        settings = library.Model.default_hyper_param()
        for name, value in self.settings.items():
            if not hasattr(settings, name):
                known = ", ".join(sorted(n for n in dir(settings) if not n.startswith("_")))
                raise UserError(f"the tree has no setting {name!r}", where="settings", remedy=f"Known are {known}")
            setattr(settings, name, value)
        with tempfile.TemporaryDirectory() as folder:  # the library reads nothing but files
            path = Path(folder) / _TRAIN
            _write(path, rows, labels)
            self._model = library.Model.train_on_data(str(path), settings, threads)
        return self

    def shortlist(
        self, features: np.ndarray | sparse.csr_matrix, k: int, *, beam: int = _BEAM
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k best labels of each row (ids int64, -1 where fewer; scores float32), best first.

        Args:
            features: As in `fit`.
            k: Labels wanted.
            beam: Nodes kept on each level of a tree.
        """
        if self._model is None:
            raise UserError("LabelTree is not fitted", where="classifier", remedy="Call fit first")
        k = check_count(k, "k")
        rows = sparse.csr_matrix(features, dtype=np.float32)
        bounds = rows.indptr.tolist()
        pairs = list(zip(rows.indices.tolist(), rows.data.tolist(), strict=True))
        ids, scores = np.full((rows.shape[0], k), -1, np.int64), np.full((rows.shape[0], k), -np.inf, np.float32)
        for row in range(rows.shape[0]):  # the library answers one row at a time
            answer = self._model.predict(pairs[bounds[row] : bounds[row + 1]], beam_size=max(beam, k), top_k=k)
            for place, (label, score) in enumerate(answer):
                ids[row, place], scores[row, place] = label, score
        return ids, scores

    def write(self, folder: Path) -> None:
        """Save into an existing folder, in the library's own files."""
        if self._model is None:
            raise UserError("LabelTree is not fitted", where="classifier", remedy="Call fit first")
        self._model.save(str(Path(folder) / _MODEL))

    @classmethod
    def read_from(cls, folder: Path) -> LabelTree:
        """Open what was saved."""
        found = cls()
        found._model = _library().Model.load(str(Path(folder) / _MODEL))
        return found


def _library() -> ModuleType:
    try:
        return importlib.import_module("omikuji")
    except ImportError as missing:
        raise UserError(
            "a label tree needs omikuji, which is not installed",
            where="classifier",
            remedy="Install the extra: pip install 'deepxc[bench]'",
        ) from missing


def _write(path: Path, X: sparse.csr_matrix, Y: sparse.csr_matrix) -> None:
    """The file that the library trains from: a header, then labels and column:value pairs line by line."""
    used = np.flatnonzero(np.diff(Y.indptr))
    with path.open("w", encoding="ascii") as out:
        out.write(f"{len(used)} {X.shape[1]} {Y.shape[1]}\n")
        for start in range(0, len(used), _ROWS_AT_ONCE):
            rows = used[start : start + _ROWS_AT_ONCE]
            out.writelines(_lines(sparse.csr_matrix(X[rows]), sparse.csr_matrix(Y[rows])))


def _lines(X: sparse.csr_matrix, Y: sparse.csr_matrix) -> list[str]:
    labels = list(map(str, Y.indices.tolist()))
    pairs = [f"{column}:{value:.6g}" for column, value in zip(X.indices.tolist(), X.data.tolist(), strict=True)]
    own, given = Y.indptr.tolist(), X.indptr.tolist()
    return [
        f"{','.join(labels[own[i] : own[i + 1]])} {' '.join(pairs[given[i] : given[i + 1]])}\n"
        for i in range(X.shape[0])
    ]

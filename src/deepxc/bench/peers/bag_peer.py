"""What the peers share: none reads text, so each is given the rows of our bag of tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse

from deepxc.bench.contestant import MissingPackage
from deepxc.systems.training_rows import with_label_rows
from deepxc.text.bag import BagOfTokens

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from deepxc.bench.contestant import Inputs, Trial
    from deepxc.data.dataset import Split

REMEDY = "Install it with: pip install 'deepxc[bench]'"
_TOKENS = "tokenizer.json"
_FEW_TEXTS = 1_000  # below this our own systems keep every token too
_MIN_DF = 2


def imported(module: str, package: str, remedy: str = REMEDY) -> Any:  # noqa: ANN401 (a module)
    """A peer's library.

    Raises:
        MissingPackage: It is not installed, or fails to import.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as fault:
        missing = (fault.name or "").split(".")[0]
        if missing == module.split(".", maxsplit=1)[0]:
            raise MissingPackage(f"{package} is not installed", remedy) from None
        raise MissingPackage(f"{package} lacks the package {missing}", f"Install {missing}") from None
    except (ImportError, OSError) as fault:
        raise MissingPackage(f"{package} cannot be imported here: {fault}", remedy) from None


class BagPeer(ABC):
    """A library that maps sparse rows to labels, with our tokens in front of it.

    Rows without a token or a label teach nothing, and some libraries stumble over them: they are left out of
    training. Where the data came as features, those are taken as they are.

    Args:
        label_texts: Give the library every label's text as one more train text of that label.
    """

    def __init__(self, *, label_texts: bool = False) -> None:
        self._label_texts = label_texts
        self._tokens: BagOfTokens | None = None

    def fit(self, train: Split, trial: Trial) -> None:
        """Tokenise, then train."""
        if self._label_texts:
            train = with_label_rows(train, documents=True)
        with trial.stages.stage("tokenise"):
            X = self._learn_tokens(train)
        kept = np.flatnonzero((np.diff(X.indptr) > 0) & (np.diff(train.Y.indptr) > 0))
        ones = np.ones_like(train.Y.data)
        Y = sparse.csr_matrix((ones, train.Y.indices, train.Y.indptr), shape=train.Y.shape)
        if len(kept) < X.shape[0]:
            X, Y = sparse.csr_matrix(X[kept]), sparse.csr_matrix(Y[kept])
        self._train(X, Y, trial)

    def save(self, folder: Path) -> None:
        """The library's own files, and the tokens."""
        if self._tokens is not None:
            self._tokens.save(folder / _TOKENS)
        self._save(folder)

    def open(self, folder: Path, threads: int) -> None:
        """Open both again."""
        if self._tokens is not None:
            self._tokens = BagOfTokens.load(folder / _TOKENS)
        self._open(folder, threads)

    def rank(self, inputs: Inputs, k: int) -> np.ndarray:
        """Tokenise all, rank all."""
        if self._tokens is None:
            return self._rank(_rows(inputs), k)
        return self._rank(self._tokens.transform(cast("Sequence[str]", inputs)), k)

    def rank_one(self, item: str | sparse.csr_matrix | np.ndarray, k: int) -> object:
        """Tokenise one, rank one."""
        if self._tokens is not None:
            columns, values = self._tokens.transform_one(str(item))
        else:
            row = _rows(item)
            columns, values = row.indices, row.data
        return self._rank_one(columns, values, k)

    def _learn_tokens(self, train: Split) -> sparse.csr_matrix:
        if train.texts is None:
            return _rows(train.X)
        self._tokens = BagOfTokens(min_df=_MIN_DF if len(train.texts) >= _FEW_TEXTS else 1)
        return self._tokens.fit_transform(train.texts)

    @abstractmethod
    def _train(self, X: sparse.csr_matrix, Y: sparse.csr_matrix, trial: Trial) -> None:
        """Train on float32 rows and a matrix of ones."""

    @abstractmethod
    def _save(self, folder: Path) -> None:
        """Write the library's files."""

    @abstractmethod
    def _open(self, folder: Path, threads: int) -> None:
        """Read them."""

    @abstractmethod
    def _rank(self, X: sparse.csr_matrix, k: int) -> np.ndarray:
        """Ids of the k best labels of each row."""

    @abstractmethod
    def _rank_one(self, columns: np.ndarray, values: np.ndarray, k: int) -> object:
        """The k best labels of one row, given by its columns (ascending) and values."""


def padded(answers: list[list[Any]], k: int) -> np.ndarray:
    """Lists of (label, score), best first, as ids of shape (n, k)."""
    ids = np.full((len(answers), k), -1, np.int64)
    for i, answer in enumerate(answers):
        for j, (label, _) in enumerate(answer[:k]):
            ids[i, j] = label
    return ids


def _rows(features: Any) -> sparse.csr_matrix:  # noqa: ANN401 (any matrix)
    rows = sparse.csr_matrix(features, dtype=np.float32)
    rows.sort_indices()
    return rows

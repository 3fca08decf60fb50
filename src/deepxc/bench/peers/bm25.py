"""bm25s: BM25 with each label as a document, which is searched with the text as a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepxc.bench.peers.bag_peer import imported
from deepxc.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from scipy import sparse

    from deepxc.bench.contestant import Inputs, Trial
    from deepxc.data.dataset import Split


class Bm25:
    """A label is what its text says; with `train_texts` its train texts stand behind that in one document.

    Args:
        train_texts: Whether they do.
    """

    def __init__(self, *, train_texts: bool = False) -> None:
        self._library = imported("bm25s", "bm25s")
        self._train_texts = train_texts
        self._index: Any = None

    def fit(self, train: Split, trial: Trial) -> None:
        """Index the documents."""
        if train.texts is None:
            raise UserError("features, but BM25 reads texts", where="X", remedy="Leave it out of this comparison")
        documents = list(train.labels.texts or train.labels.names)
        if self._train_texts:
            by_label: Any = train.Y.tocsc()
            for label in range(len(documents)):
                rows = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
                documents[label] = " ".join((documents[label], *(train.texts[row] for row in rows.tolist())))
        with trial.stages.stage("tokenise"):
            tokens = self._tokens(documents)
        self._index = self._library.BM25()
        self._index.index(tokens, show_progress=False)

    def save(self, folder: Path) -> None:
        """The library's own files."""
        self._index.save(str(folder), show_progress=False)

    def open(self, folder: Path, threads: int) -> None:  # noqa: ARG002 (the library searches on one thread)
        """Load them."""
        self._index = self._library.BM25.load(str(folder), show_progress=False)

    def rank(self, inputs: Inputs, k: int) -> np.ndarray:
        """Labels whose documents match best; -1 where nothing matches."""
        k = min(k, int(self._index.scores["num_docs"]))
        queries: Any = inputs
        found, scores = self._index.retrieve(
            self._tokens(list(queries), ids=False), k=k, show_progress=False, return_as="tuple"
        )
        return np.where(scores > 0, found.astype(np.int64), -1)

    def rank_one(self, item: str | sparse.csr_matrix | np.ndarray, k: int) -> object:
        """The k best of one text, as (label, score)."""
        found, scores = self._index.retrieve(self._tokens([str(item)], ids=False), k=k, show_progress=False)
        return list(zip(found[0].tolist(), scores[0].tolist(), strict=True))

    def _tokens(self, texts: list[str], *, ids: bool = True) -> Any:  # noqa: ANN401 (the library's own kind)
        return self._library.tokenize(texts, stopwords=[], return_ids=ids, show_progress=False)

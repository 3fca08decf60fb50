"""NearestLabels: no training at all, and the starting point of every system that trains.

A label is where its texts are: the centroid of their vectors, pulled towards what the label's own text says. A text
gets the labels nearest to it, and a second opinion from the labels of the train texts nearest to it. With `trees`,
linear machines are trained to tell those candidates apart.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from deepxc.modules.classifiers.token_tree import TokenForest
from deepxc.persist.tensors import read_tensors, write_tensors
from deepxc.predict.fusion import blend_with_neighbours, softmax_rows
from deepxc.predict.stages import stage
from deepxc.search.choose import build_index, load_index
from deepxc.search.posting_lists import PostingLists
from deepxc.search.restricted import search_allowed
from deepxc.systems.estimator import XmcEstimator
from deepxc.systems.new_labels import FreshLabels, extended, fresh_labels
from deepxc.systems.training_rows import FEW_TEXTS, labels_are_documents, not_itself, with_label_rows
from deepxc.systems.tree_voice import TREE_CANDIDATES, with_trees
from deepxc.text.bag import BagOfTokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from deepxc.data.dataset import Split
    from deepxc.systems.inputs import Features
    from deepxc.systems.runs import TrainingRuns

Index = Any
"""`PostingLists` for sparse vectors, a `VectorIndex` for dense ones; both search, save and load alike."""

logger = logging.getLogger(__name__)

_TENSORS = "nearest.safetensors"
_TOKENS = "tokenizer.json"


@dataclass(frozen=True)
class NearestSettings:
    """The settings of `NearestLabels`; see its arguments."""

    vectors: Literal["random", "spectral", "tokens"]
    dim: int
    label_text: float
    candidates: int
    label_temperature: float
    neighbours: int
    neighbour_weight: float
    text_temperature: float
    told: int
    told_weight: float
    told_temperature: float
    posting_budget: int
    min_df: int
    trees: int
    tree_weight: float


class Voices(NamedTuple):
    """Labels and nearest train texts of each input, with the share of its voice that each has.

    `told_ids` are the labels whose own texts are nearest, with their similarities; none where they were not asked for.
    `features` are the inputs as their tokens.
    """

    features: Features
    label_ids: np.ndarray
    label_shares: np.ndarray
    text_ids: np.ndarray
    text_shares: np.ndarray
    told_ids: np.ndarray
    told_scores: np.ndarray


class NearestLabels(XmcEstimator):
    """Labels by nearness: centroids with label text, blended with the labels of the nearest train texts.

    Every argument but the first three defaults to its preset's value.

    Args:
        preset: `fast` or `best`.
        seed: Seed of the random vectors and of the index.
        threads: Threads for training and for batches; None takes every core.
        vectors: Token vectors: `random` projection, `spectral`, or `tokens` for no projection at all.
        dim: Length of projected vectors.
        label_text: What a label's text weighs beside the centroid of its train texts.
        candidates: Labels kept from the label vectors before blending.
        label_temperature: Temperature of the softmax over them.
        neighbours: Nearest train texts that are asked; 0 for none.
        neighbour_weight: What their voice weighs, from 0 to 1.
        text_temperature: Temperature of the softmax over them.
        told: Labels of the nearest label texts that are a third voice; 0 for none. Of use where labels are documents:
            elsewhere a label's text is part of its vector already.
        told_weight: What that voice weighs, from 0 to 1; the others share the rest.
        told_temperature: Temperature of the softmax over them.
        posting_budget: Postings read to find the nearest texts, and as many for the nearest labels; 0 reads all.
        min_df: Texts that a token must occur in.
        trees: Label trees over the tokens that score the candidates; 0 for none, and then nothing is trained.
        tree_weight: What their voice weighs, from 0 to 1; the others share the rest.
    """

    settings_type = NearestSettings
    preset_file = "nearest"
    settings_: NearestSettings
    text_index_: Index
    label_index_: Index

    def __init__(
        self,
        preset: str = "fast",
        *,
        seed: int = 0,
        threads: int | None = None,
        vectors: str | None = None,
        dim: int | None = None,
        label_text: float | None = None,
        candidates: int | None = None,
        label_temperature: float | None = None,
        neighbours: int | None = None,
        neighbour_weight: float | None = None,
        text_temperature: float | None = None,
        told: int | None = None,
        told_weight: float | None = None,
        told_temperature: float | None = None,
        posting_budget: int | None = None,
        min_df: int | None = None,
        trees: int | None = None,
        tree_weight: float | None = None,
    ) -> None:
        self._keep(locals())

    def _fit(self, split: Split, runs: TrainingRuns) -> None:  # noqa: ARG002 (nothing is trained)
        from deepxc.labels.centroids import label_centroids

        features, label_features = self._read_tokens(split)
        self.token_vectors_ = self._make_token_vectors(features)
        queries = self._project(features)
        vectors = label_centroids(split.Y, queries, threads=self.n_threads)
        if label_features is not None and self.settings_.label_text > 0 and not labels_are_documents(split):
            vectors = vectors + self.settings_.label_text * self._project(label_features)
        self._index_labels(_unit(vectors))
        self.text_labels_ = split.Y
        self.text_index_ = self._index_texts(features)
        self.told_index_ = self._index_told(label_features)
        self.forest_ = self.learn_forest(split, self.settings_.trees)

    def _index_labels(self, vectors: Features) -> None:
        self.label_vectors_ = vectors
        self.label_index_: Index = self._index_of(vectors)

    def add_labels(self, labels: Mapping[str, str | Sequence[str]]) -> None:
        """Let the model know further labels, which are found at once.

        Args:
            labels: Each new label's name, and a text that says what it is or some texts that have it.
        """
        fresh = fresh_labels(self, labels)
        self.add(fresh)
        self.labels_ = extended(self.labels_, fresh)

    def add(self, fresh: FreshLabels) -> None:
        """Put new labels where their texts are, and let the texts be found as neighbours."""
        features = self.tokens_.transform(fresh.texts)
        vectors = fresh.means(self._project(features))
        self._index_labels(_stacked(self.label_vectors_, vectors))
        known = self.text_labels_
        width = len(fresh.rows) + known.shape[1]
        wider = sparse.csr_matrix((known.data, known.indices, known.indptr), shape=(known.shape[0], width))
        self.text_labels_ = wider
        if isinstance(self.text_index_, PostingLists):
            self.text_labels_ = _stacked(wider, fresh.of_texts(width))
            self.text_index_ = self._index_texts(_stacked(self.text_index_.matrix(), features))
        if self.told_index_ is not None:
            firsts = np.searchsorted(fresh.owners, np.arange(len(fresh.names)))
            self.told_index_ = self._index_told(_stacked(self.told_index_.matrix(), features[firsts]))

    def _rank(self, inputs: list[str] | Features, k: int, allowed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        settings = self.settings_
        heard = self.voices(inputs, k, allowed)
        weight = np.float32(0.0 if self.text_index_ is None else settings.neighbour_weight)
        ids, shares, texts = heard.label_ids, (1 - weight) * heard.label_shares, weight * heard.text_shares
        if self.told_index_ is not None:
            told = np.float32(settings.told_weight)
            told_shares = told * softmax_rows(heard.told_scores, settings.told_temperature)
            ids = np.concatenate((ids, heard.told_ids), axis=1)
            shares, texts = np.concatenate(((1 - told) * shares, told_shares), axis=1), (1 - told) * texts
        found = blend_with_neighbours(
            ids,
            shares,
            heard.text_ids,
            texts,
            self.text_labels_,
            k=k if self.forest_ is None else max(k, TREE_CANDIDATES),
            allowed=allowed,
            threads=self.n_threads,
        )
        if self.forest_ is None:
            return found
        return with_trees(self.forest_, heard.features, *found, settings.tree_weight, k, self.n_threads)

    def voices(self, inputs: list[str] | Features, k: int, allowed: np.ndarray | None = None) -> Voices:
        """What the label vectors and the nearest texts say of each input, before they are added up."""
        settings = self.settings_
        with stage("tokens"):
            features = self.tokens_.transform(inputs) if isinstance(inputs, list) else _unit(inputs)
        with stage("centroids"):
            label_ids, label_scores = search_allowed(
                self.label_index_,
                self.label_vectors_,
                self._project(features),
                max(k, settings.candidates),
                allowed,
                threads=self.n_threads,
            )
        text_ids, text_scores = np.empty((len(label_ids), 0), np.int64), np.empty((len(label_ids), 0), np.float32)
        if self.text_index_ is not None:
            with stage("nearest texts"):
                text_ids, text_scores = self.text_index_.search(features, settings.neighbours, threads=self.n_threads)
        told = self._nearest_told(features, inputs)
        label_shares = softmax_rows(label_scores, settings.label_temperature)
        return Voices(
            features, label_ids, label_shares, text_ids, softmax_rows(text_scores, settings.text_temperature), *told
        )

    def learn_forest(self, split: Split, count: int) -> TokenForest | None:
        """Label trees over the tokens of texts that this model was fitted on; None where the features are dense."""
        if count == 0:
            return None
        rows = with_label_rows(split)
        features: Any = self.tokens_.transform(rows.texts) if rows.texts is not None else _unit(split.X)
        if not sparse.issparse(features):
            logger.info("label trees read sparse tokens: with dense features there are none")
            return None
        return TokenForest.fit(features, rows.Y, self.label_vectors_, count, seed=self.seed, threads=self.n_threads)

    def _nearest_told(self, features: Features, inputs: list[str] | Features) -> tuple[np.ndarray, np.ndarray]:
        """The labels whose texts are nearest and how near; a document does not find the label that it is itself."""
        n = features.shape[0]
        if self.told_index_ is None:
            return np.empty((n, 0), np.int64), np.empty((n, 0), np.float32)
        with stage("nearest label texts"):
            ids, scores = self.told_index_.search(features, self.settings_.told, threads=self.n_threads)
        return not_itself(self.own_labels(inputs), ids, scores)

    def _read_tokens(self, split: Split) -> tuple[Features, Features | None]:
        """Features of the texts and of the labels, both of unit length; learns the tokens where the data is text."""
        if split.texts is None:
            assert split.X is not None
            return _unit(split.X), None if split.labels.features is None else _unit(split.labels.features)
        label_texts = [] if split.labels.texts is None else list(split.labels.texts)
        min_df = self.settings_.min_df
        if len(split.texts) < FEW_TEXTS and min_df > 1:
            logger.info("fewer than %d texts: every token is kept (min_df 1)", FEW_TEXTS)
            min_df = 1
        self.tokens_ = BagOfTokens(min_df=min_df).fit([*split.texts, *label_texts])
        features = self.tokens_.transform(split.texts)
        return features, self.tokens_.transform(label_texts) if label_texts else None

    def _make_token_vectors(self, features: Features) -> np.ndarray | None:
        """One vector a token, rounded to what is stored; None where features are used as they are."""
        settings = self.settings_
        if isinstance(features, np.ndarray) or settings.vectors == "tokens":
            return None
        if settings.vectors == "spectral":
            from deepxc.text.spectral import spectral

            dim = min(settings.dim, *features.shape)
            vectors = spectral(features, dim, seed=self.seed, threads=self.n_threads)
        else:
            from deepxc.text.word_vectors import random_projection

            vectors = random_projection(features.shape[1], settings.dim, seed=self.seed, threads=self.n_threads)
        return vectors.astype(np.float16).astype(np.float32)

    def _project(self, features: Features) -> Features:
        if self.token_vectors_ is None:
            return features
        from deepxc.text.word_vectors import embed

        return embed(features, self.token_vectors_, threads=self.n_threads)

    def _index_texts(self, features: Features) -> Index | None:
        if self.settings_.neighbours == 0 or self.settings_.neighbour_weight == 0:
            return None
        return self._index_of(features)

    def _index_of(self, vectors: Features) -> Index:
        if sparse.issparse(vectors):
            return PostingLists(vectors, budget=self.settings_.posting_budget)
        return build_index(vectors, "inner_product", seed=self.seed, threads=self.n_threads)

    def _index_told(self, label_features: Features | None) -> PostingLists | None:
        """An index over the labels' texts, where they are tokens and have a voice of their own."""
        if self.settings_.told == 0 or label_features is None or not sparse.issparse(label_features):
            return None
        return PostingLists(label_features, budget=self.settings_.posting_budget)

    def _write(self, folder: Path) -> None:
        tensors = {"labels_of_texts": self.text_labels_}
        if not isinstance(self.label_index_, PostingLists):  # which holds them itself
            tensors["label_vectors"] = self.label_vectors_
        if self.token_vectors_ is not None:
            tensors["token_vectors"] = self.token_vectors_.astype(np.float16)
        write_tensors(folder / _TENSORS, tensors)
        if hasattr(self, "tokens_"):
            self.tokens_.save(folder / _TOKENS)
        if self.forest_ is not None:
            self.forest_.write(folder)
        indexes = {"label_index": self.label_index_, "text_index": self.text_index_, "told_index": self.told_index_}
        for name, index in indexes.items():
            if index is not None:
                (folder / name).mkdir()
                index.save(folder / name)

    def _read(self, folder: Path) -> None:
        tensors = read_tensors(folder / _TENSORS)
        self.text_labels_ = tensors["labels_of_texts"]
        stored = tensors.get("token_vectors")
        self.token_vectors_ = None if stored is None else stored.astype(np.float32)
        if (folder / _TOKENS).exists():
            self.tokens_ = BagOfTokens.load(folder / _TOKENS)
        self.label_index_ = load_index(folder / "label_index")
        if isinstance(self.label_index_, PostingLists):
            self.label_vectors_ = self.label_index_.matrix()
        else:
            self.label_vectors_ = tensors["label_vectors"]
        self.text_index_ = load_index(folder / "text_index") if (folder / "text_index").exists() else None
        self.told_index_: Any = load_index(folder / "told_index") if (folder / "told_index").exists() else None
        self.forest_ = TokenForest.read(folder)


def _unit(rows: Features) -> Features:
    """A copy with rows of length 1; rows of zeros stay."""
    from sklearn.preprocessing import normalize

    return normalize(rows)


def _stacked(above: Features, below: Features) -> Features:
    if sparse.issparse(above):
        return sparse.csr_matrix(sparse.vstack((above, below)))
    return np.vstack((above, below))

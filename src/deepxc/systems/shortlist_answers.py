"""How the papers' systems answer: the labels of Module II's shortlist, by its scores and the classifiers' together.

Astec adds up the two sigmoids, weighted, and re-ranks; DECAF multiplies them.
"""

from __future__ import annotations

import json
import logging
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from deepxc.errors import UserError
from deepxc.evaluate.metrics import evaluate
from deepxc.modules.classifiers.reranker import confusions
from deepxc.modules.shortlists.saving import open_shortlister
from deepxc.predict.fusion import blend_with_neighbours
from deepxc.predict.stages import stage
from deepxc.systems.member import Member, Reading

if TYPE_CHECKING:
    from pathlib import Path

    from deepxc.data.dataset import Split
    from deepxc.data.label_space import LabelSpace
    from deepxc.modules.protocols import Shortlister
    from deepxc.systems.inputs import Features
    from deepxc.systems.new_labels import FreshLabels
    from deepxc.systems.runs import TrainingRuns

logger = logging.getLogger(__name__)

_ABOUT = "answers.json"
_CANDIDATES = 100  # answers of the model, from which the re-ranker learns what it confuses
_ROWS_AT_ONCE = 20_000
_ALPHAS = tuple(i / 10 for i in range(1, 10))


@dataclass
class ShortlistAnswers:
    """alpha * sigma(classifier) + (1 - alpha) * sigma(similarity) on the shortlist, 0 elsewhere (DeepXML, section 4).

    With `product`, sigma(classifier) * sigma(similarity) in its place (DECAF, section 3).

    Attributes:
        shortlisters: Module II of each learner.
        size: Labels on a shortlist.
        alpha: What the classifier weighs.
        reranker: A learner of the model's own confusions, if there is one.
        beta: What the re-ranker weighs.
        product: Multiply instead of adding.
        readings: How each shortlister's texts are read, where it does not read what its learner's classifiers read.
    """

    shortlisters: list[Shortlister]
    size: int
    alpha: float = 0.5
    reranker: Member | None = None
    beta: float = 0.0
    product: bool = False
    readings: list[Reading] | None = None

    @classmethod
    def of_products(cls, shortlisters: list[Any], readings: list[Reading]) -> ShortlistAnswers:
        """Products of the two sigmoids, on all that each shortlister holds for a text; nothing is left to choose."""
        return cls(shortlisters, max(part.size for part in shortlisters), product=True, readings=readings)

    @classmethod
    def fit(
        cls, model: Any, shortlisters: list[Any], train: Split, held: Split, runs: TrainingRuns
    ) -> ShortlistAnswers:
        """Choose alpha, train the re-ranker, choose beta; both numbers on rows that nothing was trained on."""
        if any(shortlister is None for shortlister in shortlisters):
            raise UserError(
                "no shortlist to answer from", where="hard", remedy="Set hard above 0, or answers='classifiers'"
            )
        size = min(model.settings_.hard, train.Y.shape[1])
        answers = cls(shortlisters, size)
        if len(held):
            parts = answers._parts(model, held.inputs)
            answers.alpha = max(_ALPHAS, key=lambda alpha: _precision(parts[0], _fuse(parts, alpha), held.Y))
            logger.info("alpha %.1f chosen on %d held-out rows", answers.alpha, len(held))
        if model.settings_.reranker:
            answers._train_reranker(model, train, held, runs)
        return answers

    def rank(
        self,
        model: Any,
        inputs: list[str] | Features,
        k: int,
        allowed: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k best allowed labels of each input."""
        parts = self._parts(model, inputs, allowed)
        scores = _multiplied(parts) if self.product else _fuse(parts, self.alpha)
        if self.reranker is not None:
            with stage("re-ranker"):
                again = self._rerank(inputs, parts, model.n_threads)
            scores = [self.beta * new + (1 - self.beta) * old for new, old in zip(again, scores, strict=True)]
        return _summed(parts, scores, k, allowed)

    def _parts(
        self,
        model: Any,
        inputs: Any,
        allowed: np.ndarray | None = None,
    ) -> list[_Part]:
        """Of each learner: its shortlist, and the sigmoids of classifier scores and of similarities on it."""
        parts = []
        for i, (member, shortlister) in enumerate(zip(model.members_, self.shortlisters, strict=True)):
            with stage("features"):
                features = member.intermediate(member.encoder.read(inputs), model.n_threads)
            with stage("shortlist"):
                seen = features if self.readings is None else _read(self.readings[i], inputs, model.n_threads)
                ids, similarity = shortlister.shortlist(seen, self.size, model.n_threads)
                if allowed is not None:
                    ids, similarity = _all_allowed(ids, similarity, allowed, self.size)
            with stage("classifiers"):
                logits = member.score(member.final(features), ids)
            parts.append(_Part(ids, _sigmoid(logits), _sigmoid(similarity)))
        return parts

    def _train_reranker(self, model: Any, train: Split, held: Split, runs: TrainingRuns) -> None:
        """A fresh learner, everything in it trained, on what the model confuses (the paper, "Re-ranking")."""
        settings = model.settings_
        hard = np.full((len(train), _CANDIDATES), -1, np.int32)
        texts = train.inputs
        for start in range(0, len(train), _ROWS_AT_ONCE):
            stop = min(len(train), start + _ROWS_AT_ONCE)
            ids, _ = self.rank(model, texts[start:stop], _CANDIDATES, None)
            hard[start:stop, : ids.shape[1]] = ids
        learner = copy(model)
        learner.settings_ = replace(
            settings, surrogate_epochs=0, train_tokens=True, token_rate=settings.rate, epochs=min(10, settings.epochs)
        )
        wrong = confusions(hard, train.Y, threads=model.n_threads)
        self.reranker, _ = learner._learn("reranker", train, held, model.seed + 1000, runs, wrong)  # noqa: SLF001
        if not len(held):
            self.beta = 0.5
            return
        parts = self._parts(model, held.inputs)
        old, new = _fuse(parts, self.alpha), self._rerank(held.inputs, parts, model.n_threads)

        def quality(beta: float) -> float:
            mixed = [beta * n + (1 - beta) * o for n, o in zip(new, old, strict=True)]
            return _precision(parts[0], mixed, held.Y)

        self.beta = max((0.0, *_ALPHAS), key=quality)
        logger.info("beta %.1f chosen on %d held-out rows", self.beta, len(held))

    def _rerank(self, inputs: Any, parts: list[_Part], threads: int) -> list[np.ndarray]:
        assert self.reranker is not None
        final = self.reranker.final(self.reranker.intermediate(self.reranker.encoder.read(inputs), threads))
        return [_sigmoid(self.reranker.score(final, part.ids)) for part in parts]

    def add(self, model: Any, fresh: FreshLabels) -> None:
        """Let the shortlists find new labels by the features of their texts."""
        readings = self.readings or [None] * len(self.shortlisters)
        for member, shortlister, reading in zip(model.members_, self.shortlisters, readings, strict=True):
            parts: list[Any] = [shortlister, *(getattr(shortlister, name, None) for name in ("first", "second"))]
            able = next((part for part in parts if hasattr(part, "add")), None)
            if able is None:
                raise UserError(
                    f"{type(shortlister).__name__} takes no new labels",
                    where="add_labels",
                    remedy="Use a shortlister with add(vectors, labels)",
                )
            if reading is None:
                features = member.intermediate(member.encoder.read(fresh.texts), model.n_threads)
            else:
                features = _read(reading, fresh.texts, model.n_threads)
            able.add(fresh.means(features), fresh.rows)
        if self.reranker is not None:
            self.reranker.add(fresh, model.n_threads)

    def write(self, folder: Path) -> None:
        """Write into an existing, empty folder."""
        for i, shortlister in enumerate(self.shortlisters):
            (folder / f"shortlister-{i}").mkdir()
            shortlister.write(folder / f"shortlister-{i}")  # pyrefly: ignore[missing-attribute]
        if self.reranker is not None:
            (folder / "reranker").mkdir()
            self.reranker.write(folder / "reranker")
        for i, reading in enumerate(self.readings or ()):
            (folder / f"reading-{i}").mkdir()
            reading.write(folder / f"reading-{i}")
        about = {"size": self.size, "alpha": self.alpha, "beta": self.beta, "product": self.product}
        about["learners"] = len(self.shortlisters)
        (folder / _ABOUT).write_text(json.dumps(about), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path, labels: LabelSpace) -> ShortlistAnswers:  # noqa: ARG003 (both kinds are read alike)
        """Open what `write` wrote."""
        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        shortlisters = [open_shortlister(folder / f"shortlister-{i}") for i in range(about["learners"])]
        reranker = Member.read(folder / "reranker") if (folder / "reranker").exists() else None
        readings = None
        if (folder / "reading-0").exists():
            readings = [Reading.read(folder / f"reading-{i}") for i in range(about["learners"])]
        return cls(shortlisters, about["size"], about["alpha"], reranker, about["beta"], about["product"], readings)


class _Part(NamedTuple):
    ids: np.ndarray
    classifier: np.ndarray
    similarity: np.ndarray


def _read(reading: Reading, inputs: Any, threads: int) -> np.ndarray:
    """The final features of some inputs."""
    return reading.final(reading.intermediate(reading.encoder.read(inputs), threads))[:, :-1]


def _multiplied(parts: list[_Part]) -> list[np.ndarray]:
    return [part.classifier * part.similarity for part in parts]


def _fuse(parts: list[_Part], alpha: float) -> list[np.ndarray]:
    return [np.float32(alpha) * part.classifier + np.float32(1 - alpha) * part.similarity for part in parts]


def _summed(
    parts: list[_Part], scores: list[np.ndarray], k: int, allowed: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The best labels by the mean of the learners' scores; one that a learner does not list has 0 there."""
    ids = np.concatenate([part.ids for part in parts], axis=1)
    mean = np.concatenate(scores, axis=1) / np.float32(len(parts))
    nothing = np.empty((len(ids), 0))
    n_labels = int(ids.max(initial=0)) + 1
    no_texts = sparse.csr_matrix((0, n_labels), dtype=np.float32)
    return blend_with_neighbours(ids, mean, nothing, nothing, no_texts, k=k, allowed=allowed)


def _precision(part: _Part, scores: list[np.ndarray], Y: sparse.csr_matrix) -> float:
    """P@1 of the first learner: alpha and beta are the same for all."""
    best = np.take_along_axis(part.ids, scores[0].argmax(axis=1)[:, None], axis=1)
    return evaluate(best, Y, ks=(1,))["P@1"]


def _sigmoid(scores: np.ndarray) -> np.ndarray:
    """The logistic function; 0 where there is no label."""
    return (1.0 / (1.0 + np.exp(-np.clip(scores, -60.0, 60.0)))) * np.isfinite(scores)


def _all_allowed(
    ids: np.ndarray, similarity: np.ndarray, allowed: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """The shortlist without labels that are not allowed; every allowed one where they are few."""
    rows = np.flatnonzero(allowed)
    kept = (ids >= 0) & allowed[ids]
    if len(rows) > size:
        return np.where(kept, ids, -1), np.where(kept, similarity, -np.inf)
    place = np.full(len(allowed), -1)
    place[rows] = np.arange(len(rows))
    wide = np.full((len(ids), len(rows)), -60.0, np.float32)  # a sigmoid of almost 0, for labels not on the shortlist
    i, j = np.nonzero(kept)
    wide[i, place[ids[i, j]]] = similarity[i, j]
    return np.tile(rows, (len(ids), 1)), wide

"""How a trained Astec answers from several voices: classifiers, nearest train texts, label centroids, token trees.

Each voice is a distribution over its own candidates; the answer is their weighted sum, the weights chosen on rows that
nothing was trained on. The trees speak last, of the candidates that the others put first.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from deepxc.evaluate.metrics import evaluate
from deepxc.evaluate.ranking import needed_k
from deepxc.labels.propensity import Propensity
from deepxc.modules.classifiers.token_tree import TokenForest
from deepxc.predict.fusion import blend_with_neighbours, softmax_rows
from deepxc.predict.stages import stage
from deepxc.search.choose import build_index, load_index
from deepxc.systems.nearest import NearestLabels, Voices
from deepxc.systems.training_rows import not_itself
from deepxc.systems.tree_voice import TREE_CANDIDATES, with_trees
from deepxc.systems.validation import judged
from deepxc.systems.voice_weights import Weights, tuned

if TYPE_CHECKING:
    from pathlib import Path

    from deepxc.data.dataset import Split
    from deepxc.data.label_space import LabelSpace
    from deepxc.search.protocol import VectorIndex
    from deepxc.systems.inputs import Features
    from deepxc.systems.new_labels import FreshLabels

logger = logging.getLogger(__name__)

_ABOUT, _NEAREST, _LEARNED = "answers.json", "nearest", "learned"
_CANDIDATES = 60  # labels of each learner that enter the answer
_LEARNED_TEMPERATURE = 0.1
_TOLD = 50  # labels of the nearest label texts
_WORTH_A_REFIT = 0.05  # share of held-out rows from which the nearest texts are fitted anew with them


class Heard(NamedTuple):
    """What every voice says of some inputs, before anything is weighed."""

    classifiers: list[tuple[np.ndarray, np.ndarray]]
    nearest: Voices | None
    learned: tuple[np.ndarray, np.ndarray] | None


@dataclass
class FusedAnswers:
    """Classifiers, and beside them what needs no training.

    Attributes:
        weights: What each voice weighs.
        prior: The logarithm of each label's share of all occurrences.
        nearest: Nearest train texts by their tokens, and label centroids; None where only classifiers speak.
        learned: The same train texts as the first learner sees them; None where they have no voice.
        forest: Label trees over the tokens; None where they have no voice.
    """

    weights: Weights
    prior: np.ndarray
    nearest: NearestLabels | None = None
    learned: VectorIndex | None = None
    forest: TokenForest | None = None

    @classmethod
    def fit(cls, model: Any, train: Split, held: Split, whole: Split) -> FusedAnswers:
        """Choose the weights on held-out rows; the nearest texts are then all texts, where that makes a difference."""
        settings, prior = model.settings_, _log_shares(model.labels_)
        if settings.answers == "classifiers":
            return cls(Weights(settings.temperature, 0.0, 1.0, 0.0, 0.0), prior)
        rest = settings.nearest_weight
        start = Weights(settings.temperature, 0.0, 1 - rest, 0.55 * rest, 0.45 * rest)
        told = _TOLD if getattr(settings, "told_texts", False) else 0
        nearest = NearestLabels(seed=model.seed, threads=model.threads, min_df=settings.min_df, told=told).fit(train)
        answers = cls(start, prior, nearest)
        answers._index_learned(model, train)
        if len(held):  # without them nothing says what the trees should weigh
            answers.forest = nearest.learn_forest(train, settings.trees)
            answers.weights = answers._tuned(model, judged(held, train) if model.documents_ else held)
            logger.info("weights chosen on %d held-out rows: %s", len(held), answers.weights)
            if not answers.weights.trees:
                answers.forest = None
            if len(held) > _WORTH_A_REFIT * len(whole):
                nearest.fit(whole)
                answers.forest = nearest.learn_forest(whole, settings.trees if answers.forest else 0)
                answers._index_learned(model, whole)
        return answers

    def _index_learned(self, model: Any, split: Split) -> None:
        """Index the texts as the first learner sees them, if they are to have a voice."""
        if not model.settings_.learned_texts:
            return
        member = model.members_[0]
        final = member.final(member.intermediate(member.encoder.read(split.inputs), model.n_threads))
        self.learned = build_index(member.compared(final), "cosine", seed=model.seed, threads=model.n_threads)

    def rank(
        self, model: Any, inputs: list[str] | Features, k: int, allowed: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k best allowed labels of each input."""
        heard = self._hear(model, inputs, k, allowed)
        return self._ranked(heard, self.weights, k, allowed, model.n_threads)

    def _hear(self, model: Any, inputs: Any, k: int, allowed: np.ndarray | None = None) -> Heard:
        found, wanted, learned, own = [], max(k, _CANDIDATES), None, model.own_labels(inputs)
        for i, member in enumerate(model.members_):
            with stage("tokens"):
                read = member.encoder.read(inputs)
            with stage("features"):
                final = member.final(member.intermediate(read, model.n_threads))
            with stage("classifiers"):
                ids, scores = member.search(final, wanted, allowed, model.n_threads)
                found.append(not_itself(own, ids, scores))
            if i == 0 and self.learned is not None:
                with stage("learned texts"):
                    learned = self._learned_texts(member.compared(final), model.n_threads)
        nearest = None if self.nearest is None else self.nearest.voices(inputs, k, allowed)
        return Heard(found, nearest, learned)

    def _learned_texts(self, final: np.ndarray, threads: int) -> tuple[np.ndarray, np.ndarray]:
        assert self.learned is not None
        assert self.nearest is not None
        k = min(self.nearest.settings_.neighbours, len(self.learned))
        ids, scores = self.learned.search(final, k, threads=threads)
        return ids, softmax_rows(scores, _LEARNED_TEMPERATURE)

    def _blend(
        self, heard: Heard, weights: Weights, k: int, allowed: np.ndarray | None = None, threads: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        each = np.float32(weights.classifiers / len(heard.classifiers))
        ids = [ids for ids, _ in heard.classifiers]
        shares = [
            each * softmax_rows(scores + np.float32(weights.prior) * self.prior[ids], weights.temperature)
            for ids, scores in heard.classifiers
        ]
        if heard.nearest is None:
            n_labels = max(int(part.max(initial=0)) for part in ids) + 1
            texts: tuple[Any, Any] = (np.empty((len(ids[0]), 0)),) * 2
            Y = sparse.csr_matrix((0, n_labels), dtype=np.float32)
        else:
            assert self.nearest is not None
            ids.append(heard.nearest.label_ids)
            shares.append(np.float32(weights.labels) * heard.nearest.label_shares)
            if weights.told:
                ids.append(heard.nearest.told_ids)
                told = softmax_rows(heard.nearest.told_scores, weights.told_temperature)
                shares.append(np.float32(weights.told) * told)
            texts, Y = _all_texts(heard.nearest, heard.learned, weights), self.nearest.text_labels_
        return blend_with_neighbours(
            np.concatenate(ids, axis=1),
            np.concatenate(shares, axis=1),
            *texts,
            Y,
            k=k,
            allowed=allowed,
            threads=threads,
        )

    def _ranked(
        self, heard: Heard, weights: Weights, k: int, allowed: np.ndarray | None, threads: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k best labels by all voices; the trees speak of what the others put first."""
        if self.forest is None or heard.nearest is None or not weights.trees:
            with stage("fusion"):
                return self._blend(heard, weights, k, allowed, threads)
        with stage("fusion"):
            found = self._blend(heard, weights, max(k, TREE_CANDIDATES), allowed, threads)
        return with_trees(self.forest, heard.nearest.features, *found, weights.trees, k, threads)

    def _tuned(self, model: Any, held: Split) -> Weights:
        """What is made large is the sum of P@1, PSP@5 and recall at 10: right, right about rare ones, and complete."""
        heard = self._hear(model, held.inputs, _CANDIDATES)
        inverse = Propensity().inverse(model.labels_.frequencies, model.data_["texts"])
        few, k = min(5, held.Y.shape[1]), min(10, held.Y.shape[1])
        pairs = held.filter_pairs if model.documents_ else None
        wanted = min(needed_k(k, pairs), held.Y.shape[1])

        def quality(weights: Weights) -> float:
            ids, _ = self._ranked(heard, weights, wanted, None, model.n_threads)
            report = evaluate(ids, held.Y, ks=(1, few, k), inverse_propensity=inverse, filter_pairs=pairs)
            return report["P@1"] + report[f"PSP@{few}"] + report[f"R@{k}"]

        told = heard.nearest is not None and heard.nearest.told_ids.shape[1] > 0
        return tuned(self.weights, quality, told=told, learned=heard.learned is not None, trees=self.forest is not None)

    def add(self, model: Any, fresh: FreshLabels) -> None:  # noqa: ARG002 (both kinds of answers take labels alike)
        """Let the voices beside the classifiers know new labels by their texts."""
        self.prior = np.concatenate((self.prior, np.full(len(fresh.rows), self.prior.min())))
        if self.nearest is not None:
            self.nearest.add(fresh)

    def write(self, folder: Path) -> None:
        """Write into an existing, empty folder."""
        (folder / _ABOUT).write_text(json.dumps(asdict(self.weights)), encoding="utf-8")
        if self.nearest is not None:
            self.nearest.save(folder / _NEAREST)
        if self.learned is not None:
            (folder / _LEARNED).mkdir()
            self.learned.save(folder / _LEARNED)
        if self.forest is not None:
            self.forest.write(folder)

    @classmethod
    def read(cls, folder: Path, labels: LabelSpace) -> FusedAnswers:
        """Open what `write` wrote."""
        from deepxc.systems.estimator import load

        weights = Weights(**json.loads((folder / _ABOUT).read_text(encoding="utf-8")))
        nearest: Any = load(folder / _NEAREST, verify=False) if (folder / _NEAREST).exists() else None
        learned = load_index(folder / _LEARNED) if (folder / _LEARNED).exists() else None
        return cls(weights, _log_shares(labels), nearest, learned, TokenForest.read(folder))


def _all_texts(
    nearest: Voices, learned: tuple[np.ndarray, np.ndarray] | None, weights: Weights
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest train texts of both kinds, with what each text's voice weighs."""
    shares = np.float32(weights.texts) * nearest.text_shares
    if learned is None or weights.learned == 0:
        return nearest.text_ids, shares
    ids, learned_shares = learned
    return (
        np.concatenate((nearest.text_ids, ids), axis=1),
        np.concatenate((shares, np.float32(weights.learned) * learned_shares), axis=1),
    )


def _log_shares(labels: LabelSpace) -> np.ndarray:
    """The logarithm of each label's share of all occurrences."""
    assert labels.frequencies is not None
    counts = np.asarray(labels.frequencies, np.float64) + 1
    return np.log(counts / counts.sum()).astype(np.float32)

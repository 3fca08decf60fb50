"""How DEXA answers: candidates of classifiers, label embeddings and nearest train texts, all their scores fused.

The candidates are what the voices name. Every candidate is then scored by every classifier and every embedding,
whoever named it, and the scores become one number by a rule that was fitted, if at all, on rows that nothing was
trained on.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from deepxc.evaluate.metrics import evaluate
from deepxc.labels.propensity import Propensity
from deepxc.modules.classifiers.token_tree import TokenForest
from deepxc.modules.shortlists.owned_vectors import OwnedVectors
from deepxc.modules.shortlists.row_blocks import over_rows
from deepxc.persist.tensors import read_tensors, write_tensors
from deepxc.predict.fusion import softmax_rows
from deepxc.predict.score_fusion import FixedRule, LogisticFusion, TreeFusion, open_fusion
from deepxc.predict.stages import stage
from deepxc.systems.label_embeddings import LabelEmbeddings
from deepxc.systems.nearest import NearestLabels

if TYPE_CHECKING:
    from pathlib import Path

    from deepxc.data.dataset import Split
    from deepxc.data.label_space import LabelSpace
    from deepxc.systems.inputs import Features
    from deepxc.systems.new_labels import FreshLabels

logger = logging.getLogger(__name__)

_ABOUT, _TENSORS = "answers.json", "answers.safetensors"
_ROWS_AT_ONCE = 4_096  # bounds the scores of candidates that are held at once
_TILTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
_TEXT_TEMPERATURE = 0.1  # of the softmax over the nearest texts in a learned space
_WORTH_A_REFIT = 0.02  # share of held-out rows from which the nearest texts are fitted anew with them
_FLOORS = (0.003, 0.03, 0.3)  # added to shares before their logarithm: several, so that their sum can take any shape
_FREE = ("log_inverse_propensity",)
"""The column that may speak against a label; the voices' own never do."""


@dataclass
class CombinedAnswers:
    """Classifiers, label embeddings and nearest train texts, fused.

    Attributes:
        kind: `fused`; or `encoder` and `classifiers`, which rank by that voice alone.
        embeddings: Label embeddings of each member.
        inverse: Inverse propensity of each label.
        scale: What classifier scores are divided by to be in the measure of cosines.
        size: Candidates of each voice.
        fusion: What makes one number of all scores.
        tilt: Power of the inverse propensity that a probability is multiplied with; 0 ranks by probability.
        nearest: Nearest train texts by their tokens, and label centroids; None where they have no voice.
        learned: The train texts as each member sees them; empty where they have no voice.
        text_labels: Labels of the train texts that have a voice.
        forest: Label trees over the tokens; None where they have no voice.
    """

    kind: str
    embeddings: list[LabelEmbeddings]
    inverse: np.ndarray
    scale: float
    size: int
    fusion: FixedRule | TreeFusion | LogisticFusion = field(default_factory=FixedRule)
    tilt: float = 0.0
    nearest: NearestLabels | None = None
    learned: list[OwnedVectors] = field(default_factory=list)
    text_labels: Any = None
    forest: TokenForest | None = None

    @classmethod
    def fit(
        cls, model: Any, embeddings: list[LabelEmbeddings], train: Split, held: Split, whole: Split
    ) -> CombinedAnswers:
        """Fit the fusion on held-out rows; the nearest texts are then all texts, where that makes a difference."""
        settings = model.settings_
        inverse = Propensity().inverse(model.labels_.frequencies, model.data_["texts"])
        scale = settings.scale if settings.classifier_loss == "softmax" else 1.0
        answers = cls(settings.answers, embeddings, inverse.astype(np.float32), scale, settings.candidates)
        if answers.kind != "fused":
            return answers
        if settings.nearest:
            answers.nearest = NearestLabels(seed=model.seed, threads=model.threads, min_df=settings.min_df).fit(train)
            answers.forest = answers.nearest.learn_forest(train, settings.trees)
        answers._index_learned(model, train)
        if len(held) and settings.fusion != "fixed":
            answers._choose(model, held)
            if len(held) > _WORTH_A_REFIT * len(whole):
                if answers.nearest is not None:
                    answers.nearest.fit(whole)
                    answers.forest = answers.nearest.learn_forest(whole, settings.trees)
                answers._index_learned(model, whole)
        return answers

    def rank(
        self, model: Any, inputs: list[str] | Features, k: int, allowed: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k best allowed labels of each input."""
        size = len(inputs) if isinstance(inputs, list) else inputs.shape[0]
        if size <= _ROWS_AT_ONCE:
            return self._rank_some(model, inputs, k, allowed)
        starts = range(0, size, _ROWS_AT_ONCE)
        parts = [self._rank_some(model, inputs[start : start + _ROWS_AT_ONCE], k, allowed) for start in starts]
        return np.concatenate([ids for ids, _ in parts]), np.concatenate([scores for _, scores in parts])

    def _rank_some(self, model: Any, inputs: Any, k: int, allowed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        if self.kind == "fused":
            ids, columns = self._hear(model, inputs, k, allowed)
            with stage("fusion"):
                return _best(ids, self._fused(columns, self.tilt), k)
        found = []
        for member, embeddings in zip(model.members_, self.embeddings, strict=True):
            final = self._final(model, member, inputs)
            voice: Any = embeddings if self.kind == "encoder" else member
            queries = final[:, :-1] if self.kind == "encoder" else final
            with stage("labels"):
                found.append(voice.search(np.ascontiguousarray(queries), k, allowed, model.n_threads))
        if len(found) == 1:
            ids, scores = found[0]
            return _best(ids, scores, k)
        every = _distinct(np.concatenate([ids for ids, _ in found], axis=1))
        return _best(every, self._mean_score(model, inputs, every), k)

    def _mean_score(self, model: Any, inputs: Any, ids: np.ndarray) -> np.ndarray:
        total = np.zeros(ids.shape, np.float32)
        for member, embeddings in zip(model.members_, self.embeddings, strict=True):
            final = self._final(model, member, inputs)
            if self.kind == "encoder":
                total += embeddings.score(np.ascontiguousarray(final[:, :-1]), ids)
            else:
                total += member.score(final, ids)
        return total / np.float32(len(model.members_))

    @staticmethod
    def _final(model: Any, member: Any, inputs: Any) -> np.ndarray:
        with stage("tokens"):
            read = member.encoder.read(inputs)
        with stage("features"):
            return member.final(member.intermediate(read, model.n_threads))

    def _hear(
        self, model: Any, inputs: Any, k: int, allowed: np.ndarray | None = None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Candidates of each input (-1 where fewer), and what every voice says of each."""
        finals = [self._final(model, member, inputs) for member in model.members_]
        said = _Said()
        wanted = max(k, self.size)
        for i, (member, embeddings, final) in enumerate(zip(model.members_, self.embeddings, finals, strict=True)):
            features = np.ascontiguousarray(final[:, :-1])
            with stage("classifiers"):
                ids, scores = member.search(final, wanted, allowed, model.n_threads)
                said.labels(f"classifier_share_{i}", ids, softmax_rows(scores, 1.0))
            with stage("embeddings"):
                ids, scores = embeddings.search(features, wanted, allowed, model.n_threads)
                said.labels(f"similarity_share_{i}", ids, softmax_rows(scores, 1 / model.settings_.scale))
            if self.learned:
                with stage("learned texts"):
                    index = self.learned[i]
                    near = min(model.settings_.neighbours, index.n_labels)
                    texts, scores = index.search(features, near, model.n_threads)
                    said.texts(f"learned_{i}", texts, softmax_rows(scores, _TEXT_TEMPERATURE))
        voices = None if self.nearest is None else self.nearest.voices(inputs, k, allowed)
        if voices is not None:
            said.labels("centroids", voices.label_ids, voices.label_shares)
            said.texts("texts", voices.text_ids, voices.text_shares)
        with stage("candidates"):
            Y = self.text_labels if self.nearest is None else self.nearest.text_labels_
            ids, shares = said.candidates(Y, max(k, 2 * self.size), allowed, model.n_threads)
        if self.forest is not None and voices is not None:
            with stage("trees"):
                shares["trees"] = self.forest.probabilities(voices.features, ids, threads=model.n_threads)
        with stage("scores"):
            return ids, self._columns(model, finals, ids, shares)

    def _columns(
        self, model: Any, finals: list[np.ndarray], ids: np.ndarray, shares: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """What the fusion looks at, by name, each in the shape of the ids; everything, until one was fitted."""
        needed = set(self.fusion.names) if isinstance(self.fusion, LogisticFusion) else None

        def wanted(name: str) -> bool:
            return needed is None or name in needed

        columns = {"inverse_propensity": self.inverse[ids]}
        means = {"classifier": np.zeros(ids.shape, np.float32), "similarity": np.zeros(ids.shape, np.float32)}
        inside, each = ids >= 0, np.float32(1 / len(finals))
        for i, (member, embeddings, final) in enumerate(zip(model.members_, self.embeddings, finals, strict=True)):
            logits = member.score(final, ids)
            cosines = embeddings.score(np.ascontiguousarray(final[:, :-1]), ids)
            np.add(means["classifier"], each / np.float32(self.scale) * logits, out=means["classifier"], where=inside)
            np.add(means["similarity"], each * cosines, out=means["similarity"], where=inside)
            for name, scores in (("classifier", logits), ("similarity", cosines * np.float32(model.settings_.scale))):
                if wanted(f"log_{name}_{i}"):
                    columns[f"log_{name}_{i}"] = _log_softmax(scores)
        for name, share in shares.items():
            for floor in _FLOORS:
                if wanted(f"log_{name}_{floor}"):
                    columns[f"log_{name}_{floor}"] = np.log(share + np.float32(floor))
        if wanted("log_inverse_propensity"):
            columns["log_inverse_propensity"] = np.log(columns["inverse_propensity"])
        return columns | means

    def _fused(self, columns: dict[str, np.ndarray], tilt: float) -> np.ndarray:
        scores = self.fusion.score(columns)
        return scores * columns["inverse_propensity"] ** np.float32(tilt) if tilt else scores

    def _choose(self, model: Any, held: Split) -> None:
        """Fit the fusion on the candidates of held-out rows, then the tilt towards rare labels.

        What the tilt makes large is P@1 twice with PSP@1 and PSP@5: right, and right about rare labels, in equal parts.
        """
        ids, columns = self._hear(model, held.inputs, self.size)
        inside = ids >= 0
        rows, places = np.nonzero(inside)
        truth = np.asarray(held.Y[rows, ids[rows, places]]).ravel() > 0
        if not truth.any():
            logger.info("no held-out row has a true candidate: the fixed rule stays")
            return
        flat = {name: column[inside] for name, column in columns.items()}
        if model.settings_.fusion == "tree":
            self.fusion = TreeFusion.fit(flat, truth, model.seed)
            return
        logs = {name: column for name, column in flat.items() if name.startswith("log_")}
        self.fusion = LogisticFusion.fit(logs, truth, free=_FREE)

        def quality(tilt: float) -> float:
            best, _ = _best(ids, self._fused(columns, tilt), min(5, ids.shape[1]))
            report = evaluate(best, held.Y, ks=(1, best.shape[1]), inverse_propensity=self.inverse)
            return 2 * report["P@1"] + report["PSP@1"] + report[f"PSP@{best.shape[1]}"]

        self.tilt = max(_TILTS, key=quality)
        logger.info("fusion fitted on %d held-out rows, tilt %.1f", len(held), self.tilt)

    def _index_learned(self, model: Any, split: Split) -> None:
        """Index the texts as each member sees them, if they are to have a voice."""
        self.text_labels = split.Y
        if not model.settings_.learned_texts:
            return
        self.learned = []
        for member, embeddings in zip(model.members_, self.embeddings, strict=True):
            vectors, embeddings.texts = embeddings.texts, None
            if vectors is None or len(vectors) != len(split):
                vectors = self._final(model, member, split.inputs)[:, :-1]
            everyone, n = np.arange(len(vectors)), len(vectors)
            self.learned.append(OwnedVectors.build(vectors, everyone, n, seed=model.seed, threads=model.n_threads))

    def add(self, model: Any, fresh: FreshLabels) -> None:
        """Let every voice know new labels by their texts."""
        finals = [self._final(model, member, fresh.texts)[:, :-1] for member in model.members_]
        for features, embeddings in zip(finals, self.embeddings, strict=True):
            embeddings.add(np.asarray(fresh.means(np.ascontiguousarray(features))), fresh.rows)
        for features, index in zip(finals, self.learned, strict=False):
            index.add(features, index.n_labels + np.arange(len(features)))
        usual = np.full(len(fresh.rows), np.median(self.inverse), np.float32)  # how frequent they are is not known
        self.inverse = np.concatenate((self.inverse, usual))
        if self.nearest is not None:
            self.nearest.add(fresh)
        elif self.text_labels is not None:
            known, width = self.text_labels, len(self.inverse)
            wider = sparse.csr_matrix((known.data, known.indices, known.indptr), shape=(known.shape[0], width))
            self.text_labels = sparse.csr_matrix(sparse.vstack((wider, fresh.of_texts(width))))

    def write(self, folder: Path) -> None:
        """Write into an existing, empty folder."""
        about = {"kind": self.kind, "fusion": self.fusion.kind, "scale": self.scale, "size": self.size}
        about |= {"tilt": self.tilt, "members": len(self.embeddings), "learned": len(self.learned)}
        (folder / _ABOUT).write_text(json.dumps(about), encoding="utf-8")
        state = {f"fusion.{name}": part for name, part in self.fusion.state().items()}
        if self.text_labels is not None and self.nearest is None:
            state["text_labels"] = self.text_labels
        write_tensors(folder / _TENSORS, {"inverse": self.inverse, **state})
        for i, embeddings in enumerate(self.embeddings):
            (folder / f"embeddings-{i}").mkdir()
            embeddings.write(folder / f"embeddings-{i}")
        for i, index in enumerate(self.learned):
            (folder / f"learned-{i}").mkdir()
            index.write(folder / f"learned-{i}")
        if self.nearest is not None:
            self.nearest.save(folder / "nearest")
        if self.forest is not None:
            self.forest.write(folder)

    @classmethod
    def read(cls, folder: Path, labels: LabelSpace) -> CombinedAnswers:  # noqa: ARG003 (all kinds are read alike)
        """Open what `write` wrote."""
        from deepxc.systems.estimator import load

        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        tensors = read_tensors(folder / _TENSORS, mmap=False)
        state = {name.removeprefix("fusion."): part for name, part in tensors.items() if name.startswith("fusion.")}
        nearest: Any = load(folder / "nearest", verify=False) if (folder / "nearest").exists() else None
        return cls(
            about["kind"],
            [LabelEmbeddings.read(folder / f"embeddings-{i}") for i in range(about["members"])],
            tensors["inverse"],
            about["scale"],
            about["size"],
            open_fusion(about["fusion"], state),
            about["tilt"],
            nearest,
            [OwnedVectors.read_from(folder / f"learned-{i}", "cosine") for i in range(about["learned"])],
            tensors.get("text_labels"),
            TokenForest.read(folder),
        )


class _Said:
    """Collects which labels and texts each voice names, and with what share."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._labels: list[tuple[int, np.ndarray, np.ndarray]] = []
        self._texts: list[tuple[int, np.ndarray, np.ndarray]] = []

    def labels(self, name: str, ids: np.ndarray, shares: np.ndarray) -> None:
        """A voice that names labels."""
        self._labels.append((len(self._names), ids, shares))
        self._names.append(name)

    def texts(self, name: str, ids: np.ndarray, shares: np.ndarray) -> None:
        """A voice that names train texts; each gives its share to all of its labels."""
        self._texts.append((len(self._names), ids, shares))
        self._names.append(name)

    def candidates(
        self, Y: Any, size: int, allowed: np.ndarray | None, threads: int
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The labels that any voice names, at most `size`, and what each voice gives them."""
        from deepxc.predict.kernels_fusion import gather_candidates

        n = len(self._labels[0][1])
        ids = np.empty((n, size), np.int64)
        votes = np.empty((n, size, len(self._names)), np.float32)
        label_ids, label_shares, of_label = _side_by_side(self._labels, n)
        text_ids, text_shares, of_text = _side_by_side(self._texts, n)
        mask = np.empty(0, np.bool_) if allowed is None else allowed

        def gather(start: int, stop: int) -> None:
            rows = slice(start, stop)
            labels = label_ids[rows], label_shares[rows], of_label
            texts = text_ids[rows], text_shares[rows], of_text
            gather_candidates(*labels, *texts, Y.indptr, Y.indices, mask, ids[rows], votes[rows])

        over_rows(n, threads, gather)
        return ids, {name: votes[:, :, v] for v, name in enumerate(self._names)}


def _side_by_side(parts: list[tuple[int, np.ndarray, np.ndarray]], n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not parts:
        return np.empty((n, 0), np.int64), np.empty((n, 0), np.float32), np.empty(0, np.int64)
    ids = np.concatenate([part for _, part, _ in parts], axis=1).astype(np.int64, copy=False)
    shares = np.concatenate([part for _, _, part in parts], axis=1).astype(np.float32, copy=False)
    return ids, shares, np.repeat([voice for voice, _, _ in parts], [part.shape[1] for _, part, _ in parts])


def _log_softmax(scores: np.ndarray) -> np.ndarray:
    """Of each row; places with score -inf get 0, and count nothing."""
    real = np.isfinite(scores)
    best = np.where(real, scores, -np.inf).max(axis=1, keepdims=True)
    best[~np.isfinite(best)] = 0
    total = np.log(np.maximum((np.exp(scores - best) * real).sum(axis=1, keepdims=True), 1e-30))
    return np.where(real, scores - best - total, np.float32(0)).astype(np.float32)


def _distinct(ids: np.ndarray) -> np.ndarray:
    """Each row's ids once, ascending, with -1 in the places of those that repeat."""
    ids = np.sort(ids, axis=1)
    again = np.zeros(ids.shape, np.bool_)
    again[:, 1:] = ids[:, 1:] == ids[:, :-1]
    return np.where(again, -1, ids)


def _best(ids: np.ndarray, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k candidates of the highest score in each row, ties to the smaller id."""
    scores = np.where(ids >= 0, scores, -np.inf)
    order = np.lexsort((ids, -scores), axis=1)[:, :k]
    top = np.full((len(ids), k), -1, np.int64), np.full((len(ids), k), -np.inf, np.float32)
    top[0][:, : order.shape[1]] = np.take_along_axis(ids, order, 1)
    top[1][:, : order.shape[1]] = np.take_along_axis(scores, order, 1)
    return top

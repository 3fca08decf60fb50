"""MACH: an ensemble of small classifiers, each over buckets that a hash throws the labels into (Medini et al., 2019).

No learner knows the labels, only buckets; a label's score is the mean of its buckets' scores. With enough learners no
two labels share all their buckets. The output layers grow with the number of buckets, not of labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy import sparse

from deepxc.modules.classifiers.one_vs_all import OneVsAll
from deepxc.modules.encoders import open_encoder
from deepxc.modules.encoders.encoding import encode
from deepxc.modules.encoders.mach_mlp import MachMLP
from deepxc.modules.surrogates.hashing import LabelHashing, decode, decode_candidates
from deepxc.persist.tensors import read_tensors, write_tensors
from deepxc.predict.fusion import blend_with_neighbours
from deepxc.predict.stages import stage
from deepxc.search.restricted import SCORE_EACH
from deepxc.systems.astec_settings import batch_for
from deepxc.systems.estimator import XmcEstimator
from deepxc.systems.training_rows import FEW_TEXTS
from deepxc.training.batches import Batches
from deepxc.training.computing import on_threads
from deepxc.training.optimisers import Optimiser
from deepxc.training.pooled import PooledLearner
from deepxc.training.schedules import halving

if TYPE_CHECKING:
    from pathlib import Path

    from deepxc.data.dataset import Split
    from deepxc.modules.encoders.stored import StoredEncoder
    from deepxc.systems.inputs import Features
    from deepxc.systems.runs import TrainingRuns

_TENSORS = "mach.safetensors"
_ROWS_AT_ONCE = 1_024  # bounds the bucket scores that are held at once


@dataclass(frozen=True)
class MachSettings:
    """The settings of `Mach`; see its arguments."""

    learners: int
    buckets: int
    dim: int
    hidden: list
    min_df: int
    epochs: int
    rate: float
    batch: int
    dropout: float
    candidates: int


class Mach(XmcEstimator):
    """Plain MACH: hashed labels, one perceptron a hash, scores averaged.

    Every argument from `learners` on defaults to its preset's value.

    Args:
        preset: `paper`, or `fast` with fewer learners.
        seed: Seed of the hashes and of training.
        threads: Threads for training and for batches; None takes every core.
        learners: Hashes, each with a learner of its own.
        buckets: Buckets of a hash; 0 goes by rule.
        dim: Features before the output layer.
        hidden: Widths of the layers before them.
        min_df: Texts that a token must occur in.
        epochs: Epochs of each learner.
        rate: Learning rate.
        batch: Texts in a batch, fewer where there are few texts.
        dropout: Share of the features that a step blanks.
        candidates: Labels scored for each text, at least.
    """

    settings_type = MachSettings
    preset_file = "mach"
    settings_: MachSettings

    def __init__(
        self,
        preset: str = "fast",
        *,
        seed: int = 0,
        threads: int | None = None,
        learners: int | None = None,
        buckets: int | None = None,
        dim: int | None = None,
        hidden: list[int] | None = None,
        min_df: int | None = None,
        epochs: int | None = None,
        rate: float | None = None,
        batch: int | None = None,
        dropout: float | None = None,
        candidates: int | None = None,
    ) -> None:
        self._keep(locals())

    def _fit(self, split: Split, runs: TrainingRuns) -> None:
        self.encoders_: list[StoredEncoder] = []
        tables, biases, buckets = [], [], []
        with on_threads(self.n_threads):
            for i in range(self.settings_.learners):
                hashing = LabelHashing(self.settings_.buckets or None, repetition=i)
                encoder, classifier = self._learn(f"learner-{i}", split, hashing, self.seed + i, runs)
                self.encoders_.append(encoder)
                tables.append(classifier.vectors())
                biases.append(classifier.biases())
                buckets.append(hashing.buckets(len(split.labels), self.seed)[0])
        self.tables_, self.biases_, self.buckets_ = np.stack(tables), np.stack(biases), np.stack(buckets)

    def _learn(
        self, name: str, split: Split, hashing: LabelHashing, seed: int, runs: TrainingRuns
    ) -> tuple[MachMLP, OneVsAll]:
        settings = self.settings_
        torch.manual_seed(seed)
        min_df = 1 if len(split) < FEW_TEXTS else settings.min_df
        encoder = MachMLP(settings.dim, hidden=settings.hidden, tokens={"min_df": min_df}, seed=seed)
        inputs = encoder.learn(split)
        targets = hashing.targets(split, split.Y, self.seed)
        classifier = OneVsAll()
        classifier.start(targets.shape[1], encoder.dim, seed)
        learner = PooledLearner(
            encoder, torch.nn.Identity(), classifier, inputs, Y=targets, loss="logistic", dropout=settings.dropout
        )
        runs.train(
            name,
            learner,
            Batches(len(inputs), batch_for(len(inputs), settings.batch), seed),
            optimiser=Optimiser.of(learner, settings.rate),
            epochs=settings.epochs,
            schedule=halving(settings.epochs, max(1, (2 * settings.epochs) // 3)),
        )
        encoder.eval()
        return encoder, classifier

    def _rank(self, inputs: list[str] | Features, k: int, allowed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        size = len(inputs) if isinstance(inputs, list) else inputs.shape[0]
        starts = range(0, max(size, 1), _ROWS_AT_ONCE)
        parts = [self._rank_some(inputs[start : start + _ROWS_AT_ONCE], k, allowed) for start in starts]
        return np.concatenate([ids for ids, _ in parts]), np.concatenate([scores for _, scores in parts])

    def _rank_some(
        self, inputs: list[str] | Features, k: int, allowed: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        with stage("features"):
            scores = self._bucket_scores(inputs)
        n_labels, wanted = len(self.labels_), max(k, self.settings_.candidates)
        with stage("decode"):
            chosen = None if allowed is None else np.flatnonzero(allowed)
            if chosen is not None and len(chosen) <= SCORE_EACH:  # each is scored, so that none is missed
                ids = np.tile(chosen, (scores.shape[1], 1))
                best = decode_candidates(scores, self.buckets_, ids)
            else:
                if chosen is not None:
                    wanted = wanted * n_labels // len(chosen)
                ids, best = decode(scores, self.buckets_, min(n_labels, wanted), threads=self.n_threads)
        nothing = np.empty((len(ids), 0))
        no_texts = sparse.csr_matrix((0, n_labels), dtype=np.float32)
        return blend_with_neighbours(ids, best, nothing, nothing, no_texts, k=k, allowed=allowed)

    def _bucket_scores(self, inputs: list[str] | Features) -> np.ndarray:
        """Probabilities, learners x texts x buckets."""
        scores = []
        for encoder, table, bias in zip(self.encoders_, self.tables_, self.biases_, strict=True):
            features = encode(encoder, encoder.read(inputs), threads=self.n_threads)
            scores.append(1 / (1 + np.exp(-(features @ table.T + bias))))
        return np.stack(scores)

    def _write(self, folder: Path) -> None:
        write_tensors(folder / _TENSORS, {"tables": self.tables_, "biases": self.biases_, "buckets": self.buckets_})
        for i, encoder in enumerate(self.encoders_):
            encoder.write(folder / f"encoder-{i}")

    def _read(self, folder: Path) -> None:
        tensors = read_tensors(folder / _TENSORS)
        self.tables_, self.biases_, self.buckets_ = (tensors[name] for name in ("tables", "biases", "buckets"))
        self.encoders_ = [open_encoder(folder / f"encoder-{i}") for i in range(len(self.tables_))]

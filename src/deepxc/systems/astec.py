"""Astec: DeepXML's four modules for short texts (Dahiya et al., WSDM 2021, section 4).

The modules stand below in the paper's order. `paper` keeps its recipe; `fast` and `best` are ours: they let a good
start take the place of Module I, train token vectors and classifiers together against pools of labels, and let the
nearest train texts and the label centroids vote beside the classifiers.
"""

from __future__ import annotations

import logging
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepxc.modules.classifiers.one_vs_all import OneVsAll
from deepxc.modules.encoders.dense import DenseInputs
from deepxc.modules.encoders.encoding import encode
from deepxc.modules.encoders.token_bag import TokenBag
from deepxc.modules.shortlists.hybrid import Hybrid
from deepxc.modules.surrogates.label_clusters import LabelClusters
from deepxc.modules.transfers.fine_tune import FineTune
from deepxc.modules.transfers.residual import Residual, SpectralResidual
from deepxc.systems.assembly import Assembly
from deepxc.systems.astec_settings import AstecSettings, batch_for, epochs_for
from deepxc.systems.member import Member
from deepxc.systems.training_rows import FEW_TEXTS, unit_centroids, with_label_rows
from deepxc.systems.validation import precision_of
from deepxc.text.bag import BagOfTokens
from deepxc.training.batches import Batches
from deepxc.training.optimisers import Optimiser
from deepxc.training.pooled import AsGiven, PooledLearner
from deepxc.training.pools import PoolSampler
from deepxc.training.schedules import Schedule, halving, linear

if TYPE_CHECKING:
    from deepxc.data.dataset import Split
    from deepxc.modules.protocols import Inputs, Shortlister, Surrogate, Transfer
    from deepxc.systems.runs import TrainingRuns

logger = logging.getLogger(__name__)


class Astec(Assembly):
    """Astec, and other assemblies of the framework: any part may be replaced by one of your own.

    Every argument from `dim` on defaults to its preset's value.

    Args:
        preset: `fast` and `best` are ours, `paper` is the paper's recipe.
        seed: Seed of all that is random.
        threads: Threads for training and for batches; None takes every core.
        encoder: Feature architecture in place of the bag of token vectors.
        surrogate: Module I in place of label clusters; it is trained for `surrogate_epochs`.
        shortlister: Module II in place of the two ANN structures.
        transfer: Module III in place of the bounded residual block (or of training on, with `train_tokens`).
        device: Where training happens, `cpu` or `cuda`; None takes CUDA where there is one.
        dim: Length of token vectors.
        start: Where token vectors start: `random`, `projection`, `spectral`, or a file of word vectors.
        activation: `relu` or `none`, on the sum of token vectors.
        min_df: Texts that a token must occur in.
        ngrams: Shortest and longest character n-grams that are tokens beside the words; empty for none.
        ngram_min_df: Texts that an n-gram must occur in.
        label_rows: Let every label's text be one more train text, where labels have texts that are no train texts.
        surrogate_epochs: Epochs of Module I; 0 leaves it out.
        surrogate_rate: Learning rate of Module I.
        clusters: Clusters of Module I; 0 goes by rule.
        surrogate_dropout: Dropout of Module I.
        train_tokens: Token vectors train on in Module IV.
        bound: Largest spectral norm of the residual matrix; 0 leaves the block out.
        hard: Hard labels of a text, mined once by Module II; 0 leaves the mining out.
        random: Random labels: of a text's shortlist, or of a batch's pool.
        every_label: Train each text against all labels, without a pool.
        own_shortlists: A text's loss counts its own shortlist only, not the whole pool of its batch.
        loss: `softmax` or `logistic`.
        epochs: Epochs of Module IV; 0 goes by rule.
        patience: Epochs of Module IV without a better P@1 on held-out rows after which it ends; 0: never.
        rate: Learning rate of classifiers and residual block.
        bias_rate: Learning rate of the classifiers' biases; 0: as `rate`.
        token_rate: Learning rate of token vectors in Module IV.
        scale: Length of the centroids that classifiers start from; 0 starts them at random.
        batch: Texts in a batch, fewer where there are few texts.
        dropout: Dropout of Module IV.
        schedule: `halving` or `linear` learning-rate schedule.
        answers: `shortlist` scores Module II's shortlist (the paper), `fused` adds up several voices, `classifiers`
            ranks by the classifiers alone.
        temperature: Of the softmax over classifier scores, with `fused`.
        nearest_weight: What the nearest texts and centroids weigh with `fused`, before it is tuned.
        learned_texts: With `fused`, the nearest train texts in the learned space are one more voice.
        trees: With `fused`, so many label trees over the tokens are one more voice; 0 for none.
        validation: Share of the train rows held out to choose alpha, or the weights of the voices.
        members: Learners of the ensemble.
        reranker: Train a second learner to tell the first one's answers apart (with `answers=shortlist`).
    """

    settings_type = AstecSettings
    preset_file = "astec"
    settings_: AstecSettings
    encoder: Any
    surrogate: Surrogate | None
    shortlister: Shortlister | None
    transfer: Transfer | None

    def __init__(
        self,
        preset: str = "fast",
        *,
        seed: int = 0,
        threads: int | None = None,
        encoder: Any = None,
        surrogate: Surrogate | None = None,
        shortlister: Shortlister | None = None,
        transfer: Transfer | None = None,
        device: str | None = None,
        dim: int | None = None,
        start: str | None = None,
        activation: str | None = None,
        min_df: int | None = None,
        ngrams: list[int] | None = None,
        ngram_min_df: int | None = None,
        label_rows: bool | None = None,
        surrogate_epochs: int | None = None,
        surrogate_rate: float | None = None,
        clusters: int | None = None,
        surrogate_dropout: float | None = None,
        train_tokens: bool | None = None,
        bound: float | None = None,
        hard: int | None = None,
        random: int | None = None,
        every_label: bool | None = None,
        own_shortlists: bool | None = None,
        loss: str | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        rate: float | None = None,
        bias_rate: float | None = None,
        token_rate: float | None = None,
        scale: float | None = None,
        batch: int | None = None,
        dropout: float | None = None,
        schedule: str | None = None,
        answers: str | None = None,
        temperature: float | None = None,
        nearest_weight: float | None = None,
        learned_texts: bool | None = None,
        trees: int | None = None,
        validation: float | None = None,
        members: int | None = None,
        reranker: bool | None = None,
    ) -> None:
        self._keep(locals())

    def _learn(
        self, name: str, split: Split, held: Split, seed: int, runs: TrainingRuns, hard: np.ndarray | None = None
    ) -> tuple[Member, Shortlister | None]:
        """One learner, through the four modules; `hard` takes the place of what Module II would mine."""
        settings = self.settings_
        rows = with_label_rows(split) if settings.label_rows else split
        if hard is not None and len(rows) > len(hard):
            hard = np.pad(hard, ((0, len(rows) - len(hard)), (0, 0)), constant_values=-1)
        torch.manual_seed(seed)
        encoder = self._encoder(len(split), seed)
        inputs = encoder.learn(rows)
        encoder.to(self._device())
        self._teach(f"{name}-surrogate", encoder, inputs, rows, seed, runs)
        shortlister = None
        if hard is None and settings.hard:
            shortlister, hard = self._mine(encoder, inputs, rows, seed)
        block = self._attach(encoder, seed)
        classifier = self._classify(f"{name}-classifiers", encoder, block, (inputs, rows, held), hard, seed, runs)
        return Member.of(encoder, block, classifier, seed, self.n_threads), shortlister

    def _encoder(self, n_texts: int, seed: int) -> Any:
        if self.encoder is not None:
            return deepcopy(self.encoder)
        settings = self.settings_
        tokens: dict[str, Any] = {"min_df": settings.min_df}
        if settings.ngrams:
            tokens |= {"ngrams": tuple(settings.ngrams), "ngram_min_df": settings.ngram_min_df}
        if n_texts < FEW_TEXTS and settings.min_df > 1:
            logger.info("fewer than %d texts: every token is kept (min_df 1)", FEW_TEXTS)
            tokens |= {"min_df": 1, "ngram_min_df": 1}
        return TokenBag(
            settings.dim,
            start=settings.start,
            activation=settings.activation,
            tokens=tokens,
            seed=seed,
            threads=self.n_threads,
        )

    # Module I: an easier task teaches the features.
    def _teach(self, name: str, encoder: Any, inputs: Inputs, split: Split, seed: int, runs: TrainingRuns) -> None:
        settings = self.settings_
        if settings.surrogate_epochs == 0:
            return
        surrogate = self.surrogate or LabelClusters(settings.clusters or None, threads=self.n_threads)
        features: Any = getattr(inputs, "matrix", split.X)
        if features is None:  # the encoder reads no bags, but what clusters labels needs to know how texts are alike
            texts: Any = split.inputs
            features = BagOfTokens(min_df=1 if len(split) < FEW_TEXTS else settings.min_df).fit_transform(texts)
        targets = surrogate.targets(split, features, seed)
        if targets is None:
            return
        logger.info("Module I: %d surrogate labels for %d labels", targets.shape[1], len(split.labels))
        classifier = OneVsAll()
        classifier.start(targets.shape[1], encoder.dim, seed)
        block: torch.nn.Module = torch.nn.Identity()
        if settings.bound:
            block = SpectralResidual(encoder.dim, bound=settings.bound, dropout=settings.surrogate_dropout, seed=seed)
        dropout = settings.surrogate_dropout
        learner = PooledLearner(encoder, block, classifier, inputs, Y=targets, loss="logistic", dropout=dropout)
        learner.to(self._device())
        runs.train(
            name,
            learner,
            Batches(len(inputs), batch_for(len(inputs), settings.batch), seed),
            optimiser=Optimiser.of(learner, settings.surrogate_rate),
            epochs=settings.surrogate_epochs,
            schedule=self._schedule(settings.surrogate_epochs),
        )

    # Module II: the few labels that each text might seem to have, from features that now stand still.
    def _mine(self, encoder: Any, inputs: Inputs, split: Split, seed: int) -> tuple[Shortlister, np.ndarray]:
        features = encode(encoder, inputs, threads=self.n_threads)
        shortlister = deepcopy(self.shortlister) or Hybrid(random=0)
        shortlister.fit(features, split.Y, seed, self.n_threads)
        k = min(self.settings_.hard, len(split.labels))
        return shortlister, shortlister.negatives(features, split.Y, k, self.n_threads)

    # Module III: from intermediate to final features.
    def _attach(self, encoder: Any, seed: int) -> torch.nn.Module:
        settings = self.settings_
        if self.transfer is not None:
            return self.transfer.attach(encoder, seed)
        if settings.train_tokens:
            return FineTune(block=settings.bound > 0, bound=settings.bound or 1.0, dropout=settings.dropout).attach(
                encoder, seed
            )
        return Residual(bound=settings.bound or 1.0, dropout=settings.dropout).attach(encoder, seed)

    # Module IV: one vector a label, learned with the final features on shortlisted labels.
    def _classify(
        self,
        name: str,
        encoder: Any,
        block: torch.nn.Module,
        data: tuple[Inputs, Split, Split],
        hard: np.ndarray | None,
        seed: int,
        runs: TrainingRuns,
    ) -> OneVsAll:
        settings, (inputs, split, held) = self.settings_, data
        n_labels = len(split.labels)
        classifier = OneVsAll()
        moves = settings.train_tokens or any(part.requires_grad for part in encoder.parameters())
        features: Any = None if moves and not settings.scale else encode(encoder, inputs, threads=self.n_threads)
        vectors = None
        if settings.scale:
            vectors = unit_centroids(features, split.Y, self.n_threads) * np.float32(settings.scale)
        classifier.start(n_labels, encoder.dim, seed, vectors)
        sampler = None
        if not settings.every_label:
            sampler = PoolSampler(split.Y, uniform=min(settings.random, 4 * n_labels))
        learner = PooledLearner(
            encoder if moves else AsGiven(self._device()),
            block,
            classifier,
            inputs if moves else DenseInputs(features),
            sampler=sampler,
            Y=split.Y,
            hard=hard,
            loss=settings.loss,
            dropout=settings.dropout if moves else 0.0,
            own_shortlists=settings.own_shortlists and hard is not None,
        )
        learner.to(self._device())
        epochs = epochs_for(len(inputs), settings.epochs)
        runs.train(
            name,
            learner,
            Batches(len(inputs), batch_for(len(inputs), settings.batch), seed),
            optimiser=Optimiser(
                learner.groups(settings.rate, bias_rate=settings.bias_rate, encoder_rate=settings.token_rate)
            ),
            epochs=epochs,
            schedule=self._schedule(epochs),
            validate=precision_of(encoder, block, classifier, held, self.n_threads) if settings.patience else None,
            patience=settings.patience,
        )
        return classifier

    def _schedule(self, epochs: int) -> Schedule:
        if self.settings_.schedule == "linear":
            return linear(warm_up=0.02, floor=0.02)
        return halving(epochs, max(1, (2 * epochs) // 3))

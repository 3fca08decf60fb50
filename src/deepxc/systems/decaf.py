"""DECAF: label text inside the classifiers (Mittal et al., WSDM 2021, section 3).

The modules stand below in the paper's order. `paper` keeps its recipe; `fast` and `best` are ours: a good start takes
the place of Modules I and II, token vectors and classifiers learn together against pools of labels, and the nearest
train texts and the label centroids vote beside the classifiers.
"""

from __future__ import annotations

import logging
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from deepxc.labels.weighted_sums import unit_rows
from deepxc.modules.classifiers.cluster_text import ClusterText
from deepxc.modules.classifiers.label_text import LabelText
from deepxc.modules.encoders.encoding import encode
from deepxc.modules.encoders.token_bag import TokenBag
from deepxc.modules.shortlists.centroids import Centroids
from deepxc.modules.shortlists.cluster_beam import ClusterBeam
from deepxc.modules.shortlists.label_tree import TreeBeam
from deepxc.modules.shortlists.row_blocks import ROWS
from deepxc.modules.surrogates.binary import ones, renumbered
from deepxc.modules.surrogates.label_clusters import Clustering, LabelClusters
from deepxc.modules.surrogates.sizes import surrogate_size
from deepxc.modules.transfers.embedding_block import EmbeddingBlock
from deepxc.modules.transfers.parameters import set_trained
from deepxc.systems.assembly import Assembly
from deepxc.systems.astec_settings import batch_for, epochs_for
from deepxc.systems.decaf_settings import LABELS_EACH, LARGEST_FANOUT, DecafSettings
from deepxc.systems.label_texts import TextsAndLabels, check_label_texts, read_with_labels
from deepxc.systems.member import Member, Reading
from deepxc.systems.shortlist_answers import ShortlistAnswers
from deepxc.systems.training_rows import FEW_TEXTS, listed_positives, unit_centroids
from deepxc.systems.validation import precision_of
from deepxc.training.batches import Batches
from deepxc.training.optimisers import Group, Optimiser
from deepxc.training.pooled import PooledLearner
from deepxc.training.pools import PoolSampler
from deepxc.training.schedules import Schedule, halving, linear

if TYPE_CHECKING:
    from scipy import sparse

    from deepxc.data.dataset import Split
    from deepxc.modules.protocols import Shortlister
    from deepxc.systems.runs import TrainingRuns

logger = logging.getLogger(__name__)

_BEAM = 100  # clusters of a beam in the paper


class Shortlisted(NamedTuple):
    """What Module II leaves: the shortlister, how it reads texts, and the shortlist of each train row."""

    shortlister: Shortlister
    reading: Reading
    candidates: np.ndarray


class Decaf(Assembly):
    """DECAF, for labels that have texts.

    Every argument from `dim` on defaults to its preset's value. The paper's ablations are presets of one line each:
    `fft`, `8k`, `no_init`, `text_only`, `refinement_only`, `lite`, `hnsw` and `tree`.

    Args:
        preset: `fast` and `best` are ours, `paper` is the paper's recipe.
        seed: Seed of all that is random.
        threads: Threads for training and for batches; None takes every core.
        shortlister: Module II in place of the cluster beam.
        device: Where training happens, `cpu` or `cuda`; None takes CUDA where there is one.
        dim: Length of token vectors.
        start: Where token vectors start: `kaiming`, `random`, `projection`, `spectral`, or a file of word vectors.
        min_df: Texts that a token must occur in.
        ngrams: Shortest and longest character n-grams that are tokens beside the words; empty for none.
        ngram_min_df: Texts that an n-gram must occur in.
        label_rows: Let every label's text be one more train text, where labels have texts that are no train texts.
        document_rows: Do so where labels are documents like the texts, too.
        blocks: Embedding blocks over the sums of token vectors; without them the sums are the embeddings.
        parts: What a classifier is made of: `both` text and refinement, or one of them.
        surrogate_epochs: Epochs of Module I; 0 leaves it out.
        surrogate_rate: Learning rate of Module I.
        surrogate_dropout: Dropout of Module I.
        clusters: Clusters of labels; 0 goes by rule.
        shortlist: `clusters` for a beam over label clusters, `nearest` centroids in a graph, a label `tree`; `none`
            trains against pools and searches the classifiers themselves.
        shortlist_epochs: Epochs of Module II.
        shortlist_rate: Learning rate of Module II.
        beam: Clusters that are looked into; 0: as few as reach `recall` on the train rows.
        recall: That share of the train rows' labels.
        lite: Token vectors stay as Module I left them, and are shared by the ensemble.
        refinement: Where refinements start: at the label's `text`, at `random`, or where the classifiers point to the
            label's `centroids`.
        text_share: With `centroids`, what a label's text weighs beside the centroid of its texts.
        scale: What classifiers are multiplied with, and the length of those that start at centroids.
        missed: A text's labels that its shortlist misses are trained all the same.
        random: Random labels of a batch's pool, without shortlists.
        loss: `softmax`, `counts` or `logistic`; see `PooledLearner`.
        epochs: Epochs of Module IV; 0 goes by rule.
        patience: Epochs of Module IV without a better P@1 on held-out rows after which it ends; 0: never.
        rate: Learning rate of refinements, blocks and gates.
        bias_rate: Learning rate of the classifiers' biases; 0: as `rate`.
        token_rate: Learning rate of token vectors in Module IV; 0: as `rate`.
        batch: Texts in a batch, fewer where there are few texts.
        dropout: Dropout of Modules II and IV.
        schedule: `halving` or `linear` learning-rate schedule.
        answers: `product` of the sigmoids of shortlister and classifier (the paper), `fused` adds up several voices,
            `classifiers` ranks by the classifiers alone.
        temperature: Of the softmax over classifier scores, with `fused`.
        nearest_weight: What the nearest texts and centroids weigh with `fused`, before it is tuned.
        told_texts: With `fused`, the labels whose texts are nearest are one more voice.
        learned_texts: With `fused`, the nearest train texts in the learned space are one more voice.
        trees: With `fused`, so many label trees over the tokens are one more voice; 0 for none.
        validation: Share of the train rows held out to choose the weights of the voices.
        members: Learners of the ensemble; they share Module I.
    """

    settings_type = DecafSettings
    preset_file = "decaf"
    settings_: DecafSettings
    shortlister: Shortlister | None

    def __init__(
        self,
        preset: str = "fast",
        *,
        seed: int = 0,
        threads: int | None = None,
        shortlister: Shortlister | None = None,
        device: str | None = None,
        dim: int | None = None,
        start: str | None = None,
        min_df: int | None = None,
        ngrams: list[int] | None = None,
        ngram_min_df: int | None = None,
        label_rows: bool | None = None,
        document_rows: bool | None = None,
        blocks: bool | None = None,
        parts: str | None = None,
        surrogate_epochs: int | None = None,
        surrogate_rate: float | None = None,
        surrogate_dropout: float | None = None,
        clusters: int | None = None,
        shortlist: str | None = None,
        shortlist_epochs: int | None = None,
        shortlist_rate: float | None = None,
        beam: int | None = None,
        recall: float | None = None,
        lite: bool | None = None,
        refinement: str | None = None,
        text_share: float | None = None,
        scale: float | None = None,
        missed: bool | None = None,
        random: int | None = None,
        loss: str | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        rate: float | None = None,
        bias_rate: float | None = None,
        token_rate: float | None = None,
        batch: int | None = None,
        dropout: float | None = None,
        schedule: str | None = None,
        answers: str | None = None,
        temperature: float | None = None,
        nearest_weight: float | None = None,
        told_texts: bool | None = None,
        learned_texts: bool | None = None,
        trees: int | None = None,
        validation: float | None = None,
        members: int | None = None,
    ) -> None:
        self._keep(locals())

    def _fit(self, split: Split, runs: TrainingRuns) -> None:
        check_label_texts(split)
        super()._fit(split, runs)

    def _learn_all(self, train: Split, held: Split, runs: TrainingRuns) -> list[tuple[Member, Any]]:
        """The members, after a Module I that all of them start from."""
        torch.manual_seed(self.seed)
        encoder = self._encoder(len(train))
        data = read_with_labels(
            encoder, train, label_rows=self.settings_.label_rows, documents=self.settings_.document_rows
        )
        encoder.to(self._device())
        self._teach(encoder, data, runs)
        return [
            self._learn_one(f"member-{i}", encoder, data, held, self.seed + i, runs)
            for i in range(self.settings_.members)
        ]

    def _learn_one(
        self, name: str, taught: TokenBag, data: TextsAndLabels, held: Split, seed: int, runs: TrainingRuns
    ) -> tuple[Member, Shortlisted | None]:
        """Modules II to IV on token vectors of its own, or on those that all share."""
        torch.manual_seed(seed)
        encoder = taught if self.settings_.lite else deepcopy(taught)
        set_trained(encoder, trained=not self.settings_.lite)
        shortlisted = None if self.settings_.shortlist == "none" else self._shortlist(name, encoder, data, seed, runs)
        block, classifier = self._begin(encoder, data, seed)
        self._classify(name, encoder, block, classifier, data, held, shortlisted, seed, runs)
        if shortlisted is not None:
            shortlisted = shortlisted._replace(candidates=np.empty((0, 0), np.int32))
        return Member.of(encoder, block, classifier, seed, self.n_threads), shortlisted

    def _encoder(self, n_texts: int) -> TokenBag:
        settings = self.settings_
        few = n_texts < FEW_TEXTS and settings.min_df > 1
        if few:
            logger.info("fewer than %d texts: every token is kept (min_df 1)", FEW_TEXTS)
        tokens: dict[str, Any] = {"min_df": 1 if few else settings.min_df}
        if settings.ngrams:
            tokens |= {"ngrams": tuple(settings.ngrams), "ngram_min_df": 1 if few else settings.ngram_min_df}
        return TokenBag(
            settings.dim,
            start=settings.start,
            activation="none",
            tokens=tokens,
            seed=self.seed,
            threads=self.n_threads,
        )

    # Module I: token vectors and both embedding blocks learn which label clusters a text has; the classifiers of the
    # clusters are held to what the clusters' label texts say.
    def _teach(self, encoder: TokenBag, data: TextsAndLabels, runs: TrainingRuns) -> None:
        settings = self.settings_
        if settings.surrogate_epochs == 0:
            return
        clusters, count = self._clusters(data, data.inputs.matrix, data.labels.matrix, self.seed)
        block = self._block(settings.surrogate_dropout, self.seed, rectified=False)
        classifier = LabelText(encoder, data.cluster_texts(clusters, count), block, parts="text", bias=False)
        classifier.start(count, encoder.dim, self.seed)
        block = self._block(settings.surrogate_dropout, self.seed, rectified=True)
        targets = renumbered(ones(data.Y), clusters, count)
        learner = PooledLearner(encoder, block, classifier, data.inputs, Y=targets, loss="logistic")
        self._run("surrogate", learner, settings.surrogate_epochs, settings.surrogate_rate, self.seed, runs)

    # Module II: clusters anew, by the learned token vectors; their classifiers get refinements of their own, and all
    # trains on. Then the shortlister stands still, and with it how it reads texts.
    def _shortlist(
        self, name: str, encoder: TokenBag, data: TextsAndLabels, seed: int, runs: TrainingRuns
    ) -> Shortlisted:
        settings = self.settings_
        features, label_features = (
            encode(encoder, part, threads=self.n_threads) for part in (data.inputs, data.labels)
        )
        clusters, count = self._clusters(data, features, label_features, seed)
        own = self._block(settings.dropout, seed, rectified=False)
        classifier = ClusterText(encoder, data.labels, own, clusters, count, parts=settings.parts)
        classifier.start(count, encoder.dim, seed)
        block = self._block(settings.dropout, seed, rectified=True)
        targets = renumbered(ones(data.Y), clusters, count)
        learner = PooledLearner(encoder, block, classifier, data.inputs, Y=targets, loss="logistic")
        self._run(f"{name}-shortlister", learner, settings.shortlist_epochs, settings.shortlist_rate, seed, runs)
        reading = Reading(encoder if settings.lite else deepcopy(encoder), deepcopy(block))
        reading.freeze()
        seen = reading.final(reading.intermediate(data.inputs, self.n_threads))[:, :-1]
        shortlister = self._fitted(seen, data.Y, Clustering(clusters, count), classifier, seed)
        candidates = [
            shortlister.shortlist(seen[start : start + ROWS], shortlister.size, self.n_threads)[0].astype(np.int32)
            for start in range(0, len(seen), ROWS)
        ]
        return Shortlisted(shortlister, reading, np.concatenate(candidates))

    def _fitted(
        self, seen: np.ndarray, Y: sparse.csr_matrix, found: Clustering, classifier: ClusterText, seed: int
    ) -> Any:
        """The shortlister that the settings name, with the beam that holds enough of the train rows' labels."""
        settings = self.settings_
        if settings.shortlist == "clusters" and self.shortlister is None:
            beam = ClusterBeam(beam=settings.beam, recall=settings.recall)
            beam.take_clusters(found.clusters, found.count)
            beam.take_classifiers(classifier.vectors(), classifier.biases(), seed=seed, threads=self.n_threads)
            beam.choose_beam(seen, Y, threads=self.n_threads)
            return beam
        shortlister: Any = deepcopy(self.shortlister)
        if shortlister is None:
            shortlister = Centroids(index="graph") if settings.shortlist == "nearest" else TreeBeam()
        shortlister.fit(seen, Y, seed, self.n_threads)
        if not hasattr(shortlister, "size"):
            # As many labels as a beam of the paper's length holds, so that shortlists are compared at one length.
            shortlister.size = min(_BEAM * max(1, round(Y.shape[1] / found.count)), Y.shape[1])
        return shortlister

    # Module III: fresh blocks, gates half open, refinements at the label texts.
    def _begin(self, encoder: TokenBag, data: TextsAndLabels, seed: int) -> tuple[torch.nn.Module, LabelText]:
        settings = self.settings_
        block = self._block(settings.dropout, seed, rectified=True)
        own = self._block(settings.dropout, seed, rectified=False)
        start = "random" if settings.refinement == "random" else "text"
        classifier = LabelText(encoder, data.labels, own, parts=settings.parts, start=start, scale=settings.scale)
        classifier.to(self._device())
        vectors = None
        if settings.refinement == "centroids" and settings.parts != "text":
            vectors = self._centroids(encoder, data) * np.float32(settings.scale)
        classifier.start(data.Y.shape[1], encoder.dim, seed, vectors)
        return block, classifier

    # Module IV: classifiers, blocks and token vectors learn on the shortlists.
    def _classify(
        self,
        name: str,
        encoder: TokenBag,
        block: torch.nn.Module,
        classifier: LabelText,
        data: TextsAndLabels,
        held: Split,
        shortlisted: Shortlisted | None,
        seed: int,
        runs: TrainingRuns,
    ) -> None:
        settings = self.settings_
        Y, hard = data.Y, None
        if shortlisted is not None:
            hard = shortlisted.candidates
            Y = Y if settings.missed else listed_positives(Y, hard)
        learner = PooledLearner(
            encoder,
            block,
            classifier,
            data.inputs,
            sampler=PoolSampler(Y, uniform=min(settings.random, 4 * Y.shape[1])),
            hard=hard,
            loss=settings.loss,
            dropout=0.0 if settings.blocks else settings.dropout,
            own=data.own if hard is None else None,
            own_shortlists=hard is not None,
        )
        validate = precision_of(encoder, block, classifier, held, self.n_threads) if settings.patience else None
        epochs = epochs_for(len(data.inputs), settings.epochs)
        self._run(f"{name}-classifiers", learner, epochs, settings.rate, seed, runs, validate)

    def _answer(self, found: list[Any], train: Split, held: Split, whole: Split, runs: TrainingRuns) -> Any:
        if self.settings_.answers == "product":
            return ShortlistAnswers.of_products([part.shortlister for part in found], [part.reading for part in found])
        return super()._answer(found, train, held, whole, runs)

    def _kind_of_answers(self) -> Any:
        return ShortlistAnswers if self.settings_.answers == "product" else super()._kind_of_answers()

    def _block(self, dropout: float, seed: int, *, rectified: bool) -> torch.nn.Module:
        if not self.settings_.blocks:
            return torch.nn.Identity()
        block = EmbeddingBlock(self.settings_.dim, rectified=rectified, dropout=dropout, seed=seed)
        return block.to(self._device())

    def _clusters(self, data: TextsAndLabels, features: Any, label_features: Any, seed: int) -> Clustering:
        """Balanced clusters of label centroids; a label without train texts stands where its text is."""
        n_labels = data.Y.shape[1]
        count = self.settings_.clusters or surrogate_size(n_labels, labels_each=LABELS_EACH, largest=LARGEST_FANOUT)
        return LabelClusters(count, walk=False, threads=self.n_threads).cluster(data.Y, features, seed, label_features)

    def _centroids(self, encoder: TokenBag, data: TextsAndLabels) -> np.ndarray:
        """Unit label centroids, drawn towards the labels' texts."""
        centroids = unit_centroids(encode(encoder, data.inputs, threads=self.n_threads), data.Y, self.n_threads)
        if self.settings_.text_share:
            texts = encode(encoder, data.labels, threads=self.n_threads)
            unit_rows(texts, self.n_threads)
            centroids = centroids + np.float32(self.settings_.text_share) * texts
            unit_rows(centroids, self.n_threads)
        return centroids

    def _run(
        self,
        name: str,
        learner: PooledLearner,
        epochs: int,
        rate: float,
        seed: int,
        runs: TrainingRuns,
        validate: Any = None,
    ) -> None:
        settings = self.settings_
        learner.to(self._device())
        runs.train(
            name,
            learner,
            Batches(len(learner.inputs), batch_for(len(learner.inputs), settings.batch), seed),
            optimiser=Optimiser(self._groups(learner, rate)),
            epochs=epochs,
            schedule=self._schedule(epochs),
            validate=validate,
            patience=settings.patience,
        )

    def _groups(self, learner: PooledLearner, rate: float) -> list[Group]:
        """The rate is that of classifiers: what is multiplied to make them moves by as much less."""
        scale: Any = getattr(learner.classifier, "scale", 1.0)
        settings = self.settings_
        return learner.groups(rate / scale, bias_rate=settings.bias_rate, encoder_rate=settings.token_rate)

    def _schedule(self, epochs: int) -> Schedule:
        if self.settings_.schedule == "linear":
            return linear(warm_up=0.02, floor=0.02)
        every = max(1, epochs // 2)
        return halving(epochs, every, shortest=every)

"""DEXA: deep encoders with auxiliary parameters (Dahiya et al., KDD 2023, section 4).

The parts stand below in the paper's order: encoder training (Module I), classifier training (Module II), inference.
The preset `paper` keeps its recipe, and `ngame`, `dpr` and `ance` are what it is compared with. `fast` and `best` are
ours: encoder and classifiers train by a softmax over pools of labels, and further voices answer beside them.
"""

from __future__ import annotations

import logging
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepxc.modules.auxiliary import AuxiliaryVectors, LabelGroups, group_labels, semantic_gaps
from deepxc.modules.classifiers.one_vs_all import OneVsAll
from deepxc.modules.encoders.chosen_rows import ChosenRows
from deepxc.modules.encoders.dense import DenseInputs
from deepxc.modules.encoders.embedding_cache import encode_cached
from deepxc.modules.encoders.encoding import encode
from deepxc.modules.transfers.parameters import set_trained, trains_at_all
from deepxc.modules.transfers.unit_norm import UnitNorm, to_unit
from deepxc.systems.assembly import Assembly
from deepxc.systems.astec_settings import batch_for
from deepxc.systems.combined_answers import CombinedAnswers
from deepxc.systems.dexa_settings import DexaSettings, encoder_groups
from deepxc.systems.label_embeddings import LabelEmbeddings, unit_rows_of
from deepxc.systems.member import Member
from deepxc.systems.texts_and_labels import (
    label_part,
    labels_say_something,
    taught_rows,
    text_part,
    with_labels_behind,
)
from deepxc.systems.training_rows import unit_centroids
from deepxc.training.batches import Batches
from deepxc.training.memory_bank import MemoryBank
from deepxc.training.optimisers import Group, Optimiser
from deepxc.training.pooled import AsGiven, PooledLearner
from deepxc.training.pools import PoolSampler
from deepxc.training.refreshing import RefreshedNegatives, RegroupedLabels
from deepxc.training.schedules import linear
from deepxc.training.siamese import SiameseLearner, TripletLearner

if TYPE_CHECKING:
    from scipy import sparse

    from deepxc.data.dataset import Split
    from deepxc.modules.protocols import Inputs
    from deepxc.systems.runs import TrainingRuns
    from deepxc.training.loop import Callback

logger = logging.getLogger(__name__)

_HARD, _FLOOR = 10, 0.02  # refreshed negatives of a text; what is left of the learning rate at the end


class Dexa(Assembly):
    """DEXA, and what it is compared with: any encoder of texts, trained with auxiliary vectors for labels or without.

    Every argument from `transformer` on defaults to its preset's value.

    Args:
        preset: `fast` and `best` (ours), `paper`; `ngame` (no auxiliary vectors), `siamese` (encoder only), `dpr` and
            `ance` are what the paper compares itself with.
        seed: Seed of all that is random.
        threads: Threads for training and for batches; None takes every core.
        encoder: Encoder in place of the one that the settings describe.
        device: Where training happens, `cpu` or `cuda`; None takes CUDA where there is one.
        cache: Folder for what transformers make of train texts, so that none is encoded twice.
        transformer: Folder or hub name of a pretrained transformer; empty for a bag of token vectors.
        length: Pieces of a text that the transformer reads.
        dim: Length of token vectors, of the bag.
        start: Where token vectors start: `random`, `projection`, `spectral`, or a file of word vectors.
        min_df: Texts that a token must occur in.
        ngrams: Shortest and longest character n-grams that are tokens beside the words; empty for none.
        ngram_min_df: Texts that an n-gram must occur in.
        aux_vectors: Clusters of labels that share an auxiliary vector; 0 trains without, -1 goes by rule.
        own_vector_from: Train texts from which a label has an auxiliary vector of its own; 0 for none.
        cluster_by: Labels are clustered by what the untrained encoder makes of `label_text`, or by their `centroids`.
        clusters: `balanced` (hierarchical 2-means) or `plain` k-means.
        regroup_every: Epochs after which labels are clustered anew; 0 keeps the first clusters.
        aux_start: Auxiliary vectors start at `random`, or at the mean `gap` between centroids and label texts.
        encoder_loss: `triplet` or `in_batch` against the positives sampled for a batch, or `softmax` over a pool.
        margin: Of the encoder's triplets.
        hardest: Negatives of a text that count in them.
        negatives: `in_batch` ones only, or `refreshed` ones too, looked up by the present encoder.
        refresh_every: Epochs for which refreshed negatives serve.
        random: Random labels of a batch's pool, with `encoder_loss=softmax`.
        scale: What cosines are multiplied with in a softmax.
        encoder_epochs: Epochs of Module I; 0 leaves it out.
        encoder_batch: Texts of its batches, fewer where there are few texts.
        encoder_rate: Learning rate of the encoder's layers.
        encoder_token_rate: Learning rate of its token vectors.
        aux_rate: Learning rate of the auxiliary vectors.
        encoder_decay: Weight decay of the encoder's matrices.
        encoder_dropout: Share of the texts' features that a step of Module I blanks.
        batch_clusters_from: Epoch (from 0) whose batches are the first to be made of clusters of texts; 0 for never.
        batch_clusters_every: Epochs for which a clustering of texts serves.
        batch_cluster: Texts of a cluster at first.
        label_rows: Classifiers learn from every label's text as one more text, unless labels are documents.
        centroid_weight: What the label's centroid weighs beside its embedding where its classifier starts.
        classifier_loss: `triplet` on unit vectors, or `softmax` over a pool.
        classifier_margin: Of the classifiers' triplets.
        classifier_cluster: Texts of a cluster of the classifiers' batches; 0 for shuffled batches.
        classifier_random: Random labels of a batch's pool, with `classifier_loss=softmax`.
        epochs: Epochs of Module II; 0 leaves it out.
        batch: Texts of its batches, fewer where there are few texts.
        rate: Learning rate of the classifiers.
        bias_rate: Learning rate of their biases, with `classifier_loss=softmax`.
        token_rate: Learning rate of the encoder in Module II, with `joint`.
        dropout: Share of the texts' features that a step of Module II blanks.
        joint: The encoder trains on in Module II.
        answers: `fused`, or `encoder` or `classifiers` alone.
        fusion: `fixed` rule, regression `tree`, or `logistic` regression; the latter two fitted on held-out rows.
        nearest: Nearest train texts by their tokens, and label centroids, have a voice.
        learned_texts: Nearest train texts by the trained encoder have a voice.
        trees: With `nearest`, so many label trees over the tokens have a voice; 0 for none.
        neighbours: How many of these.
        candidates: Labels that each voice names.
        validation: Share of the train rows held out to fit the fusion.
        members: Learners of the ensemble.
        beside: Folder or hub name of a transformer that is one learner more, trained by the preset `beside`.
        beside_epochs: Its epochs of Module I; 0 takes it as it is.
    """

    settings_type = DexaSettings
    preset_file = "dexa"
    settings_: DexaSettings
    encoder: Any
    cache: str | None

    def __init__(
        self,
        preset: str = "fast",
        *,
        seed: int = 0,
        threads: int | None = None,
        encoder: Any = None,
        device: str | None = None,
        cache: str | None = None,
        transformer: str | None = None,
        length: int | None = None,
        dim: int | None = None,
        start: str | None = None,
        min_df: int | None = None,
        ngrams: list[int] | None = None,
        ngram_min_df: int | None = None,
        aux_vectors: int | None = None,
        own_vector_from: int | None = None,
        cluster_by: str | None = None,
        clusters: str | None = None,
        regroup_every: int | None = None,
        aux_start: str | None = None,
        encoder_loss: str | None = None,
        margin: float | None = None,
        hardest: int | None = None,
        negatives: str | None = None,
        refresh_every: int | None = None,
        random: int | None = None,
        scale: float | None = None,
        encoder_epochs: int | None = None,
        encoder_batch: int | None = None,
        encoder_rate: float | None = None,
        encoder_token_rate: float | None = None,
        aux_rate: float | None = None,
        encoder_decay: float | None = None,
        encoder_dropout: float | None = None,
        batch_clusters_from: int | None = None,
        batch_clusters_every: int | None = None,
        batch_cluster: int | None = None,
        label_rows: bool | None = None,
        centroid_weight: float | None = None,
        classifier_loss: str | None = None,
        classifier_margin: float | None = None,
        classifier_cluster: int | None = None,
        classifier_random: int | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        bias_rate: float | None = None,
        token_rate: float | None = None,
        dropout: float | None = None,
        joint: bool | None = None,
        answers: str | None = None,
        fusion: str | None = None,
        nearest: bool | None = None,
        learned_texts: bool | None = None,
        trees: int | None = None,
        neighbours: int | None = None,
        candidates: int | None = None,
        validation: float | None = None,
        members: int | None = None,
        beside: str | None = None,
        beside_epochs: int | None = None,
    ) -> None:
        self._keep(locals())

    def _fit(self, split: Split, runs: TrainingRuns) -> None:
        super()._fit(split.take(np.flatnonzero(np.diff(split.Y.indptr))), runs)  # texts without labels teach nothing

    def _n_members(self) -> int:
        return self.settings_.members + bool(self.settings_.beside)

    def _learn(
        self,
        name: str,
        split: Split,
        held: Split,
        seed: int,
        runs: TrainingRuns,
        hard: np.ndarray | None = None,  # noqa: ARG002 (this system has no re-ranker)
    ) -> tuple[Member, LabelEmbeddings]:
        """One learner and its label embeddings; after the members comes the one beside them."""
        settings = self.settings_
        if settings.beside and int(name.rpartition("-")[2]) >= settings.members:
            other = copy(self)
            other.encoder, other.settings_ = None, settings.of_the_one_beside()
            return other._learn(name, split, held, seed, runs)  # noqa: SLF001
        torch.manual_seed(seed)
        encoder: Any = deepcopy(self.encoder) or settings.make_encoder(split, seed, self.n_threads)
        inputs = encoder.learn(with_labels_behind(split))
        encoder.to(self._device())
        auxiliary = self._auxiliary_vectors(encoder, inputs, split, seed)
        self._train_encoder(f"{name}-encoder", encoder, inputs, split, auxiliary, seed, runs)
        classifier = self._train_classifiers(f"{name}-classifiers", encoder, inputs, split, auxiliary, seed, runs)
        member = Member.of(encoder, UnitNorm(), classifier, seed, self.n_threads)
        vectors = self._label_vectors(encoder, inputs, auxiliary)  # of the encoder as Member rounded it
        embeddings = LabelEmbeddings.of(vectors, seed, self.n_threads)
        if settings.answers == "fused" and settings.learned_texts:
            embeddings.texts = self._embed(encoder, text_part(inputs, len(split.labels)))
        return member, embeddings

    # Module I: the encoder, with what label texts do not say in auxiliary vectors.
    def _auxiliary_vectors(self, encoder: Any, inputs: Inputs, split: Split, seed: int) -> AuxiliaryVectors | None:
        settings, n_labels = self.settings_, len(split.labels)
        said = labels_say_something(split)
        if not settings.aux_vectors and said:
            return None
        names = self._embed(encoder, label_part(inputs, n_labels))
        texts = None
        if settings.cluster_by == "centroids" or settings.aux_start == "gap" or not said:
            texts = self._embed(encoder, text_part(inputs, n_labels))
        if said:
            groups = self._groups_of(names, texts, split, seed)
        else:
            logger.info("labels say nothing: each has an auxiliary vector of its own")
            groups = LabelGroups(np.arange(n_labels, dtype=np.int32), n_labels)
        gaps = None
        if texts is not None and (settings.aux_start == "gap" or not said):
            gaps = semantic_gaps(names, texts, split.Y, self.n_threads)
        auxiliary = AuxiliaryVectors(groups, encoder.dim, seed=seed, gaps=gaps).to(self._device())
        logger.info("%.1f MB of auxiliary vectors and their moments while training", auxiliary.megabytes)
        return auxiliary

    def _groups_of(self, names: np.ndarray, texts: np.ndarray | None, split: Split, seed: int) -> LabelGroups:
        settings = self.settings_
        vectors = names
        if settings.cluster_by == "centroids":
            assert texts is not None
            vectors = np.asarray(unit_centroids(texts, split.Y, self.n_threads))
        return group_labels(
            vectors,
            settings.aux_vectors,
            np.bincount(split.Y.indices, minlength=len(split.labels)),
            own_from=settings.own_vector_from,
            method=settings.clusters,
            seed=seed,
            threads=self.n_threads,
        )

    def _train_encoder(
        self,
        name: str,
        encoder: Any,
        inputs: Inputs,
        split: Split,
        auxiliary: AuxiliaryVectors | None,
        seed: int,
        runs: TrainingRuns,
    ) -> None:
        settings = self.settings_
        if not settings.encoder_epochs or not trains_at_all(encoder):
            return
        schedule = settings.batch_schedule()
        bank = None
        if schedule is not None:
            bank = MemoryBank(len(split), encoder.dim, schedule, seed=seed, threads=self.n_threads)
        own = self.own_labels(split.inputs)
        learner = SiameseLearner(encoder, inputs, split.Y, auxiliary, task=settings.task(), bank=bank, own=own)
        learner.to(self._device())
        batches = Batches(len(split), batch_for(len(split), settings.encoder_batch), seed, order=bank)
        runs.train(
            name,
            learner,
            batches,
            optimiser=settings.encoder_optimiser(encoder, auxiliary),
            epochs=settings.encoder_epochs,
            schedule=linear(warm_up=0.02, floor=_FLOOR),
            callbacks=[*([bank] if bank else []), *self._refreshing(encoder, inputs, split, auxiliary, seed)],
        )

    def _refreshing(
        self, encoder: Any, inputs: Inputs, split: Split, auxiliary: AuxiliaryVectors | None, seed: int
    ) -> list[Callback]:
        """What Module I looks at anew every few epochs."""
        settings, n_labels = self.settings_, len(split.labels)
        found: list[Callback] = []

        def mine() -> np.ndarray:
            texts = self._embed(encoder, text_part(inputs, n_labels))
            vectors = self._label_vectors(encoder, inputs, auxiliary)
            return LabelEmbeddings.of(vectors, seed, self.n_threads).mistaken(texts, split.Y, _HARD, self.n_threads)

        def group() -> LabelGroups:
            texts = None
            if settings.cluster_by == "centroids":
                texts = self._embed(encoder, text_part(inputs, n_labels))
            return self._groups_of(self._embed(encoder, label_part(inputs, n_labels)), texts, split, seed)

        if settings.negatives == "refreshed":
            found.append(RefreshedNegatives(mine, settings.refresh_every))
        if settings.regroup_every and auxiliary is not None:
            found.append(RegroupedLabels(auxiliary, group, settings.regroup_every))
        return found

    # Module II: classifiers that start at the augmented label embeddings, which outlive the auxiliary vectors.
    def _train_classifiers(
        self,
        name: str,
        encoder: Any,
        inputs: Inputs,
        split: Split,
        auxiliary: AuxiliaryVectors | None,
        seed: int,
        runs: TrainingRuns,
    ) -> OneVsAll:
        settings, n_labels = self.settings_, len(split.labels)
        softmax = settings.classifier_loss == "softmax"
        trains = settings.answers != "encoder" and settings.epochs > 0
        moves = settings.joint and trains and trains_at_all(encoder)
        vectors = self._label_vectors(encoder, inputs, auxiliary)
        texts = None
        if trains and (settings.centroid_weight or not moves):
            texts = self._embed(encoder, text_part(inputs, n_labels))
        if settings.centroid_weight and texts is not None:
            centroids = np.asarray(unit_centroids(texts, split.Y, self.n_threads))
            vectors = unit_rows_of(vectors + np.float32(settings.centroid_weight) * centroids)
        classifier = OneVsAll(bias=softmax)
        classifier.start(n_labels, encoder.dim, seed, vectors * np.float32(settings.scale if softmax else 1))
        if not trains:
            return classifier
        rows, Y = taught_rows(split, label_rows=settings.label_rows)
        set_trained(encoder, trained=moves)
        source: Any = ChosenRows(inputs, rows)
        bank = None
        if not moves:
            features = self._embed(encoder, source)
            source = DenseInputs(features)
            if settings.classifier_cluster:
                bank = MemoryBank(len(rows), encoder.dim, settings.classifier_schedule(), seed=seed)
                bank.fill(features)
        learner = self._classifier_learner(encoder if moves else AsGiven(self._device()), classifier, source, Y)
        learner.to(self._device())
        runs.train(
            name,
            learner,
            Batches(len(rows), batch_for(len(rows), settings.batch), seed, order=bank),
            optimiser=Optimiser(self._classifier_groups(classifier, encoder if moves else None)),
            epochs=settings.epochs,
            schedule=linear(warm_up=0.02, floor=_FLOOR),
            callbacks=[] if bank is None else [bank],
        )
        if not softmax:
            classifier.table.weight = to_unit(classifier.table.weight)
        return classifier

    def _classifier_learner(
        self, encoder: Any, classifier: OneVsAll, inputs: Any, Y: sparse.csr_matrix
    ) -> PooledLearner | TripletLearner:
        settings = self.settings_
        if settings.classifier_loss == "triplet":
            return TripletLearner(
                encoder, classifier, inputs, Y, margin=settings.classifier_margin, dropout=settings.dropout
            )
        sampler = PoolSampler(Y, uniform=min(settings.classifier_random, 4 * Y.shape[1]))
        return PooledLearner(
            encoder, UnitNorm(), classifier, inputs, sampler=sampler, Y=Y, loss="softmax", dropout=settings.dropout
        )

    def _classifier_groups(self, classifier: OneVsAll, encoder: Any) -> list[Group]:
        settings = self.settings_
        groups = [Group(settings.rate, tables=[classifier.table])]
        if classifier.bias is not None:
            groups.append(Group(settings.bias_rate, tables=[classifier.bias]))
        if encoder is not None:
            groups += encoder_groups(encoder, settings.token_rate, settings.token_rate, settings.encoder_decay)
        return groups

    # Inference: classifiers and label embeddings are searched, their scores fused.
    def _answer(self, found: list[Any], train: Split, held: Split, whole: Split, runs: TrainingRuns) -> Any:  # noqa: ARG002
        return CombinedAnswers.fit(self, found, train, held, whole)

    def _kind_of_answers(self) -> Any:
        return CombinedAnswers

    def _embed(self, encoder: Any, part: ChosenRows) -> np.ndarray:
        """Features of length 1, from the cache where there is one and the encoder is worth it."""
        if self.cache is None or getattr(encoder, "kind", "") != "transformer":
            return unit_rows_of(encode(encoder, part, threads=self.n_threads))
        every = encode_cached(encoder, part.inputs, self.cache, self.n_threads)
        return unit_rows_of(every[part.rows].astype(np.float32))

    def _label_vectors(self, encoder: Any, inputs: Inputs, auxiliary: AuxiliaryVectors | None) -> np.ndarray:
        """Augmented label embeddings: auxiliary vectors folded in, if there are any."""
        names = self._embed(encoder, label_part(inputs, len(self.labels_)))
        return names if auxiliary is None else auxiliary.folded(names)

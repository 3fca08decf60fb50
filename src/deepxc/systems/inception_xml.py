"""InceptionXML and InceptionXML+: convolutions along word vectors' dimensions, and negatives mined while they learn.

Both read texts with the same encoder. InceptionXML trains one residual head against all labels (section 4 of the
paper); InceptionXML+ trains a head for clusters of labels and one for the labels of the clusters that it finds
(section 5). `paper` keeps its recipe; `fast` and `best` are ours: a bag of token vectors beside the convolutions gives
a start that is good at once, and the nearest train texts and label centroids vote beside the classifiers.
"""

from __future__ import annotations

import logging
import math
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from scipy import sparse

from deepxc.modules.classifiers.one_vs_all import OneVsAll
from deepxc.modules.encoders.dense import DenseFeatures
from deepxc.modules.encoders.encoding import encode
from deepxc.modules.encoders.inception import InceptionEncoder
from deepxc.modules.encoders.joint import Joint
from deepxc.modules.encoders.token_bag import TokenBag
from deepxc.modules.shortlists.label_groups import LabelGroups
from deepxc.modules.surrogates.label_clusters import LabelClusters
from deepxc.modules.tables import RowTable
from deepxc.modules.transfers.residual import SpectralResidual
from deepxc.systems.assembly import Assembly
from deepxc.systems.astec_settings import batch_for, epochs_for
from deepxc.systems.clustered_member import ClusteredMember
from deepxc.systems.inception_settings import InceptionPlusSettings, InceptionSettings, fan_out
from deepxc.systems.member import Member
from deepxc.systems.training_rows import FEW_TEXTS, unit_centroids, with_label_rows
from deepxc.systems.validation import precision_of, precision_of_shortlists
from deepxc.text.bag import BagOfTokens
from deepxc.text.stop_words import stop_words_of
from deepxc.training.batches import Batches
from deepxc.training.optimisers import Group, Optimiser
from deepxc.training.pooled import PooledLearner
from deepxc.training.pools import PoolSampler
from deepxc.training.precision import native_bfloat16
from deepxc.training.schedules import Schedule, linear, one_cycle
from deepxc.training.synchronised import Head, SynchronisedLearner

if TYPE_CHECKING:
    from deepxc.data.dataset import Split
    from deepxc.modules.protocols import Inputs
    from deepxc.systems.runs import TrainingRuns

logger = logging.getLogger(__name__)

_BAG = 0  # its place in the joint encoder, before the convolutions


class InceptionXML(Assembly):
    """InceptionXML: every label has a classifier, and every text is trained against all of them.

    Every argument from `word_dim` on defaults to its preset's value.

    Args:
        preset: `fast` and `best` are ours, `paper` is the paper's recipe.
        seed: Seed of all that is random.
        threads: Threads for training and for batches; None takes every core.
        encoder: Feature architecture in place of the convolutions, and of the bag beside them.
        device: Where training happens, `cpu` or `cuda`; None takes CUDA where there is one.
        word_dim: Length of word vectors: a multiple of 4, from 64 on.
        length: Words of a text that are read; 0 goes by the train texts.
        channels: Channels of the convolutions.
        attention: Words and dimensions attend to each other before the convolutions.
        stop_words: Words that the convolutions leave out: `none`, `english`, or a list.
        start: Where word vectors start: `random`, `projection`, `spectral`, or a file of word vectors.
        min_df: Texts that a word must occur in.
        word_dropout: Share of the word vectors' numbers that a step blanks.
        conv_dropout: The same between the convolutions.
        bag: Length of a sum of token vectors beside the convolutions (ours); 0 leaves it out.
        conv_factor: What the convolutions' features are multiplied with beside the bag's.
        ngrams: Shortest and longest character n-grams in that sum; empty for none.
        ngram_min_df: Texts that an n-gram must occur in.
        label_rows: Let every label's text be one more train text, where labels have texts that are no train texts.
        head: The residual layer before classifiers: its matrix `bounded` to a spectral norm of 1, `free`, or `none`.
        loss: `softmax` or `logistic`.
        epochs: Epochs; 0 goes by rule.
        patience: Epochs without a better P@1 on held-out rows after which training ends; 0: never.
        rate: Learning rate of classifiers.
        bias_rate: Learning rate of their biases; 0: as `rate`.
        token_rate: Learning rate of token vectors; 0: as `rate`.
        encoder_rate: Learning rate of convolutions and heads; 0: as `rate`.
        scale: Length of the centroids that classifiers start from, with a bag; 0 starts them at random.
        batch: Texts in a batch, fewer where there are few texts.
        dropout: Share of the features that a step blanks.
        head_dropout: The same of a head's correction.
        schedule: `one_cycle` or `linear` learning-rate schedule.
        answers: `fused` adds up several voices, `classifiers` ranks by the classifiers alone.
        temperature: Of the softmax over classifier scores, with `fused`.
        nearest_weight: What the nearest texts and centroids weigh with `fused`, before it is tuned.
        learned_texts: With `fused`, the nearest train texts in the learned space are one more voice.
        trees: With `fused`, so many label trees over the tokens are one more voice; 0 for none.
        validation: Share of the train rows held out to choose the weights of the voices.
        members: Learners of the ensemble.
    """

    settings_type = InceptionSettings
    preset_file = "inception_xml"
    settings_: Any
    encoder: Any

    def __init__(
        self,
        preset: str = "fast",
        *,
        seed: int = 0,
        threads: int | None = None,
        encoder: Any = None,
        device: str | None = None,
        word_dim: int | None = None,
        length: int | None = None,
        channels: int | None = None,
        attention: bool | None = None,
        stop_words: str | list[str] | None = None,
        start: str | None = None,
        min_df: int | None = None,
        word_dropout: float | None = None,
        conv_dropout: float | None = None,
        bag: int | None = None,
        conv_factor: float | None = None,
        ngrams: list[int] | None = None,
        ngram_min_df: int | None = None,
        label_rows: bool | None = None,
        head: str | None = None,
        loss: str | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        rate: float | None = None,
        bias_rate: float | None = None,
        token_rate: float | None = None,
        encoder_rate: float | None = None,
        scale: float | None = None,
        batch: int | None = None,
        dropout: float | None = None,
        head_dropout: float | None = None,
        schedule: str | None = None,
        answers: str | None = None,
        temperature: float | None = None,
        nearest_weight: float | None = None,
        learned_texts: bool | None = None,
        trees: int | None = None,
        validation: float | None = None,
        members: int | None = None,
    ) -> None:
        self._keep(locals())

    def _learn(
        self, name: str, split: Split, held: Split, seed: int, runs: TrainingRuns, hard: np.ndarray | None = None
    ) -> tuple[Any, None]:
        """One learner, all of it trained together; what is hard it finds by itself."""
        assert hard is None
        rows = with_label_rows(split) if self.settings_.label_rows else split
        torch.manual_seed(seed)
        encoder = self._encoder(split, seed)
        inputs = encoder.learn(rows)
        encoder.to(self._device())
        return self._train(name, encoder, inputs, rows, held, seed, runs), None

    # Section 4.1 and 4.2: word vectors, enhancement, convolutions.
    def _encoder(self, split: Split, seed: int) -> Any:
        if self.encoder is not None:
            return deepcopy(self.encoder)
        settings = self.settings_
        common: dict[str, Any] = {"seed": seed, "threads": self.n_threads}
        if split.texts is None:
            logger.info("features have no words to convolve: they are read as they are")
            if not sparse.issparse(split.X):
                return DenseFeatures()
            return TokenBag(settings.bag or settings.word_dim, start="projection", activation="none", **common)
        few = len(split) < FEW_TEXTS
        words = {"min_df": 1 if few else settings.min_df}
        convolutions = InceptionEncoder(
            word_dim=settings.word_dim,
            length=settings.length,
            channels=settings.channels,
            attention=settings.attention,
            start=settings.start,
            word_dropout=settings.word_dropout,
            dropout=settings.conv_dropout,
            stop_words=stop_words_of(settings.stop_words),
            tokens=words,
            operands="bfloat16" if native_bfloat16(torch.device(self._device()).type) else "float32",
            **common,
        )
        if not settings.bag:
            return convolutions
        tokens: dict[str, Any] = dict(words)
        if settings.ngrams:
            tokens |= {"ngrams": tuple(settings.ngrams), "ngram_min_df": 1 if few else settings.ngram_min_df}
        bag = TokenBag(settings.bag, start="projection", activation="none", tokens=tokens, **common)
        return Joint([bag, convolutions], [1.0, settings.conv_factor])

    # Section 4.3: a residual layer, one classifier a label, the logistic loss over all labels.
    def _train(
        self, name: str, encoder: Any, inputs: Inputs, split: Split, held: Split, seed: int, runs: TrainingRuns
    ) -> Any:
        settings = self.settings_
        head = self._head(encoder, inputs, split.Y, seed)
        learner = PooledLearner(
            encoder, head.block, head.classifier, inputs, Y=split.Y, loss=settings.loss, dropout=settings.dropout
        )
        validate = precision_of(encoder, head.block, head.classifier, held, self.n_threads)
        self._run(name, learner, encoder, [head], len(inputs), runs, seed, validate)
        return Member.of(encoder, head.block, head.classifier, seed, self.n_threads)

    def _head(self, encoder: Any, inputs: Inputs, Y: sparse.csr_matrix, seed: int) -> Head:
        """A residual layer and one vector for each column of Y."""
        settings = self.settings_
        block: torch.nn.Module = torch.nn.Identity()
        if settings.head != "none":
            bound = 1.0 if settings.head == "bounded" else math.inf
            block = SpectralResidual(encoder.dim, bound=bound, dropout=settings.head_dropout, seed=seed)
        classifier = OneVsAll()
        classifier.start(Y.shape[1], encoder.dim, seed, self._centroids(encoder, block, inputs, Y))
        return Head(block, classifier)

    def _centroids(self, encoder: Any, block: torch.nn.Module, inputs: Any, Y: sparse.csr_matrix) -> np.ndarray | None:
        """What classifiers start from: centroids of the bag's features; the convolutions have not learned yet."""
        if not self.settings_.scale or isinstance(encoder, InceptionEncoder):
            return None
        if isinstance(encoder, Joint):
            features = np.zeros((len(inputs), encoder.dim), np.float32)
            bag = cast("TokenBag", encoder.parts[_BAG])
            features[:, encoder.columns_of(_BAG)] = encode(bag, inputs.parts[_BAG], threads=self.n_threads)
        else:
            features = encode(encoder, inputs, threads=self.n_threads)
        if not isinstance(block, torch.nn.Identity):
            with torch.no_grad():
                features = block.eval()(torch.from_numpy(features)).numpy()
        return unit_centroids(features, Y, self.n_threads) * np.float32(self.settings_.scale)

    def _run(
        self,
        name: str,
        learner: Any,
        encoder: Any,
        heads: list[Head],
        n_texts: int,
        runs: TrainingRuns,
        seed: int,
        validate: Any,
    ) -> None:
        settings = self.settings_
        learner.to(self._device())
        runs.train(
            name,
            learner,
            Batches(n_texts, batch_for(n_texts, settings.batch), seed),
            optimiser=Optimiser(self._groups(encoder, heads)),
            epochs=epochs_for(n_texts, settings.epochs),
            schedule=self._schedule(),
            validate=validate if settings.patience else None,
            patience=settings.patience,
        )

    def _groups(self, encoder: Any, heads: list[Head]) -> list[Group]:
        settings = self.settings_
        classifiers = [head.classifier for head in heads]
        tables = [part for part in encoder.modules() if isinstance(part, RowTable) and part.trained]
        others = [p for part in (encoder, *(head.block for head in heads)) for p in part.parameters()]
        return [
            Group(settings.rate, tables=[classifier.table for classifier in classifiers]),
            Group(settings.bias_rate or settings.rate, tables=[c.bias for c in classifiers if c.bias is not None]),
            Group(settings.token_rate or settings.rate, tables=tables),
            Group(settings.encoder_rate or settings.rate, parameters=[p for p in others if p.requires_grad]),
        ]

    def _schedule(self) -> Schedule:
        if self.settings_.schedule == "linear":
            return linear(warm_up=0.02, floor=0.02)
        return one_cycle(peak=0.3, start=0.1, end=1e-5)


class InceptionXMLPlus(InceptionXML):
    """InceptionXML+: a second head learns which clusters of labels a text could belong to, and shortlists their labels.

    Takes the arguments of `InceptionXML`, and its own.

    Args:
        clusters: Clusters of labels; 0 goes by `cluster_size`.
        cluster_size: Labels of a cluster, at least, where their number goes by rule: it is a power of two.
        shortlist: Clusters whose labels are a text's candidates; 0 goes by rule.
        taught: The same in training; 0: as `shortlist`.
        random: Random labels in a batch's pool.
        own_shortlists: A text's loss counts its own candidates only, not the whole pool of its batch.
        detached: Share of training, from the start, in which the labels' head does not teach the encoder.
    """

    settings_type = InceptionPlusSettings
    preset_file = "inception_xml_plus"
    member_type = ClusteredMember

    def __init__(
        self,
        preset: str = "fast",
        *,
        seed: int = 0,
        threads: int | None = None,
        encoder: Any = None,
        device: str | None = None,
        word_dim: int | None = None,
        length: int | None = None,
        channels: int | None = None,
        attention: bool | None = None,
        stop_words: str | list[str] | None = None,
        start: str | None = None,
        min_df: int | None = None,
        word_dropout: float | None = None,
        conv_dropout: float | None = None,
        bag: int | None = None,
        conv_factor: float | None = None,
        ngrams: list[int] | None = None,
        ngram_min_df: int | None = None,
        label_rows: bool | None = None,
        head: str | None = None,
        loss: str | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        rate: float | None = None,
        bias_rate: float | None = None,
        token_rate: float | None = None,
        encoder_rate: float | None = None,
        scale: float | None = None,
        batch: int | None = None,
        dropout: float | None = None,
        head_dropout: float | None = None,
        schedule: str | None = None,
        answers: str | None = None,
        temperature: float | None = None,
        nearest_weight: float | None = None,
        learned_texts: bool | None = None,
        trees: int | None = None,
        validation: float | None = None,
        members: int | None = None,
        clusters: int | None = None,
        cluster_size: int | None = None,
        shortlist: int | None = None,
        taught: int | None = None,
        random: int | None = None,
        own_shortlists: bool | None = None,
        detached: float | None = None,
    ) -> None:
        self._keep(locals())

    # Section 5: clusters of labels, two heads alike, one of them cut off from the encoder at first.
    def _train(
        self, name: str, encoder: Any, inputs: Inputs, split: Split, held: Split, seed: int, runs: TrainingRuns
    ) -> ClusteredMember:
        settings = self.settings_
        groups, top = self._cluster(split, seed)
        meta = self._head(encoder, inputs, groups.targets(split.Y), seed)
        extreme = self._head(encoder, inputs, split.Y, seed)
        steps = len(Batches(len(inputs), batch_for(len(inputs), settings.batch), seed))
        learner = SynchronisedLearner(
            encoder,
            meta,
            extreme,
            inputs,
            split.Y,
            groups,
            top=settings.taught or top,
            sampler=PoolSampler(split.Y, uniform=min(settings.random, 4 * len(split.labels))),
            loss=settings.loss,
            dropout=settings.dropout,
            own_shortlists=settings.own_shortlists,
            detached=int(settings.detached * steps * epochs_for(len(inputs), settings.epochs)),
            steps=steps,
        )
        validate = precision_of_shortlists(learner, top, held, self.n_threads)
        self._run(name, learner, encoder, [meta, extreme], len(inputs), runs, seed, validate)
        return ClusteredMember.of(encoder, meta, extreme, groups, top)

    def _cluster(self, split: Split, seed: int) -> tuple[LabelGroups, int]:
        """Balanced 2-means over the labels' mean bags of words (PIFA), and how many clusters make a shortlist."""
        settings = self.settings_
        features: Any = split.X
        if split.texts is not None:
            min_df = 1 if len(split) < FEW_TEXTS else settings.min_df
            features = BagOfTokens(min_df=min_df).fit_transform(split.texts)
        clusters, top = fan_out(len(split.labels), settings.clusters, settings.shortlist, settings.cluster_size)
        found = LabelClusters(clusters, walk=False, threads=self.n_threads).cluster(split.Y, features, seed)
        return LabelGroups(found.clusters, found.count), min(top, found.count)

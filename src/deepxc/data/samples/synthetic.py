"""A label space of any size that behaves like real ones, for measuring memory and speed at 10^6 labels and more.

What it takes over from real sets: label frequencies and word frequencies follow Zipf's law; labels come in topics,
and the labels of a text mostly share one; a label's text has words in common with its texts, but words are shared
between labels and some of a text is noise. Every label occurs in train as long as there are enough pairs to go round.
Everything is drawn as whole arrays, and words are joined a chunk of rows at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepxc.data.dataset import Source, Split
from deepxc.data.label_matrix import label_matrix
from deepxc.data.label_space import LabelSpace
from deepxc.data.rows import counted_dataset, starts
from deepxc.errors import UserError

if TYPE_CHECKING:
    from deepxc.data.dataset import Dataset

TOPIC_SIZE = 32  # labels that share a topic
LABEL_WORDS = 4  # words a label's text has: the first is its topic's, the others its own
_SHOWN = 2  # words of each of its labels that a text shows
_TOGETHER = 0.7  # share of a text's further labels that come from the topic of its first
_CHUNK = 1 << 16
_SYLLABLES = np.array([a + b for a in "bdfghjklmnprstvz" for b in "aeiou"], dtype=object)


def load(
    labels: int = 10_000,
    texts: int = 50_000,
    test_texts: int = 0,
    labels_per_text: float = 3.0,
    noise_words: float = 2.0,
    words: int = 0,
    zipf: float = 0.8,
    seed: int = 0,
) -> Dataset:
    """The `synthetic` sample.

    Args:
        labels: Size of the label space.
        texts: Train texts.
        test_texts: Test texts; 0 for a tenth of the train texts, at least 1 and at most 50,000.
        labels_per_text: Mean number of labels drawn for a text, at least 1. A label drawn twice counts once.
        noise_words: Mean number of words in a text that have nothing to do with its labels.
        words: Size of the vocabulary; 0 for one that grows with the label space as in real sets.
        zipf: Exponent of the label frequencies; 0 makes all labels equally frequent.
        seed: Decides everything that is drawn.
    """
    words = words or 1_000 + labels // 2
    test_texts = test_texts or min(max(texts // 10, 1), 50_000)
    _check(labels=labels, texts=texts, test_texts=test_texts, words=words)
    _check_shares(labels_per_text=(labels_per_text, 1.0), noise_words=(noise_words, 0.0), zipf=(zipf, 0.0))
    rng = np.random.default_rng(seed)
    own = label_words(labels, words, rng)
    popular = rng.permutation(labels)  # label of each frequency rank
    vocabulary = spelled(words)
    space = _label_space(own, vocabulary)

    def split(part: str, size: int, *, complete: bool) -> Split:
        indptr, indices = _pairs(size, labels_per_text, zipf, popular, rng, complete=complete)
        source = Source(f"synthetic {part}", first_line=0)
        Y = label_matrix(indptr, indices, None, labels, source.at, repeated="merge")
        drawn = _texts(Y.indptr, Y.indices, own, vocabulary, noise_words, rng)
        return Split(labels=space, Y=Y, texts=drawn, source=source)

    parts = {"train": split("train", texts, complete=True), "test": split("test", test_texts, complete=False)}
    return counted_dataset("synthetic", parts)


def zipf_ranks(size: int, count: int, exponent: float, rng: np.random.Generator) -> np.ndarray:
    """Ranks from 0 to `count` - 1 whose frequency falls as rank^-exponent, by inverting the law's integral."""
    u = rng.random(size)
    if abs(exponent - 1) < 1e-6:
        rank = (count + 1.0) ** u
    else:
        power = 1 - exponent
        rank = (u * ((count + 1.0) ** power - 1) + 1) ** (1 / power)
    return np.clip(rank.astype(np.int64) - 1, 0, count - 1)


def label_words(labels: int, words: int, rng: np.random.Generator) -> np.ndarray:
    """The words of each label, shape (labels, LABEL_WORDS): its topic's first, then its own from a Zipf vocabulary."""
    topics = -(-labels // TOPIC_SIZE)
    own = np.empty((labels, LABEL_WORDS), np.int32)
    own[:, 0] = np.repeat(zipf_ranks(topics, words, 1.0, rng), TOPIC_SIZE)[:labels]
    for word in range(1, LABEL_WORDS):
        own[:, word] = zipf_ranks(labels, words, 1.0, rng)
    return own


def spelled(words: int) -> np.ndarray:
    """A different, pronounceable spelling for every word, the most frequent ones shortest."""
    base = len(_SYLLABLES)
    made: list[np.ndarray] = []
    ready, length = 0, 2
    while ready < words:
        number = np.arange(min(base**length, words - ready))
        ready += len(number)
        spelling = _SYLLABLES[number % base]
        for _ in range(length - 1):
            number = number // base
            spelling = spelling + _SYLLABLES[number % base]
        made.append(spelling)
        length += 1
    return np.concatenate(made)


def _label_space(own: np.ndarray, vocabulary: np.ndarray) -> LabelSpace:
    texts: list[str] = []
    for start in range(0, len(own), _CHUNK):
        texts += map(" ".join, vocabulary[own[start : start + _CHUNK]])
    return LabelSpace(ids=list(map(str, range(len(own)))), names=texts, texts=texts)


def _pairs(
    size: int, per_text: float, zipf: float, popular: np.ndarray, rng: np.random.Generator, *, complete: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Labels of each text: one by Zipf's law, and further ones mostly from its topic.

    Where `complete` holds, the labels are first dealt out once each, as far as there are pairs.
    """
    labels = len(popular)
    indptr = starts(1 + rng.poisson(per_text - 1, size))
    total = int(indptr[-1])
    indices = popular[zipf_ranks(total, labels, zipf, rng)]
    related = rng.random(total) < _TOGETHER
    related[indptr[:-1]] = False
    if complete:
        dealt = rng.permutation(total)[:labels]
        indices[dealt] = rng.permutation(labels)[: len(dealt)]
        related[dealt] = False
    first = np.repeat(indices[indptr[:-1]], np.diff(indptr))[related]
    topic = first - first % TOPIC_SIZE
    place = zipf_ranks(len(first), TOPIC_SIZE, 1.0, rng)  # topics have well-known and little-known labels as well
    indices[related] = np.minimum(topic + place, labels - 1)
    return indptr, indices


def _texts(
    indptr: np.ndarray,
    indices: np.ndarray,
    own: np.ndarray,
    vocabulary: np.ndarray,
    noise_words: float,
    rng: np.random.Generator,
) -> list[str]:
    """Texts that show some words of each of their labels and some noise, in random order."""
    texts: list[str] = []
    for start in range(0, len(indptr) - 1, _CHUNK):
        bounds = indptr[start : start + _CHUNK + 1].astype(np.int64)
        rows = len(bounds) - 1
        shown = np.repeat(indices[bounds[0] : bounds[-1]], _SHOWN)
        meant = own[shown, rng.integers(0, LABEL_WORDS, len(shown))]
        counts = rng.poisson(noise_words, rows)
        stray = zipf_ranks(int(counts.sum()), len(vocabulary), 1.0, rng)
        row = np.concatenate((np.repeat(np.arange(rows), np.diff(bounds) * _SHOWN), np.repeat(np.arange(rows), counts)))
        order = np.argsort(row + rng.random(len(row)))
        word = vocabulary[np.concatenate((meant, stray))[order]].tolist()
        ends = np.cumsum(np.bincount(row, minlength=rows)).tolist()
        texts += [" ".join(word[a:b]) for a, b in zip([0, *ends], ends, strict=False)]
    return texts


def _check(**sizes: int) -> None:
    for option, size in sizes.items():
        if size < 1:
            raise UserError(f"{option}={size} is less than 1", where="synthetic", remedy="Give a positive size")


def _check_shares(**options: tuple[float, float]) -> None:
    for option, (value, least) in options.items():
        if not (np.isfinite(value) and value >= least):
            raise UserError(
                f"{option}={value:g} is less than {least:g}", where="synthetic", remedy=f"Give {least:g} or more"
            )

"""What each voice of a fused answer weighs, and how that is chosen on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_TEMPERATURES = (0.7, 1.0, 1.4, 2.0)
_CLASSIFIER_WEIGHTS = (0.3, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0)
_TEXT_SHARES = (0.35, 0.5, 0.65, 0.85)  # of what the classifiers leave, the rest is the centroids'
_PRIORS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
_LEARNED_WEIGHTS = (0.1, 0.2, 0.3, 0.4)
_TOLD_WEIGHTS = (0.05, 0.1, 0.2, 0.3, 0.4)
_TOLD_TEMPERATURES = (0.1, 0.2, 0.4)
_TREE_WEIGHTS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


@dataclass(frozen=True)
class Weights:
    """What each voice weighs; temperature of the classifiers' softmax, and what label frequency adds to its logits.

    Classifiers taught by a softmax share each text's weight among its labels, so a label that mostly comes with many
    others, as the most frequent ones do, scores below its probability. `prior` times the logarithm of its frequency
    makes up for it. The trees take their weight from the sum of all the others.
    """

    temperature: float
    prior: float
    classifiers: float
    texts: float
    labels: float
    learned: float = 0.0
    told: float = 0.0
    told_temperature: float = 0.2
    trees: float = 0.0

    def with_share(self, **taken: float) -> Weights:
        """The voice that is named takes so much; the others (but the trees) share the rest as they did before."""
        (name, share), *_ = taken.items()
        others = [each for each in ("classifiers", "texts", "labels", "learned", "told") if each != name]
        before = sum(getattr(self, each) for each in others)
        scale = (1 - share) / before if before else 0.0
        return replace(self, **{each: scale * getattr(self, each) for each in others}, **{name: share})


def tuned(
    start: Weights,
    quality: Callable[[Weights], float],
    *,
    told: bool = False,
    learned: bool = False,
    trees: bool = False,
) -> Weights:
    """The best weights found by moving one thing after the other, twice: the first round knows not yet what follows.

    Args:
        start: Where the search begins.
        quality: What is to be large.
        told: Whether the nearest label texts have a voice.
        learned: Whether the nearest train texts in the learned space do.
        trees: Whether label trees do.
    """
    seen: dict[Weights, float] = {}

    def worth(weights: Weights) -> float:
        if weights not in seen:
            seen[weights] = quality(weights)
        return seen[weights]

    def best_of(first: Weights, others: Iterable[Weights]) -> Weights:
        return max([first, *others], key=worth)

    alone = replace(start, classifiers=1.0, texts=0.0, labels=0.0)
    best = replace(start, prior=best_of(alone, (replace(alone, prior=p) for p in _PRIORS)).prior)
    best = best_of(best, (replace(best, temperature=t) for t in _TEMPERATURES))
    best = best_of(best, _shared_out(best))
    others = _voices(told=told, learned=learned, trees=trees)
    for voices in (others, (_temper, _lead, *others)):
        for voice in voices:
            best = best_of(best, voice(best))
    return best


def _voices(*, told: bool, learned: bool, trees: bool) -> list[Callable[[Weights], Iterator[Weights]]]:
    """The moves of the voices that not every model has."""
    there = ((told, _tell), (learned, _learn), (trees, _ask_trees))
    return [move for has, move in there if has]


def _shared_out(weights: Weights) -> Iterator[Weights]:
    for c in _CLASSIFIER_WEIGHTS:
        for t in _TEXT_SHARES:
            yield replace(weights, classifiers=c, texts=(1 - c) * t, labels=(1 - c) * (1 - t))


def _temper(weights: Weights) -> Iterator[Weights]:
    for t in _TEMPERATURES:
        for p in (weights.prior, max(0.0, weights.prior - 0.05)):
            yield replace(weights, temperature=t, prior=p)


def _lead(weights: Weights) -> Iterator[Weights]:
    return (weights.with_share(classifiers=c) for c in _CLASSIFIER_WEIGHTS[:-1])


def _tell(weights: Weights) -> Iterator[Weights]:
    return (replace(weights.with_share(told=w), told_temperature=t) for w in _TOLD_WEIGHTS for t in _TOLD_TEMPERATURES)


def _learn(weights: Weights) -> Iterator[Weights]:
    return (replace(weights.with_share(learned=w), temperature=t) for w in _LEARNED_WEIGHTS for t in _TEMPERATURES)


def _ask_trees(weights: Weights) -> Iterator[Weights]:
    return (replace(weights, trees=w) for w in _TREE_WEIGHTS)

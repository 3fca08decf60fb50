"""How the weights of the voices are chosen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepxc.systems.voice_weights import Weights, tuned

START = Weights(temperature=1.4, prior=0.0, classifiers=0.5, texts=0.3, labels=0.2)
VOICES = ("classifiers", "texts", "labels", "learned", "told")


@given(st.sampled_from(VOICES), st.floats(0, 1))
def test_a_share_is_taken_from_the_others_in_proportion(name, share):
    taken = START.with_share(**{name: share})
    assert getattr(taken, name) == share
    assert sum(getattr(taken, voice) for voice in VOICES) == pytest.approx(1.0)
    others = [voice for voice in VOICES if voice != name and getattr(START, voice) > 0]
    ratios = [getattr(taken, voice) / getattr(START, voice) for voice in others]
    np.testing.assert_allclose(ratios, ratios[0])


def distance(weights, **wanted):
    return -sum((getattr(weights, name) - value) ** 2 for name, value in wanted.items())


def test_the_best_of_what_is_tried_is_found_and_nothing_is_asked_twice():
    asked = []

    def quality(weights):
        asked.append(weights)
        return distance(weights, temperature=2.0, prior=0.3, trees=0.5)

    best = tuned(START, quality, trees=True)
    assert (best.temperature, best.prior, best.trees) == (2.0, 0.3, 0.5)
    assert len(asked) == len(set(asked))


def test_a_later_voice_changes_what_an_earlier_one_weighs():
    """With the trees in, the classifiers should weigh less: only a second round can see that."""

    def quality(weights):
        return 2 * distance(weights, trees=0.6) + distance(weights, classifiers=0.3 if weights.trees else 0.9)

    best = tuned(START, quality, trees=True)
    assert best.trees == 0.6
    assert best.classifiers == pytest.approx(0.3)


def test_voices_that_are_not_there_get_no_weight():
    best = tuned(START, lambda weights: weights.told + weights.learned + weights.trees)
    assert (best.told, best.learned, best.trees) == (0.0, 0.0, 0.0)

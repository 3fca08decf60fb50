from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepxc.errors import UserError
from deepxc.labels.propensity import PRESETS, Propensity, inverse_propensity


def test_matches_the_formula_worked_by_hand():
    # ln 1000 = 6.907755, (1.5 + 1)^0.55 = 1.655263, C = 5.907755 * 1.655263 = 9.778889
    weights = inverse_propensity([0, 1, 98.5], 1000, 0.55, 1.5)
    expected = [1 + 9.778889 / 1.249828, 1 + 9.778889 / 1.655263, 1 + 9.778889 / 12.589254]
    np.testing.assert_allclose(weights, expected, rtol=1e-6)
    assert weights.dtype == np.float64


@pytest.mark.parametrize(
    ("name", "pair"), [("amazon", (0.6, 2.6)), ("wikipedia", (0.5, 0.4)), ("default", (0.55, 1.5))]
)
def test_presets(name, pair):
    preset = Propensity.preset(name)
    assert pair == (preset.A, preset.B)
    np.testing.assert_array_equal(preset.inverse([3, 4], 500), inverse_propensity([3, 4], 500, *pair))


def test_no_arguments_mean_the_default_preset():
    assert Propensity() == Propensity.preset("default")


def test_unknown_preset_names_the_nearest():
    with pytest.raises(UserError, match="'wikipedia'") as caught:
        Propensity.preset("Wikipdia")
    assert all(name in str(caught.value) for name in PRESETS)


@pytest.mark.parametrize("n_texts", [1, 2])
def test_a_train_set_too_small_to_tell_weighs_all_labels_alike(n_texts):
    np.testing.assert_array_equal(inverse_propensity([0, 1, 2], n_texts), 1.0)


@pytest.mark.parametrize(
    ("frequencies", "n_texts", "A", "B"),
    [
        ([1], 0, 0.5, 1),
        ([-1], 5, 0.5, 1),
        ([np.nan], 5, 0.5, 1),
        ([1], 5, -1, 1),
        ([1], 5, 0.5, 0),
        ([1], 5, np.nan, 1),
    ],
)
def test_impossible_input_is_refused(frequencies, n_texts, A, B):
    with pytest.raises(UserError):
        inverse_propensity(frequencies, n_texts, A, B)


@given(
    st.lists(st.integers(0, 10**6), max_size=30),
    st.integers(1, 10**7),
    st.floats(0, 2),
    st.floats(0.01, 10),
)
def test_weights_are_at_least_one_and_fall_with_frequency(frequencies, n_texts, A, B):
    weights = inverse_propensity(sorted(frequencies), n_texts, A, B)
    assert (weights >= 1).all()
    assert (np.diff(weights) <= 0).all()

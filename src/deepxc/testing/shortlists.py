"""What every shortlister must do; see `deepxc.modules.protocols.Shortlister`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import sparse

from deepxc.modules.protocols import Shortlister
from deepxc.modules.shortlists.views import Features, Views, take

if TYPE_CHECKING:
    from collections.abc import Callable

_ROWS, _LABELS, _K = 240, 30, 6
_ENOUGH = 0.5  # share of labels that a shortlist of a fifth of them must find where they are plain to see


def check_shortlister(
    make: Callable[[], Shortlister], reads: Literal["dense", "tokens", "both"] = "dense", seed: int = 0
) -> None:
    """Raise AssertionError where the shortlisters that `make` gives break the protocol.

    Args:
        make: Gives a new shortlister, untouched, each time.
        reads: Which features to give it.
        seed: Of the made-up data, and handed to the shortlister.
    """
    assert isinstance(make(), Shortlister), "a shortlister has proposes, fit, shortlist and negatives"
    both, Y = _made_up(seed)
    features: Features = {"dense": both.dense, "tokens": both.tokens, "both": both}[reads]
    fitted, twin = make(), make()
    before = Y.copy()
    fitted.fit(features, Y, seed, 1)
    twin.fit(features, Y, seed, 3)
    assert (before != Y).nnz == 0, "fit changed the labels it was given"
    _check_shortlist(fitted, twin, features, Y)
    _check_negatives(fitted, twin, features, Y)
    if hasattr(fitted, "write"):
        _check_saved(fitted, features, Y)


def _made_up(seed: int) -> tuple[Views, sparse.csr_matrix]:
    """Rows near the direction of their first label; label 29 has no row, the last row has no label."""
    rng = np.random.default_rng(seed)
    main = np.concatenate((np.arange(_LABELS - 1), rng.integers(_LABELS - 1, size=_ROWS - _LABELS + 1)))
    centres = rng.standard_normal((_LABELS, 16))
    dense = np.maximum(centres[main] + 0.2 * rng.standard_normal((_ROWS, 16)), 0).astype(np.float32)
    words = np.zeros((_ROWS, 90), np.float32)
    for place in range(3):
        words[np.arange(_ROWS), 3 * main + place] = rng.random(_ROWS) < 0.8
    words[np.arange(_ROWS), 3 * main] = 1
    words[np.arange(_ROWS), rng.integers(90, size=_ROWS)] += 0.5
    kept = rng.random((_ROWS, _LABELS)) < 0.02
    kept[np.arange(_ROWS), main] = True
    kept[:, -1] = False
    kept[-1] = False
    return Views(dense, sparse.csr_matrix(words)), sparse.csr_matrix(kept.astype(np.float32))


def _check_shortlist(fitted: Shortlister, twin: Shortlister, features: Features, Y: sparse.csr_matrix) -> None:
    ids, scores = fitted.shortlist(features, _K)
    assert ids.shape == scores.shape == (_ROWS, _K), f"{_K} labels of {_ROWS} rows gave shape {ids.shape}"
    assert ids.dtype == np.int64, f"ids are int64, not {ids.dtype}"
    assert scores.dtype == np.float32, f"scores are float32, not {scores.dtype}"
    _well_formed_ids(ids, "a shortlist")
    assert np.array_equal(ids < 0, scores == -np.inf), "id -1 and score -inf stand in the same places"
    assert not np.isnan(scores).any(), "a score is NaN"
    assert (scores[:, 1:] <= scores[:, :-1]).all(), "scores rise within a row"
    for other, threads, why in ((fitted, 1, "asking again"), (fitted, 3, "other threads"), (twin, 1, "fitting again")):
        again, same = other.shortlist(features, _K, threads)
        assert np.array_equal(ids, again), f"{why} gave other labels"
        assert np.allclose(scores, same, atol=1e-5), f"{why} gave other scores"
    for row in range(0, _ROWS, 37):
        alone, score = fitted.shortlist(take(features, row, row + 1), _K)
        assert np.allclose(score[0], scores[row], atol=1e-5), "a row alone has other scores than in a batch"
        clear = np.append(scores[row, 1:] < scores[row, :-1] - 1e-5, False)
        clear[1:] &= clear[:-1]
        assert np.array_equal(alone[0][clear], ids[row][clear]), "a row alone has other labels than in a batch"
    wide, _ = fitted.shortlist(take(features, 0, 2), 2 * _LABELS)
    assert wide.shape == (2, 2 * _LABELS), "more labels wanted than there are: fill up with -1"
    _well_formed_ids(wide, "a shortlist")
    if fitted.proposes:
        found = np.take_along_axis(Y.toarray(), np.maximum(ids, 0), 1) * (ids >= 0)
        share = found.sum() / Y.nnz
        assert share >= _ENOUGH, f"{share:.0%} of the labels were found where they are plain to see"
    else:
        assert (ids < 0).all(), "a shortlister that proposes nothing proposed labels"


def _check_negatives(fitted: Shortlister, twin: Shortlister, features: Features, Y: sparse.csr_matrix) -> None:
    for k in (1, _K, 2 * _LABELS):
        ids = fitted.negatives(features, Y, k)
        assert ids.dtype == np.int32, f"negatives are int32, not {ids.dtype}"
        assert ids.shape[0] == _ROWS, f"{ids.shape[0]} rows of negatives for {_ROWS} rows"
        assert ids.shape[1] <= k, f"{ids.shape[1]} negatives a row where {k} were wanted"
        _well_formed_ids(ids, "negatives")
        own = np.take_along_axis(Y.toarray(), np.maximum(ids, 0), 1).astype(bool) & (ids >= 0)
        assert not own.any(), f"row {np.flatnonzero(own.any(axis=1))[:1]} has a label of its own among its negatives"
        for other, threads, why in (
            (fitted, 1, "asking again"),
            (fitted, 3, "other threads"),
            (twin, 1, "fitting again"),
        ):
            same = np.array_equal(ids, other.negatives(features, Y, k, threads))
            assert same, f"{why} gave other negatives in the same draw"
    if fitted.proposes:
        assert (fitted.negatives(features, Y, _K)[:, 0] >= 0).all(), "a row has no negatives"


def _check_saved(fitted: Shortlister, features: Features, Y: sparse.csr_matrix) -> None:
    read_from = getattr(type(fitted), "read_from", None)
    assert read_from is not None, "a shortlister with write(folder) has read_from(folder) too"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        fitted.write(folder)  # pyrefly: ignore[missing-attribute]
        opened = read_from(folder)
        assert np.array_equal(fitted.negatives(features, Y, _K), opened.negatives(features, Y, _K)), (
            "the opened shortlister gives other negatives"
        )
        for ours, theirs in zip(fitted.shortlist(features, _K), opened.shortlist(features, _K), strict=True):
            assert np.array_equal(ours, theirs), "the opened shortlister gives other labels or scores"
        del opened


def _well_formed_ids(ids: np.ndarray, what: str) -> None:
    assert ((ids >= -1) & (ids < _LABELS)).all(), f"{what} names labels that there are not"
    empty = ids < 0
    assert (empty[:, 1:] >= empty[:, :-1]).all(), f"{what} has a label after an empty place"
    ordered = np.sort(ids, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    assert not twice.any(), f"{what} names a label twice in a row"

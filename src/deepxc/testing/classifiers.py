"""What every classifier must do; see `deepxc.modules.protocols.Classifier`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from deepxc.modules.protocols import Classifier
from deepxc.modules.tables import RowTable

if TYPE_CHECKING:
    from collections.abc import Callable

_LABELS, _DIM = 40, 7


def check_classifier(make: Callable[[], Classifier], seed: int = 0) -> None:
    """Raise AssertionError where the classifiers that `make` gives break the protocol.

    Args:
        make: Gives a new classifier, untouched, each time.
        seed: Handed to the classifier.
    """
    assert isinstance(make(), Classifier), "a classifier has start, logits and vectors"
    assert isinstance(make(), torch.nn.Module), "a classifier is a torch.nn.Module"
    rng = np.random.default_rng(seed)
    features = torch.from_numpy(rng.standard_normal((5, _DIM)).astype(np.float32))
    labels = torch.from_numpy(rng.permutation(_LABELS)[:9])
    first, twin, given = make(), make(), make()
    first.start(_LABELS, _DIM, seed)
    twin.start(_LABELS, _DIM, seed)
    _check_logits(first, features, labels)
    same = torch.equal(first.logits(features, labels), twin.logits(features, labels))
    assert same, "the same seed gave different parameters"
    vectors = rng.standard_normal((_LABELS, _DIM)).astype(np.float32)
    kept = vectors.copy()
    given.start(_LABELS, _DIM, seed, vectors)
    assert np.allclose(given.vectors(), kept, atol=1e-6), "it did not start from the vectors it was given"
    _check_gradients(given, features, labels)
    assert np.array_equal(vectors, kept), "the vectors it was given were changed in place"


def _check_logits(classifier: Classifier, features: torch.Tensor, labels: torch.Tensor) -> None:
    logits = classifier.logits(features, labels)
    assert logits.shape == (5, 9), f"5 rows and a pool of 9 labels gave logits of shape {tuple(logits.shape)}"
    vectors = classifier.vectors()
    assert vectors.shape == (_LABELS, _DIM), f"{_LABELS} labels of {_DIM} features gave vectors of {vectors.shape}"
    assert np.isfinite(vectors).all(), "vectors hold NaN or infinity"
    constant = logits.detach().numpy() - features.numpy() @ vectors[labels.numpy()].T
    assert np.allclose(constant, constant[0], atol=1e-5), "logits are no inner products with the vectors, plus a bias"
    reverse = classifier.logits(features, labels.flip(0)).flip(1)
    assert torch.allclose(logits, reverse, atol=1e-5), "a label's logits depend on its place in the pool"


def _check_gradients(classifier: Classifier, features: torch.Tensor, labels: torch.Tensor) -> None:
    assert isinstance(classifier, torch.nn.Module)
    inputs = features.clone().requires_grad_()
    classifier.logits(inputs, labels).sum().backward()
    assert inputs.grad is not None, "no gradient reached the features"
    expected = torch.from_numpy(classifier.vectors()[labels.numpy()].sum(axis=0)).expand_as(inputs)
    assert torch.allclose(inputs.grad, expected, atol=1e-4), "the features' gradient is not the vectors'"
    tables = [part for part in classifier.modules() if isinstance(part, RowTable)]
    dense = [parameter for parameter in classifier.parameters() if parameter.grad is not None]
    touched = [(table, found) for table in tables if (found := table.take_gradient()) is not None]
    assert touched or dense, "no gradient reached the classifier"
    for table, (rows, _) in touched:
        inside = np.isin(rows.numpy(), labels.numpy()).all()
        assert inside or len(table) != _LABELS, "labels outside the pool got gradients"
    for parameter in dense:
        assert parameter.shape[0] != _LABELS, "a table of all labels gets a dense gradient: make it a RowTable"

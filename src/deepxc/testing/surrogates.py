"""What every surrogate task must do; see `deepxc.modules.protocols.Surrogate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from deepxc.data.dataset import Split
from deepxc.data.label_space import LabelSpace
from deepxc.modules.protocols import Surrogate

if TYPE_CHECKING:
    from collections.abc import Callable


def check_surrogate(make: Callable[[], Surrogate], seed: int = 0) -> None:
    """Raise AssertionError where the surrogates that `make` gives break the protocol.

    Args:
        make: Gives a new surrogate, untouched, each time.
        seed: Of the made-up data.
    """
    assert isinstance(make(), Surrogate), "a surrogate has the method targets(split, features, seed)"
    for dense in (False, True):
        split, features = _made_up(seed, dense=dense)
        before = split.Y.copy()
        targets = make().targets(split, features, seed)
        again = make().targets(split, features, seed)
        _unchanged(before, split.Y)
        if targets is None:
            assert again is None, "the same seed gave a task once, and none once"
            continue
        _well_formed(targets, len(split))
        assert again is not None, "the same seed gave a task once, and none once"
        assert targets.shape == again.shape, "the same seed gave tasks of different sizes"
        assert (targets != again).nnz == 0, "the same seed gave different targets"
        _agrees_with_labels(targets, split.Y)


def _made_up(seed: int, *, dense: bool) -> tuple[Split, sparse.csr_matrix | np.ndarray]:
    """90 rows, 24 labels of which the last has no row; the last row has no label."""
    rng = np.random.default_rng(seed)
    kept = rng.random((90, 24)) < np.linspace(0.3, 0.03, 24)
    kept[np.arange(89), rng.integers(23, size=89)] = True
    kept[:, -1] = False
    kept[-1] = False
    kept[0] = kept[1]  # two rows with the same labels
    Y = sparse.csr_matrix(kept.astype(np.float32))
    X = sparse.random(90, 50, 0.1, "csr", dtype=np.float32, rng=rng)
    features = X.toarray() if dense else sparse.csr_matrix(X)
    return Split(labels=LabelSpace.numbered(24), Y=Y, X=features), features


def _unchanged(before: sparse.csr_matrix, after: sparse.csr_matrix) -> None:
    assert before.shape == after.shape, "the split's labels were changed in place"
    assert (before != after).nnz == 0, "the split's labels were changed in place"


def _well_formed(targets: sparse.csr_matrix, rows: int) -> None:
    assert sparse.issparse(targets), f"targets are a sparse matrix, not {type(targets).__name__}"
    assert targets.format == "csr", f"targets are CSR, not {targets.format}"
    assert targets.shape[0] == rows, f"{targets.shape[0]} rows of targets for {rows} train rows"
    assert targets.shape[1] >= 1, "a task without surrogate labels; give None where nothing is to be trained"
    assert np.isfinite(targets.data).all(), "targets hold NaN or infinity"
    assert (targets.data > 0).all(), "targets are weights above 0; what is not a target is not stored"
    assert targets.has_canonical_format, "columns of a row ascend and do not repeat"


def _agrees_with_labels(targets: sparse.csr_matrix, Y: sparse.csr_matrix) -> None:
    sizes = np.diff(targets.indptr)
    assert sizes[-1] == 0, "a row without labels has surrogate labels"
    assert sizes.any(), "no row has a surrogate label"
    labels = np.array_equal(_columns(Y, 0), _columns(Y, 1))
    assert labels, "the two rows were made with the same labels"
    same = np.array_equal(_columns(targets, 0), _columns(targets, 1))
    assert same, "two rows with the same labels have different surrogate labels"


def _columns(matrix: sparse.csr_matrix, row: int) -> np.ndarray:
    return np.sort(matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]])

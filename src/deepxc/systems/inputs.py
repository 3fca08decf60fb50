"""What users hand to `fit` and `predict`, made into one form: a `Split` with a `LabelSpace`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from deepxc.data.dataset import Dataset, Split
from deepxc.data.label_space import LabelSpace
from deepxc.errors import UserError

Features = Any
"""A CSR matrix or an array of rows: which of them, a type checker cannot follow through `issparse`."""


def as_split(X: object, Y: object = None, labels: LabelSpace | None = None) -> Split:
    """Texts or features with their labels, in any form that `fit` takes, as a split.

    Args:
        X: A `Split`, a `Dataset` (its train part), a sequence of texts, or a feature matrix.
        Y: Labels of each row: a sparse or dense indicator matrix; a list of lists of names or of label rows; or one
            name or number a row. Left out where `X` holds them.
        labels: The label space that names and numbers refer to; by default it is made from what occurs in `Y`.
    """
    if isinstance(X, Dataset):
        X = X.train
    if isinstance(X, Split):
        if Y is not None or labels is not None:
            raise UserError("labels were given twice: the split holds them", where="Y", remedy="Leave out Y and labels")
        return X
    if Y is None:
        raise UserError(
            "requires y to be passed, but the target y is None",
            where="Y",
            remedy="Give the labels of each text as fit(X, Y), or a Split that holds them",
        )
    inputs = as_inputs(X)
    matrix, space = _label_matrix(Y, labels)
    n = len(inputs) if isinstance(inputs, list) else inputs.shape[0]
    if n != matrix.shape[0]:
        raise UserError(f"{n} texts but {matrix.shape[0]} rows of labels", where="Y", remedy="Give one row a text")
    if n == 0:
        raise UserError("there are 0 sample(s) (shape=(0,)) while a minimum of 1 is required", where="X")
    return Split(space, matrix, inputs if isinstance(inputs, list) else None, _matrix_or_none(inputs))


def as_inputs(X: object) -> list[str] | Features:
    """Texts as a list of strings, features as float32 CSR or float32 rows."""
    if isinstance(X, Split):
        X = X.inputs
    if isinstance(X, str):
        raise UserError("one string where a list of texts is wanted", where="X", remedy="Wrap it: [text]")
    if (
        sparse.issparse(X)
        or (isinstance(X, np.ndarray) and X.dtype.kind not in "OUS")
        or hasattr(X, "__array_namespace__")
    ):
        return _features(X)
    if not isinstance(X, Iterable):
        raise UserError(f"{type(X).__name__} is neither texts nor a matrix", where="X", remedy="Give a list of strings")
    listed = list(X)
    first: Any = listed[0] if listed else ""
    if not isinstance(first, str | bytes) and np.ndim(first) > 0:
        return _features(listed)
    for i, text in enumerate(listed):
        if not isinstance(text, str):
            raise UserError(
                f"row {i} is {type(text).__name__}, not text", where="X", remedy="Give strings, or a matrix of features"
            )
    return listed


def _features(X: object) -> Features:
    """scikit-learn's own checks, so that its users meet the errors they know."""
    from sklearn.utils.validation import check_array

    matrix = check_array(X, accept_sparse="csr", dtype=np.float32)
    return sparse.csr_matrix(matrix) if sparse.issparse(matrix) else np.ascontiguousarray(matrix)


def _matrix_or_none(inputs: list[str] | Features) -> Features | None:
    return None if isinstance(inputs, list) else inputs


def _label_matrix(Y: object, labels: LabelSpace | None) -> tuple[sparse.csr_matrix, LabelSpace]:
    if sparse.issparse(Y) or (isinstance(Y, np.ndarray) and Y.ndim == 2 and Y.dtype.kind in "biuf" and Y.shape[1] != 1):
        matrix = sparse.csr_matrix(Y, dtype=np.float32)
        if not np.isfinite(matrix.data).all() or (matrix.data < 0).any():
            raise UserError("label weights must be finite and not negative", where="Y", remedy="Use 1 for a label")
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        space = labels or LabelSpace.numbered(matrix.shape[1])
        if matrix.shape[1] != len(space):
            raise UserError(f"{matrix.shape[1]} columns for {len(space)} labels", where="Y")
        return matrix, space
    rows = _label_rows(Y)
    if labels is not None:
        return _indicator([_known(row, labels, i) for i, row in enumerate(rows)], len(labels)), labels
    kinds = {isinstance(label, str) for row in rows for label in row}
    if len(kinds) > 1:
        raise UserError("names and numbers are mixed", where="Y", remedy="Use label names or label numbers throughout")
    if kinds == {True}:
        names = _in_order({label for row in rows for label in row})
        space = LabelSpace.from_names(names)
        return _indicator([[space.index[name] for name in row] for row in rows], len(names)), space
    size = max((label for row in rows for label in row), default=-1) + 1
    return _indicator(rows, size), LabelSpace.numbered(size)


def _label_rows(Y: object) -> list[list[Any]]:
    """A list of labels for each row; a flat list of values is one label a row, and its distinct values the labels."""
    if isinstance(Y, str) or not isinstance(Y, Iterable):
        raise UserError(f"{type(Y).__name__} where one list of labels a text is wanted", where="Y")
    values = list(np.ravel(Y)) if isinstance(Y, np.ndarray) else list(Y)
    if all(isinstance(row, str) for row in values):
        return [[str(row)] for row in values]
    if values and all(np.isscalar(row) for row in values):
        return [[str(name)] for name in _class_names(np.asarray(values))]
    rows: list[list[Any]] = []
    for i, row in enumerate(values):
        if isinstance(row, str) or not isinstance(row, Iterable):
            raise UserError(f"row {i} is {row!r}", where="Y", remedy="Give a list of labels for every text")
        rows.append([_one_label(label, i) for label in row])
    return rows


def _class_names(values: np.ndarray) -> list[str]:
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise UserError("labels contain NaN or infinity", where="Y", remedy="Give a label for every text")
        if (values == np.round(values)).all():
            values = values.astype(np.int64)
    return [str(value) for value in values.tolist()]


def _in_order(names: set[str]) -> list[str]:
    """Sorted; by value where every name is a number, as the columns of a classifier are."""
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)


def _one_label(label: object, row: int) -> str | int:
    if isinstance(label, str):
        return str(label)
    if isinstance(label, int | np.integer) and int(label) >= 0:
        return int(label)
    raise UserError(f"row {row} holds the label {label!r}", where="Y", remedy="Use names, or row numbers from 0")


def _known(row: Sequence[str | int], labels: LabelSpace, i: int) -> list[int]:
    try:
        return [label_row(label, labels) for label in row]
    except UserError as fault:
        raise UserError(f"row {i}: {fault.what}", where="Y", remedy=fault.remedy) from None


def label_row(label: object, labels: LabelSpace) -> int:
    """The row of a label given by id, by name or by number."""
    if isinstance(label, str):
        row = labels.index.get(label)
        if row is not None:
            return row
        from difflib import get_close_matches

        near = get_close_matches(label, list(labels.index)[:200_000], n=1)
        remedy = f"Did you mean {near[0]!r}?" if near else "Use an id, a name that occurs once, or a row number"
        raise UserError(f"no label is called {label!r}", remedy=remedy.rstrip("?") if near else remedy)
    if isinstance(label, int | np.integer) and 0 <= int(label) < len(labels):
        return int(label)
    raise UserError(f"there is no label {label!r}", remedy=f"Rows go from 0 to {len(labels) - 1}")


def _indicator(rows: Sequence[Sequence[int]], size: int) -> sparse.csr_matrix:
    indptr = np.r_[0, np.cumsum([len(row) for row in rows], dtype=np.int64)]
    indices = np.fromiter((label for row in rows for label in row), np.int64, int(indptr[-1]))
    matrix = sparse.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(len(rows), size))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix

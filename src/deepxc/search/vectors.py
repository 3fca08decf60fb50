"""Checks and prepares the vectors that go into an index and the queries put to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np

from deepxc.errors import UserError
from deepxc.search.protocol import Metric

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_ROWS_AT_ONCE = 8192  # rows normalised together: the temporary stays in the cache


def check_metric(metric: str) -> None:
    """Refuse a metric that no index knows."""
    if metric not in get_args(Metric):
        raise UserError(
            f"unknown metric {metric!r}", where="metric", remedy=f"Use one of {', '.join(get_args(Metric))}"
        )


def check_count(value: int, name: str) -> int:
    """A count of at least one (k, threads, ...) as a plain int."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise UserError(f"{value!r} is not a positive whole number", where=name, remedy=f"Give {name} of 1 or more")
    return int(value)


def _as_float32(values: ArrayLike, name: str) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise UserError(f"numbers expected, got dtype {array.dtype}", where=name, remedy="Give a float32 array")
    with np.errstate(over="ignore"):  # a float64 too large becomes inf, which the caller reports
        return np.ascontiguousarray(array, dtype=np.float32)


def _largest(array: np.ndarray, name: str) -> np.ndarray:
    """Largest absolute value of each row; refuses NaN and infinity. Makes no array of the input's size."""
    largest = np.maximum(array.max(axis=1), -array.min(axis=1))
    if not np.isfinite(largest).all():
        row = int(np.flatnonzero(~np.isfinite(largest))[0])
        raise UserError("NaN or infinity in a vector", where=f"{name}, row {row}", remedy="Remove or mend that row")
    return largest


def _unit_rows(array: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """Rows of length 1, as a new array; rows of zeros stay.

    Scaling by the largest value first keeps the squares of very small and very large rows in float32's range.
    """
    unit = np.empty_like(array)
    scale = np.where(largest > 0, largest, 1)[:, None]
    for start in range(0, len(array), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        block = np.divide(array[rows], scale[rows], out=unit[rows])
        norms = np.sqrt(np.einsum("ij,ij->i", block, block))
        block /= np.where(norms > 0, norms, 1)[:, None]
    return unit


def prepare_vectors(vectors: ArrayLike, metric: Metric) -> np.ndarray:
    """Vectors to index as finite float32 rows, of length 1 for the cosine.

    The result may share the caller's memory where nothing had to change.
    """
    check_metric(metric)
    array = _as_float32(vectors, "vectors")
    if array.ndim != 2 or array.shape[1] == 0:
        raise UserError(
            f"a table of vectors expected, got shape {array.shape}", where="vectors", remedy="Give one row a vector"
        )
    largest = _largest(array, "vectors")
    return _unit_rows(array, largest) if metric == "cosine" else array


def prepare_queries(queries: ArrayLike, dim: int, metric: Metric) -> tuple[np.ndarray, np.ndarray]:
    """Queries as finite float32 rows (of length 1 for the cosine), and the numbers of the rows that are all zeros."""
    array = _as_float32(queries, "queries")
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or array.shape[1] != dim:
        raise UserError(
            f"queries of shape {np.shape(queries)} put to an index of {dim} dimensions",
            where="queries",
            remedy=f"Give vectors of length {dim}, made the way the indexed ones were",
        )
    largest = _largest(array, "queries")
    if metric == "cosine":
        array = _unit_rows(array, largest)
    return array, np.flatnonzero(largest == 0)

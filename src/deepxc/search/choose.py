"""Picks the kind of index for a set of vectors, and opens a saved one of any kind."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from deepxc.errors import UserError
from deepxc.search.index_folder import IndexDescription

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike

    from deepxc.search.protocol import Kind, Metric, VectorIndex

# Measured, see benchmarks/search.py: below the first, scoring everything is as quick as anything and exact; below the
# second, reading all codes costs less than choosing which to read.
EXACT_UP_TO = 2_000
SCAN_UP_TO = 100_000

_CLASSES = {  # by module: FAISS takes a tenth of a second to import, and exact search does without
    "exact": ("deepxc.search.exact", "ExactIndex"),
    "scan": ("deepxc.search.scan", "ScanIndex"),
    "lists": ("deepxc.search.inverted", "InvertedListIndex"),
    "graph": ("deepxc.search.graph", "GraphIndex"),
    "postings": ("deepxc.search.posting_lists", "PostingLists"),
}
_DENSE = tuple(kind for kind in _CLASSES if kind != "postings")


def kind_for(size: int) -> Kind:
    """The kind that `build_index` picks for so many vectors."""
    if size <= EXACT_UP_TO:
        return "exact"
    return "scan" if size <= SCAN_UP_TO else "lists"


def build_index(
    vectors: ArrayLike,
    metric: Metric = "cosine",
    *,
    kind: Kind | Literal["auto"] = "auto",
    seed: int = 0,
    threads: int | None = None,
    **settings: Any,  # noqa: ANN401 - each kind has its own
) -> VectorIndex:
    """Index vectors, one a row.

    Args:
        vectors: One vector a row, of any float or integer type.
        metric: "cosine" or "inner_product".
        kind: "exact", "scan" (codes of all vectors are read), "lists" (codes of the nearest lists are read), "graph",
            or "auto": exact up to 2,000 vectors, scan up to 100,000, lists above.
        seed: The same vectors, seed and settings give the same index.
        threads: For building, at most so many; all cores by default.
        settings: Of the kind that was named; see its `build`.
    """
    if kind != "auto" and kind not in _DENSE:
        raise UserError(f"unknown kind {kind!r}", where="kind", remedy=f"Use auto or one of {', '.join(_DENSE)}")
    if kind == "auto" and settings:
        raise UserError(
            f"settings ({', '.join(settings)}) without a kind", where="kind", remedy="Name the kind they belong to"
        )
    chosen = kind_for(len(np.atleast_1d(np.asarray(vectors)))) if kind == "auto" else kind
    index_class = _class_of(chosen)
    try:
        return index_class.build(vectors, metric=metric, seed=seed, threads=threads, **settings)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        raise UserError(f"{chosen}: {error}", where="settings", remedy=f"See {index_class.__name__}.build") from error


def load_index(folder: Path) -> VectorIndex:
    """Open an index of any kind that was saved in the folder; its vectors are mapped from disk."""
    return _class_of(IndexDescription.read(folder).kind).load(folder)


def _class_of(kind: Kind) -> Any:  # noqa: ANN401 - one of five classes, imported when it is needed
    module, name = _CLASSES[kind]
    return getattr(importlib.import_module(module), name)

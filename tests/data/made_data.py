"""Small data sets, and the ways in which the tests lay them out as files."""

from __future__ import annotations

import gzip
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from scipy import sparse

from deepxc.data.dataset import Dataset, Split
from deepxc.data.label_space import LabelSpace

if TYPE_CHECKING:
    from pathlib import Path

exploring = settings.get_current_profile_name() == "explore"
quick = settings() if exploring else settings(max_examples=20)

LINE_TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\t\ufeff\x00"), min_size=1, max_size=12
)
NAME = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=6).map(lambda name: "n" + name)
ONE = st.just(1.0)
WEIGHT = st.floats(2.0**-20, 2.0**20, width=32)


@st.composite
def matrices(draw, rows: int, columns: int, values: st.SearchStrategy[float]) -> sparse.csr_matrix:
    """A sparse float32 matrix in canonical form, some rows empty."""
    chosen = [sorted(draw(st.sets(st.integers(0, columns - 1), max_size=4))) for _ in range(rows)]
    indices = [column for row in chosen for column in row]
    data = draw(st.lists(values, min_size=len(indices), max_size=len(indices)))
    indptr = np.cumsum([0, *map(len, chosen)])
    return sparse.csr_matrix((np.array(data, np.float32), indices, indptr), shape=(rows, columns))


@st.composite
def datasets(draw, *, text: st.SearchStrategy[str] = LINE_TEXT, weights=ONE, features=False) -> Dataset:
    """A data set with a train and a test part."""
    ids = draw(st.lists(NAME, min_size=1, max_size=5, unique=True))
    names = draw(st.lists(LINE_TEXT, min_size=len(ids), max_size=len(ids)))
    said = draw(st.none() | st.lists(LINE_TEXT, min_size=len(ids), max_size=len(ids)))
    values = st.floats(-(2.0**20), 2.0**20, width=32).filter(bool)
    label_features = draw(matrices(len(ids), 6, values)) if features else None
    labels = LabelSpace(ids, names, said, label_features)
    numbered = draw(st.booleans())
    splits = []
    for part in ("trn", "tst"):
        rows = draw(st.integers(1, 5))
        pairs = draw(st.sets(st.tuples(st.integers(0, rows - 1), st.integers(0, len(ids) - 1)), max_size=3))
        splits.append(
            Split(
                labels=labels,
                Y=draw(matrices(rows, len(ids), weights)),
                texts=draw(st.lists(text, min_size=rows, max_size=rows)),
                X=draw(matrices(rows, 6, values)) if features else None,
                ids=[f"{part}{i}" for i in range(rows)] if numbered else None,
                filter_pairs=np.array(sorted(pairs), np.int64).reshape(-1, 2),
            )
        )
    return Dataset("made", labels, *splits)


def lists_of(split: Split) -> list[list[str]]:
    """Label ids of each row."""
    return [[split.labels.ids[i] for i in split.Y.indices[a:b]] for a, b in pairwise(split.Y.indptr)]


def same(a: sparse.csr_matrix | None, b: sparse.csr_matrix | None) -> bool:
    """Whether two matrices are equal to the bit, or both absent."""
    if a is None or b is None:
        return a is b
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.indices, b.indices)
        and np.array_equal(a.data, b.data)
    )


def assert_same_split(found: Split, wanted: Split) -> None:
    assert same(found.Y, wanted.Y)
    assert found.Y.has_canonical_format
    assert found.texts == wanted.texts
    assert same(found.X, wanted.X)
    assert found.ids == wanted.ids
    assert np.array_equal(found.filter_pairs, wanted.filter_pairs)


def assert_same(found: Dataset, wanted: Dataset) -> None:
    """Everything that a data set says is equal, weights to the bit."""
    assert list(found.labels.ids) == list(wanted.labels.ids)
    assert list(found.labels.names) == list(wanted.labels.names)
    assert found.labels.texts == wanted.labels.texts
    assert same(found.labels.features, wanted.labels.features)
    assert found.labels.frequencies is not None
    assert (
        found.labels.frequencies.tolist() == np.bincount(wanted.train.Y.indices, minlength=len(wanted.labels)).tolist()
    )
    assert_same_split(found.train, wanted.train)
    assert (found.test is None) == (wanted.test is None)
    if found.test is not None and wanted.test is not None:
        assert found.test.labels is found.labels
        assert_same_split(found.test, wanted.test)


def sparse_lines(matrix: sparse.csr_matrix) -> list[str]:
    """Rows of `id:value`."""
    return [
        " ".join(f"{i}:{v:.9g}" for i, v in zip(matrix.indices[a:b], matrix.data[a:b].tolist(), strict=True))
        for a, b in pairwise(matrix.indptr)
    ]


class Files:
    """Writes text files the way users have them: gzip or not, byte-order mark or not, LF or CRLF."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.packed = self.marked = self.crlf = False

    def write(self, name: str, lines: list[str] | str) -> Path:
        end = "\r\n" if self.crlf else "\n"
        text = lines if isinstance(lines, str) else "".join(line + end for line in lines)
        data = text.encode("utf-8-sig" if self.marked else "utf-8")
        path = self.folder / (f"{name}.gz" if self.packed else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data) if self.packed else data)
        return path

"""Small data sets to check, count and split."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from deepxc.data.dataset import Dataset, Source, Split
from deepxc.data.label_space import LabelSpace


def label_rows(lists, width):
    """A label matrix from lists of label ids, as they stand."""
    indptr = np.cumsum([0, *map(len, lists)])
    indices = np.array([label for row in lists for label in row], np.int64)
    Y = sparse.csr_matrix((len(lists), width), dtype=np.float32)
    Y.indptr, Y.indices, Y.data = indptr.astype(np.int32), indices.astype(np.int32), np.ones(len(indices), np.float32)
    return Y


@pytest.fixture
def make_split():
    """make_split(labels, [(text, [label, ...]), ...], name, **parts)."""

    def make(labels, rows, name="trn.jsonl", **parts):
        Y = label_rows([row[1] for row in rows], len(labels))
        return Split(labels=labels, Y=Y, texts=[row[0] for row in rows], source=Source(name), **parts)

    return make


@pytest.fixture
def make_dataset(make_split):
    """make_dataset(label names, train rows, test rows, train={...}, test={...})."""

    def make(label_names, train_rows, test_rows=None, *, train=None, test=None, **space):
        labels = LabelSpace(**({"ids": label_names, "names": label_names, "texts": label_names} | space))
        trn = make_split(labels, train_rows, "trn.jsonl", **(train or {}))
        tst = None if test_rows is None else make_split(labels, test_rows, "tst.jsonl", **(test or {}))
        return Dataset("made", labels, trn, tst)

    return make

"""Diagnosis text to ICD-10-CM codes, from the classification that the package `simple-icd-10-cm` carries.

A text is a code's description or one of the terms that the classification lists under a code; its labels are the
categories and subcategories on the code's path that are divided further, the code itself included if it is one. Codes
that share their name with a block (`B99`) count as the block, as the package has it. The few codes whose path has no
such label (categories without subdivisions) have nothing to predict and are left out.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from deepxc.data.dataset import Source, Split
from deepxc.data.label_matrix import label_matrix
from deepxc.data.label_space import LabelSpace
from deepxc.data.rows import counted_dataset, starts
from deepxc.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepxc.data.dataset import Dataset


@dataclass(frozen=True)
class _Code:
    """A code that has something to predict: its path holds the labels, outermost first."""

    name: str
    description: str
    terms: tuple[str, ...]
    path: tuple[str, ...]


def load(seed: int = 0, test_share: float = 0.2) -> Dataset:
    """The `icd10` sample: 23,433 labels, about 107,700 train and 2,450 test texts.

    Train holds every description and the inclusion terms that test does not; test holds inclusion terms alone.

    Args:
        seed: Decides which inclusion terms are test texts, and the order of the rows.
        test_share: Share of the inclusion terms that go to test.
    """
    if not 0 < test_share < 1:
        raise UserError(f"test_share {test_share} is not between 0 and 1", where="icd10", remedy="Give one such as 0.2")
    codes = _codes()
    labels = _labels(codes)
    descriptions = [(code.name, code.description, code.path) for code in codes]
    terms = [(f"{code.name}/{i}", term, code.path) for code in codes for i, term in enumerate(code.terms, start=1)]
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(len(terms))
    cut = round(len(terms) * test_share)
    train = descriptions + [terms[i] for i in drawn[cut:]]
    order = rng.permutation(len(train))
    return counted_dataset(
        "icd10",
        {
            "train": _split([train[i] for i in order], labels, "icd10 train"),
            "test": _split([terms[i] for i in drawn[:cut]], labels, "icd10 test"),
        },
    )


def _labels(codes: Sequence[_Code]) -> LabelSpace:
    """Every label once, in the order of the classification."""
    ids = list(dict.fromkeys(chain.from_iterable(code.path for code in codes)))
    described = {code.name: code.description for code in codes}
    names = [described[name] for name in ids]
    return LabelSpace(ids=ids, names=names, texts=names)


def _split(rows: list[tuple[str, str, tuple[str, ...]]], labels: LabelSpace, name: str) -> Split:
    """Rows of (id, text, labels)."""
    index = {code: i for i, code in enumerate(labels.ids)}
    indptr = starts([len(path) for _, _, path in rows])
    indices = np.fromiter((index[code] for _, _, path in rows for code in path), np.int64, int(indptr[-1]))
    source = Source(name, first_line=0)
    return Split(
        labels=labels,
        Y=label_matrix(indptr, indices, None, len(labels), source.at),
        texts=[text for _, text, _ in rows],
        ids=[row for row, _, _ in rows],
        source=source,
    )


@lru_cache(maxsize=1)
def _codes() -> tuple[_Code, ...]:
    """Every code that has labels, in the order of the classification; read once a process.

    A code comes after the code it belongs to, so a path is its parent's path and perhaps one label more.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package reads its files in a way that Python deprecates
        import simple_icd_10_cm as icd

    paths: dict[str, tuple[str, ...]] = {}
    codes = []
    for name in icd.get_all_codes():
        if name in paths or icd.is_chapter_or_block(name):
            continue
        path = paths.get(icd.get_parent(name), ())
        if not icd.is_leaf(name):
            path = (*path, name)
        paths[name] = path
        if path:
            codes.append(_Code(name, icd.get_description(name), tuple(icd.get_inclusion_term(name)), path))
    return tuple(codes)

"""`read_dataset` and `read_split`: a folder, a file or a built-in sample's name, in any layout.

A folder is told by the names of its files, a file by its name and first bytes; nothing is ever taken for a layout
that it merely resembles without an error that says what is missing. Layouts, in the order in which they are tried:

- `matrices`: `trn_X_Y.txt` (or `Y.trn.npz`) with `trn_X_Xf.txt`, `X.trn.npz`, `trn_X.txt` or `trn.json`;
  label features in `lbl_X_Xf.txt` or `Yf.txt`, label texts in `lbl.json`, `Y.txt` or `output-labels.txt`
- `text-labels`: `train_texts.txt` with `train_labels.txt`
- `single-sparse`: `train.txt` with the header `rows features labels`, or `*_data.txt` with `*_trSplit.txt`
- `rows`: `trn.json`, `train.jsonl`, `train.csv`, `train.tsv`, `train.parquet` or `train.txt`, with the labels in
  `lbl.json`, `labels.*`, `vocab.*`, `vocabulary.*` or `subjects.*`

Every file may be gzip. Test and validation files carry the same names with `tst`/`test` and `val`/`valid`/`dev`.
The options of each layout are those of `ReadOptions`. Labels that only test rows have are kept: the label space is
the vocabulary where there is one, else every name that any part uses.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from deepxc.data.label_matrix import label_matrix
from deepxc.data.readers import matrix_files, part_files, row_files, single_sparse, text_and_label_files
from deepxc.data.readers import vocabulary as vocabularies
from deepxc.data.readers.folder import Folder
from deepxc.data.readers.options import ReadOptions
from deepxc.data.rows import LabelLists, UnknownLabels, known_labels, resolve, to_dataset, to_split, unknown_error
from deepxc.errors import DataError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepxc.data.dataset import Dataset, Split
    from deepxc.data.label_space import LabelSpace


@dataclass(frozen=True)
class Layout:
    """How one kind of folder is told and read."""

    name: str
    looks_for: str
    recognises: Callable[[Folder], bool]
    read: Callable[[Folder, ReadOptions], Dataset]


LAYOUTS = (
    Layout("matrices", "trn_X_Y.txt or Y.trn.npz", matrix_files.recognises, matrix_files.read),
    Layout("text-labels", "train_labels.txt", text_and_label_files.recognises, text_and_label_files.read),
    Layout("single-sparse", "*_data.txt with *_trSplit.txt", single_sparse.recognises, single_sparse.read),
    Layout("rows", "trn or train .json, .jsonl, .csv, .tsv, .parquet, .txt", part_files.recognises, part_files.read),
)
Part = Literal["train", "test", "validation"]


class SplitReading(NamedTuple):
    """Rows read against a label space, and the labels that it lacks."""

    split: Split
    unknown: UnknownLabels


def read_dataset(path: str | Path, **options: object) -> Dataset:
    """Read a folder, a file or a built-in sample's name; a path that exists wins over a sample's name.

    Args:
        path: What to read.
        **options: See `ReadOptions`; for a sample, its own options.

    Raises:
        DataError: Nothing there, not a data set, or a fault in it, told by file:line.
    """
    place = Path(path)
    if not place.exists():
        return _sample(str(path), options)
    chosen = ReadOptions.of(options)
    if place.is_dir():
        return _read_folder(Folder(place), chosen)
    if single_sparse.is_single_file(place) and chosen.layout in (None, "single-sparse"):
        return single_sparse.read_file(place, chosen)
    labels = None if chosen.vocabulary is None else vocabularies.read(chosen.vocabulary, chosen.language)
    rows = row_files.read_rows(place, chosen, labels)
    return to_dataset(chosen.name or place.name.split(".")[0], {"train": rows}, labels, chosen.unknown)


def read_split(
    path: str | Path,
    labels: LabelSpace,
    *,
    part: Part | None = None,
    unknown: Literal["error", "drop"] = "error",
    **options: object,
) -> SplitReading:
    """Read rows against labels that are already known, a model's for instance.

    Args:
        path: A file of rows, with labels or without (then Y is empty); or a folder or a sample's name, of which
            one part is read.
        labels: The label space; cells are its ids, its names or its row numbers.
        part: The part of a folder; test if not given, or train where there is no test.
        unknown: What a label that `labels` lacks is: an error, or left out of Y and counted in the result.
        **options: As for `read_dataset`.
    """
    place = Path(path)
    if place.is_file() and not single_sparse.is_single_file(place):
        rows = row_files.read_rows(place, ReadOptions.of(options), labels)
        return SplitReading(*to_split(rows, labels, unknown))
    data = read_dataset(path, **options)
    found = getattr(data, part) if part else data.test or data.train
    if found is None:
        raise DataError(f"there is no {part} part", where=str(path), remedy="Choose another part")
    return align(found, labels, unknown=unknown)


def align(split: Split, labels: LabelSpace, *, unknown: Literal["error", "drop"] = "error") -> SplitReading:
    """The same rows with their labels as rows of another label space, found by id and then by name.

    Labels that do not occur in the split need not be known. Filter pairs of unknown labels cannot matter to a
    model that does not know them either, and are left out.
    """
    if split.labels is labels or list(split.labels.ids) == list(labels.ids):
        return SplitReading(replace(split, labels=labels), UnknownLabels())
    own = split.labels
    names = dict(zip(own.ids, own.names, strict=True))
    Y, at = split.Y, split.at
    lists = LabelLists(Y.indptr.astype(np.int64), Y.indices.astype(np.int64), list(own.ids), Y.data)
    known, missing = known_labels(lists, labels, names, at)
    if missing and unknown == "error":
        raise unknown_error(missing)
    aligned = label_matrix(known.indptr, known.codes, known.weights, len(labels), at, repeated="merge")
    pairs = split.filter_pairs
    if len(pairs):
        mapped = resolve(list(own.ids), labels, names)[pairs[:, 1]]
        pairs = np.column_stack((pairs[:, 0], mapped))[mapped >= 0]
    return SplitReading(replace(split, labels=labels, Y=aligned, filter_pairs=pairs), missing)


def _read_folder(folder: Folder, options: ReadOptions) -> Dataset:
    if options.layout is not None:
        layout = next((layout for layout in LAYOUTS if layout.name == options.layout), None)
        if layout is None:
            known = ", ".join(layout.name for layout in LAYOUTS)
            raise UserError(f"{options.layout!r} is not a layout", remedy=f"Say one of {known}")
        layouts = [layout]
    else:
        layouts = list(LAYOUTS)
    for layout in layouts:
        if layout.recognises(folder):
            return layout.read(folder, options)
    wanted = "; ".join(layout.looks_for for layout in layouts)
    raise DataError(
        f"the folder is not a data set: looked for {wanted}; found {folder.listing()}",
        where=str(folder.path),
        remedy="Give the folder or file that holds the train part",
    )


def _sample(name: str, options: dict[str, object]) -> Dataset:
    """A built-in sample set, or an error that says what there is."""
    from deepxc.data.samples import SAMPLES, is_sample, load_sample

    if is_sample(name):
        return load_sample(name, **options)
    near = difflib.get_close_matches(name, SAMPLES, 1)
    hint = f"Did you mean the sample {near[0]}" if near else f"Give a path, or a sample: {', '.join(SAMPLES)}"
    raise DataError("no such file, folder or sample", where=name, remedy=hint)

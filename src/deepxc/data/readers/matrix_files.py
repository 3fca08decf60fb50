"""Layouts whose labels are a matrix file: the XC repository's sparse files, its plain-text kin, and PECOS's.

They differ in names alone, so one table of names holds them all. A part's rows are its label matrix's; its inputs
are features, texts or both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deepxc.data.dataset import Dataset, Source, Split
from deepxc.data.files import text_lines
from deepxc.data.label_space import LabelSpace
from deepxc.data.readers import filter_pairs, jsonl, vocabulary
from deepxc.data.readers.matrices import FileMatrix, read_features, read_label_matrix
from deepxc.data.rows import Rows, counted_dataset
from deepxc.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from deepxc.data.readers.folder import Folder
    from deepxc.data.readers.options import ReadOptions

LABELS = ("{}_X_Y.txt", "{}_X_Y.npz", "Y.{}.npz", "Y.{}.txt")
FEATURES = ("{}_X_Xf.txt", "{}_X_Xf.npz", "X.{}.npz", "X.{}.tfidf.npz", "X.{}.npy")
TEXTS = ("{}.json", "{}_X.txt", "X.{}.txt", "{}_raw_texts.txt", "{}_texts.txt")
LABEL_FEATURES = ("lbl_X_Xf.txt", "lbl_X_Xf.npz", "Yf.txt", "Y_Yf.txt", "Y.npz")
LABEL_TEXTS = ("Y.txt", "lbl_X.txt", "output-labels.txt", "output-items.txt", "label_texts.txt")


def recognises(folder: Folder) -> bool:
    """Whether the folder has a train label matrix with features or texts for its rows."""
    return "train" in folder.parts(*LABELS) and "train" in folder.parts(*FEATURES, *TEXTS)


def read(folder: Folder, options: ReadOptions) -> Dataset:
    """Read every part that has a label matrix."""
    targets = {part: read_label_matrix(path) for part, path in folder.parts(*LABELS).items()}
    width = targets["train"].matrix.shape[1]
    paths = folder.parts(*LABELS)
    for part, target in targets.items():
        _same(target.matrix.shape[1], width, "labels", paths[part], paths["train"])
    labels = _labels(folder, width, options)
    text_paths = folder.parts(*TEXTS)
    feature_paths = folder.parts(*FEATURES) if options.features or "train" not in text_paths else {}
    features = {part: read_features(path) for part, path in feature_paths.items() if part in targets}
    for part in features.keys() - {"train"}:
        if "train" in features:
            sizes = features[part].matrix.shape[1], features["train"].matrix.shape[1]
            _same(*sizes, "features", feature_paths[part], feature_paths["train"])
    pairs = filter_pairs.read_all(folder, {part: len(t.matrix.indptr) - 1 for part, t in targets.items()}, width)
    splits = {}
    for part, target in targets.items():
        rows = _texts(text_paths[part], options) if part in text_paths else None
        split = _split(labels, target, paths[part], features.get(part), rows)
        splits[part] = replace(split, filter_pairs=pairs.get(part, split.filter_pairs))
    return counted_dataset(options.name or folder.path.resolve().name, splits)


def _split(labels: LabelSpace, target: FileMatrix, path: Path, features: FileMatrix | None, rows: Rows | None) -> Split:
    """One part; its source is the file a person would look into: texts before features."""
    if features is None and rows is None:
        raise DataError("labels without texts or features", where=str(path), remedy="Add the part's texts or features")
    size = target.matrix.shape[0]
    source = target.source
    for part in (features, rows):
        if part is None:
            continue
        source = part.source
        count = len(part) if isinstance(part, Rows) else part.matrix.shape[0]
        _same(count, size, "rows", source.path, path)
    return Split(
        labels=labels,
        Y=target.matrix,
        texts=None if rows is None else rows.texts,
        X=None if features is None else features.matrix,
        ids=None if rows is None else rows.ids,
        source=source,
    )


def _texts(path: Path, options: ReadOptions) -> Rows:
    """Texts of a part; the labels that raw rows carry are left to the matrix."""
    if path.name.removesuffix(".gz").endswith(".json"):
        return jsonl.read_rows(path, options)
    return Rows(Source(str(path)), text_lines(path))


def _labels(folder: Folder, width: int, options: ReadOptions) -> LabelSpace:
    """The label space: numbered, or as label files beside the matrices describe it."""
    described = options.vocabulary or folder.find("lbl.json", "labels.json", "lbl.jsonl", "labels.jsonl")
    texts = folder.find(*LABEL_TEXTS)
    labels = LabelSpace.numbered(width)
    if described is not None:
        labels = vocabulary.read(described, options.language)
        _same(len(labels), width, "labels", described, "the label matrix")
    elif texts is not None:
        lines = text_lines(texts)
        _same(len(lines), width, "labels", texts, "the label matrix")
        labels = LabelSpace(labels.ids, lines, lines)
    path = folder.find(*LABEL_FEATURES)
    if path is not None and options.features:
        matrix = read_features(path).matrix
        _same(matrix.shape[0], width, "labels", path, "the label matrix")
        labels = replace(labels, features=matrix)
    return labels


def _same(count: int, wanted: int, what: str, path: Path | str, other: Path | str) -> None:
    if count != wanted:
        raise DataError(
            f"{count} {what}, but {other} has {wanted}", where=str(path), remedy="Use files that were made together"
        )

"""Every format, written and read back: what goes in comes out."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_data import LINE_TEXT, WEIGHT, Files, assert_same, datasets, lists_of, quick, sparse_lines
from scipy import sparse

from deepxc.data.dataset import Dataset
from deepxc.data.label_space import LabelSpace
from deepxc.data.writers import write_parquet, write_xc_raw

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x00"), max_size=9)
ways = st.tuples(st.booleans(), st.booleans(), st.booleans())


def fresh(way: tuple[bool, bool, bool] = (False, False, False)) -> Files:
    """A new folder for one example, files packed, marked, with CRLF as the way says."""
    files = Files(Path(tempfile.mkdtemp()) / "data")
    files.packed, files.marked, files.crlf = way
    return files


def parts_of(data: Dataset):
    assert data.test is not None
    return (("trn", data.train), ("tst", data.test))


def numbered(data: Dataset) -> Dataset:
    """The same data set with labels that have no names."""
    return relabelled(data, LabelSpace.numbered(len(data.labels)))


def relabelled(data: Dataset, labels: LabelSpace) -> Dataset:
    assert data.test is not None
    return Dataset(data.name, labels, replace(data.train, labels=labels), replace(data.test, labels=labels))


def bare(data: Dataset, **changes) -> Dataset:
    """The same data set without row ids and filter pairs, which most formats cannot hold."""
    changes = {"ids": None, "filter_pairs": np.empty((0, 2), np.int64), **changes}
    assert data.test is not None
    return Dataset(data.name, data.labels, replace(data.train, **changes), replace(data.test, **changes))


@quick
@given(datasets(text=ANY_TEXT, weights=WEIGHT), st.booleans())
def test_xc_raw(data, weighted):
    if not weighted:
        data.train.Y.data[:] = 1
    folder = write_xc_raw(data, fresh().folder / "out")
    assert_same(Dataset.read(folder), data)


@quick
@given(datasets(text=ANY_TEXT, weights=WEIGHT, features=True))
def test_xc_raw_with_features(data):
    assert_same(Dataset.read(write_xc_raw(data, fresh().folder)), data)
    without = Dataset.read(write_xc_raw(data, fresh().folder), features=False)
    assert without.train.X is None
    assert without.train.texts == data.train.texts


@quick
@given(datasets(text=ANY_TEXT, weights=WEIGHT, features=True), st.booleans(), st.booleans())
def test_parquet(data, with_features, with_texts):
    if not with_features:
        data = bare(data, X=None, ids=data.train.ids and None)
        data = relabelled(data, replace(data.labels, features=None))
    elif not with_texts:
        data = bare(data, texts=None)
    assert_same(Dataset.read(write_parquet(data, fresh().folder)), data)


@quick
@given(datasets(weights=WEIGHT, features=True), ways)
def test_xc_sparse(data, way):
    data = numbered(data)
    files = fresh(way)
    labels = replace(data.labels, features=sparse.csr_matrix(np.eye(len(data.labels), 3, dtype=np.float32)))
    data = bare(relabelled(data, labels), texts=None)
    for part, split in parts_of(data):
        files.write(f"{part}_X_Xf.txt", [f"{len(split)} {split.X.shape[1]}", *sparse_lines(split.X)])
        files.write(f"{part}_X_Y.txt", [f"{len(split)} {len(data.labels)}", *sparse_lines(split.Y)])
    features = data.labels.features
    files.write("Yf.txt", [f"{features.shape[0]} {features.shape[1]}", *sparse_lines(features)])
    assert_same(Dataset.read(files.folder), data)


@quick
@given(datasets(features=True), ways, st.booleans())
def test_xc_single_file(data, way, trimmed):
    data = bare(numbered(data), texts=None)
    data = relabelled(data, replace(data.labels, features=None))
    files = fresh(way)
    for part, split in (("train", data.train), ("test", data.test)):
        rows = [
            ",".join(labels) + " " + row for labels, row in zip(lists_of(split), sparse_lines(split.X), strict=True)
        ]
        rows = [row.strip() for row in rows] if trimmed else rows
        files.write(f"small_{part}.txt", [f"{len(split)} {split.X.shape[1]} {len(data.labels)}", *rows])
    assert_same(Dataset.read(files.folder), data)


@quick
@given(datasets(), ways, st.booleans(), st.booleans())
def test_plain_text_family(data, way, stored, filtered):
    data = bare(data, filter_pairs=data.train.filter_pairs[:0])
    texts = [f"label {i}" for i in range(len(data.labels))]
    data = relabelled(data, LabelSpace([str(i) for i in range(len(texts))], texts, texts))
    files = fresh(way)
    for part, split in parts_of(data):
        files.write(f"{part}_X.txt", list(split.texts))
        if stored:
            sparse.save_npz(files.folder / f"Y.{part}.npz", split.Y)
        else:
            files.write(f"{part}_X_Y.txt", [f"{len(split)} {len(texts)}", *sparse_lines(split.Y)])
    files.write("Y.txt", texts)
    if filtered:  # a file of one line, which trips other readers
        files.write("trn_filter_labels.txt", ["0 0"])
        files.write("filter_labels_test.txt", "")
        data = replace(data, train=replace(data.train, filter_pairs=np.array([[0, 0]])))
    assert_same(Dataset.read(files.folder), data)


@quick
@given(datasets(weights=WEIGHT, features=True), st.booleans())
def test_pecos(data, with_texts):
    texts = [f"label {i}" for i in range(len(data.labels))]
    data = bare(relabelled(data, LabelSpace([str(i) for i in range(len(texts))], texts, texts)))
    files = fresh()
    files.write("output-labels.txt", texts)
    for part, split in parts_of(data):
        sparse.save_npz(files.folder / f"X.{part}.npz", split.X)
        sparse.save_npz(files.folder / f"Y.{part}.npz", split.Y)
        if with_texts:
            files.write(f"X.{part}.txt", list(split.texts))
    assert_same(Dataset.read(files.folder), data if with_texts else bare(data, texts=None))


@quick
@given(datasets(), ways)
def test_text_and_label_files(data, way):
    data = with_every_label(data)
    files = fresh(way)
    for part, split in (("train", data.train), ("test", data.test)):
        files.write(f"{part}_texts.txt", list(split.texts))
        files.write(f"{part}_labels.txt", [" ".join(labels) for labels in lists_of(split)])
    assert_same(Dataset.read(files.folder), data)


def with_every_label(data: Dataset) -> Dataset:
    """The data set with every label in the first test row, labels known by name alone and sorted."""
    data = bare(relabelled(data, LabelSpace.from_names(sorted(data.labels.ids))))
    assert data.test is not None
    Y = data.test.Y.tolil()
    Y[0, :] = 1
    Y = sparse.csr_matrix(Y, dtype=np.float32)
    return replace(data, test=replace(data.test, Y=Y))


@quick
@given(datasets(text=ANY_TEXT, weights=WEIGHT), ways, st.booleans())
def test_jsonl(data, way, array):
    if array:
        way = (way[0], way[1], False)
    data = with_every_label(data)
    files = fresh(way)
    for part, split in parts_of(data):
        starts = split.Y.indptr
        rows = [
            json.dumps({"text": text, "labels": labels, "weights": split.Y.data[starts[i] : starts[i + 1]].tolist()})
            for i, (text, labels) in enumerate(zip(split.texts, lists_of(split), strict=True))
        ]
        if array:
            files.write(f"{part}.json", "[" + ",\n".join(rows) + "]")
        else:
            files.write(f"{part}.jsonl", rows)
    assert_same(Dataset.read(files.folder), data)


@quick
@given(datasets(text=CELL), ways)
def test_jsonl_with_objects_and_vocabulary(data, way):
    data = bare(data)
    files = fresh(way)
    for part, split in parts_of(data):
        rows = [
            {"title": text, "subjects": [{"uri": label} for label in labels]}
            for text, labels in zip(split.texts, lists_of(split), strict=True)
        ]
        files.write(f"{part}.jsonl", [json.dumps(row) for row in rows])
    texts = data.labels.texts or [None] * len(data.labels)
    rows = zip(data.labels.ids, data.labels.names, texts, strict=True)
    files.write("labels.jsonl", [json.dumps({"uri": a, "name": b, "text": c}) for a, b, c in rows])
    assert_same(Dataset.read(files.folder), data)


@pytest.mark.parametrize(("ending", "delimiter"), [("csv", ","), ("tsv", "\t"), ("csv", ";")])
@quick
@given(
    data=datasets(text=CELL),
    way=ways,
)
def test_named_columns(data, way, ending, delimiter):
    data = with_every_label(data)
    files = fresh((way[0], way[1], False))
    for part, split in (("train", data.train), ("dev", data.test)):
        out = io.StringIO(newline="")
        writer = csv.writer(out, delimiter=delimiter, lineterminator="\r\n" if way[2] else "\n", quoting=csv.QUOTE_ALL)
        writer.writerow(["Text", "Labels"])
        writer.writerows(zip(split.texts, map("|".join, lists_of(split)), strict=True))
        files.write(f"{part}.{ending}", out.getvalue())
    found = Dataset.read(files.folder, separator="|")
    assert_same(replace(found, test=found.validation, validation=None), data)


@quick
@given(datasets(), ways)
def test_annif_short_text(data, way):
    data = bare(data)
    uris = [f"http://example.org/{name}" for name in data.labels.ids]
    names = [name.strip() or "-" for name in data.labels.names]
    data = relabelled(data, LabelSpace(uris, names, names))
    files = fresh(way)
    for part, split in parts_of(data):
        rows = zip(split.texts, lists_of(split), strict=True)
        files.write(
            f"corpus-{part}.tsv", [f"{text}\t{' '.join(f'<{uri}>' for uri in labels)}" for text, labels in rows]
        )
    files.write("vocab.tsv", [f"<{uri}>\t{name}" for uri, name in zip(uris, names, strict=True)])
    assert_same(Dataset.read(files.folder), data)


@quick
@given(datasets(text=LINE_TEXT.filter(lambda text: not text.startswith("__label__"))), ways)
def test_fasttext(data, way):
    data = with_every_label(data)
    files = fresh(way)
    for part, split in (("train", data.train), ("test", data.test)):
        rows = zip(split.texts, lists_of(split), strict=True)
        lines = ["".join(f"__label__{label} " for label in labels) + text for text, labels in rows]
        files.write(f"{part}.txt", ["__label__nfirst x", *lines])
    found = Dataset.read(files.folder)
    assert found.train.texts == ["x", *data.train.texts]
    assert [sorted(labels) for labels in lists_of(found.train)[1:]] == [
        sorted(labels) for labels in lists_of(data.train)
    ]
    assert found.test is not None
    assert found.test.at(1).endswith(":2")


@quick
@given(datasets(weights=WEIGHT), ways)
def test_text2text(data, way):
    data = bare(numbered(data))
    Y = data.train.Y.tolil()
    Y[0, len(data.labels) - 1] = 2.5
    data = replace(data, train=replace(data.train, Y=sparse.csr_matrix(Y, dtype=np.float32)))
    names = [f"label {i}" for i in range(len(data.labels))]
    data = relabelled(data, LabelSpace.from_names(names))
    files = fresh(way)
    for part, split in (("train", data.train), ("test", data.test)):
        if part == "test" and not split.Y.indptr[1]:
            split.texts[0], split.texts[-1] = split.texts[-1], split.texts[0]
        rows = [",".join(row.split()).replace(":", "::") + "\t" for row in sparse_lines(split.Y)]
        files.write(f"{part}.txt", [row + text for row, text in zip(rows, split.texts, strict=True)])
    files.write("output-labels.txt", names)
    if not data.test.Y.indptr[1]:  # a file that begins with an unlabelled text does not look like its format
        (files.folder / ("test.txt.gz" if way[0] else "test.txt")).unlink()
        data = replace(data, test=None)
    assert_same(Dataset.read(files.folder), data)

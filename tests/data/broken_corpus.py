"""The corpus of broken data: what is in the folder, and what the error must say, where, with which remedy."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse


@dataclass(frozen=True)
class Broken:
    """One folder that must not read.

    Attributes:
        name: What is wrong with it.
        files: Contents by file name.
        what: Part of the error.
        where: End of the place: file:line, a file or the folder.
        options: Options to read it with.
    """

    name: str
    files: dict[str, bytes]
    what: str
    where: str
    options: dict[str, object] = field(default_factory=dict)


LABELS = b'{"uid": "a", "title": "A"}\n{"uid": "b", "title": "B"}\n'
ROW = b'{"title": "x", "target_ind": [0]}\n'
XY = b"2 3\n0:1 2:1\n1:1\n"
XF = b"2 4\n0:0.5\n1:1 3:2\n"
PACKED = gzip.compress(ROW * 20000)
FLIPPED = PACKED[:-8] + bytes(4) + PACKED[-4:]  # the checksum


def raw(name: str, train: bytes, what: str, where: str = "trn.json:2", **options) -> Broken:
    return Broken(name, {"trn.json": train, "lbl.json": LABELS}, what, where, options)


def sparse_labels(name: str, labels: bytes, what: str, where: str) -> Broken:
    return Broken(name, {"trn_X_Xf.txt": XF, "trn_X_Y.txt": labels}, what, where)


def sparse_features(name: str, features: bytes, what: str, where: str) -> Broken:
    return Broken(name, {"trn_X_Xf.txt": features, "trn_X_Y.txt": XY}, what, where)


def single(name: str, data: bytes, what: str, where: str) -> Broken:
    return Broken(name, {"train.txt": data}, what, where)


def csv(name: str, data: bytes, what: str, where: str, **options) -> Broken:
    return Broken(name, {"train.csv": data}, what, where, options)


def stored(matrix: sparse.csr_matrix) -> bytes:
    out = io.BytesIO()
    sparse.save_npz(out, matrix)
    return out.getvalue()


def past_the_end() -> sparse.csr_matrix:
    matrix = sparse.csr_matrix(np.eye(2, dtype=np.float32))
    matrix.indices[1] = 7
    return matrix


def table(**columns) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def objects() -> bytes:
    out = io.BytesIO()
    np.save(out, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return out.getvalue()


CORPUS = [
    # folders
    Broken("empty folder", {}, "looked for trn_X_Y.txt", "data"),
    Broken("no data set", {"notes.md": b"x", "a.bin": b"y"}, "found a.bin, notes.md", "data"),
    Broken("unknown layout", {"trn.json": ROW}, "'xml' is not a layout", "", {"layout": "xml"}),
    Broken("unknown option", {"trn.json": ROW}, "Did you mean separator", "", {"seperator": "|"}),
    # any text file
    raw("empty file", b"", "the file is empty", "trn.json"),
    raw("a mark and nothing else", b"\xef\xbb\xbf", "the file is empty", "trn.json"),
    raw("UTF-16", ROW.decode().encode("utf-16"), "UTF-16", "trn.json:1"),
    Broken("truncated gzip", {"trn.json.gz": PACKED[:-100]}, "the gzip data end too early", "trn.json.gz"),
    Broken("gzip cut in its head", {"trn.json.gz": PACKED[:5]}, "the gzip data end too early", "trn.json.gz"),
    Broken("gzip with a wrong checksum", {"trn.json.gz": FLIPPED}, "damaged gzip data", "trn.json.gz"),
    # JSON lines
    raw("not JSON", ROW + b'{"title": "x", }\n', "not valid JSON at column 14"),
    raw("two objects in a line", ROW + ROW.strip() + ROW, "not valid JSON"),
    raw("not an object", ROW + b"[1]\n", "not a JSON object"),
    raw("not UTF-8", ROW + b'{"title": "caf\xe9", "target_ind": []}\n', "not UTF-8 (byte 0xe9)"),
    raw("no text", ROW + b'{"target_ind": []}\n', "no title"),
    Broken("rows without fields", {"train.jsonl": b"{}\n{}\n"}, "no field named text", "train.jsonl:1"),
    raw("a number as text", ROW + b'{"title": 7, "target_ind": []}\n', "the text is a int"),
    raw("no such field", ROW, "no field named body; there are title, target_ind", "trn.json:1", text="body"),
    raw("label past the end", ROW + b'{"title": "x", "target_ind": [0, 2]}\n', "label id 2 is past the last of 2"),
    raw("label below 0", ROW + b'{"title": "x", "target_ind": [-1]}\n', "label id -1 is negative"),
    raw("label at the end of 64 bits", ROW + b'{"title": "x", "target_ind": [18446744073709551615]}\n', "out of range"),
    raw("label far past the end", ROW + b'{"title": "x", "target_ind": [99999999999999999999]}\n', "not a row number"),
    raw("label twice", ROW + b'{"title": "x", "target_ind": [1, 0, 1]}\n', "label id 1 stands twice"),
    raw("label no number", ROW + b'{"title": "x", "target_ind": ["a"]}\n', "label 'a' is not a row number"),
    raw(
        "weight missing",
        b'{"title": "x", "target_ind": [0], "target_rel": [1]}\n{"title": "x", "target_ind": [0], "target_rel": []}\n',
        "0 weights for 1 labels",
    ),
    raw(
        "weights begin late",
        ROW + b'{"title": "x", "target_ind": [0], "target_rel": [-0.5]}\n',
        "0 weights for 1",
        "trn.json:1",
    ),
    raw("weight NaN", b'\n{"title": "x", "target_ind": [0], "target_rel": [NaN]}\n', "not valid JSON"),
    raw("weight negative", b'\n{"title": "x", "target_ind": [0], "target_rel": [-1.5]}\n', "label weight -1.5 is not"),
    raw("weight huge", b'\n{"title": "x", "target_ind": [0], "target_rel": [1e60]}\n', "label weight 1e+60 is not"),
    raw("weight text", b'\n{"title": "x", "target_ind": [0], "target_rel": ["1"]}\n', "label weight '1' is not"),
    Broken("no labels", {"train.jsonl": b'{"text": "x"}\n'}, "no labels found", "train.jsonl"),
    Broken("JSON array cut off", {"train.json": b'[{"text": "x"},\n{"te'}, "not valid JSON", "train.json:2"),
    Broken("JSON array of numbers", {"train.json": b"[1]"}, "not a JSON object", "train.json, row 0"),
    Broken(
        "odd label", {"train.jsonl": b'{"text": "x", "labels": [1.5]}\n'}, "label 1.5 is not a name", "train.jsonl:1"
    ),
    Broken(
        "label without a name",
        {"train.jsonl": b'{"text": "x", "labels": [{"x": 1}]}\n'},
        "a label has none",
        ".jsonl:1",
    ),
    # vocabularies
    Broken("label id twice", {"trn.json": ROW, "lbl.json": LABELS + LABELS}, "'a' stands twice", "lbl.json:3"),
    Broken("blank line among labels", {"trn.json": ROW, "lbl.json": b"\n" + LABELS}, "blank line", "lbl.json:1"),
    Broken("nameless labels", {"trn.json": ROW, "lbl.json": b'{"x": 1}\n'}, "labels have none of", "lbl.json:1"),
    Broken(
        "unknown label",
        {"train.jsonl": b'{"text": "x", "labels": ["a", "c", "c"]}\n', "labels.txt": b"a\nb\n"},
        "label 'c' is not among the known labels (and 1 more",
        "train.jsonl:1",
    ),
    Broken("vocabulary without a tab", {"train.tsv": b"x\t<u:a>\n", "vocab.tsv": b"<u:a>\n"}, "no tab", "vocab.tsv:1"),
    Broken(
        "vocabulary in two languages",
        {"train.tsv": b"x\t<u:a>\n", "vocab.csv": b"uri,label_en,label_fi\nu:a,a,b\n"},
        "several languages",
        "vocab.csv:1",
    ),
    # sparse text
    sparse_labels("no header", b"0:1 2:1\n1:1\n", "does not give 2 sizes", "trn_X_Y.txt:1"),
    sparse_labels("too few rows", b"2 3\n0:1\n", "the header says 2 rows but there are 1", "trn_X_Y.txt:1"),
    sparse_labels("too many rows", b"1 3\n0:1\n1:1\n", "the header says 1 rows but there are 2", "trn_X_Y.txt:1"),
    sparse_labels("too many lines", b"1 3\n0:1\n\n1:1\n", "the header says 1 rows but there are 3", "trn_X_Y.txt:1"),
    sparse_labels("label past the end", b"2 3\n0:1\n1:1 3:1\n", "the id of `3:1` is past the last of 3", "Y.txt:3"),
    sparse_labels("label twice", b"2 3\n0:1\n1:1 1:1\n", "id 1 stands twice", "trn_X_Y.txt:3"),
    sparse_labels("label twice apart", b"2 3\n0:1\n1:1 0:1 1:2\n", "id 1 stands twice", "trn_X_Y.txt:3"),
    sparse_labels("NaN", b"2 3\n0:1\n1:nan\n", "`1:nan` is not finite", "trn_X_Y.txt:3"),
    sparse_labels("infinity", b"2 3\n# note\n0:1\n1:-Inf\n", "`1:-Inf` is not finite", "trn_X_Y.txt:4"),
    sparse_labels("too large", b"2 3\n0:1\n1:1e39\n", "`1:1e39` is not finite", "trn_X_Y.txt:3"),
    sparse_labels("negative weight", b"2 3\n0:1 1:-1\n1:1\n", "the weight of `1:-1` is negative", "trn_X_Y.txt:2"),
    sparse_labels("no colon", b"2 3\n0:1\n1 2\n", "`1` is not a pair", "trn_X_Y.txt:3"),
    sparse_labels("no id", b"2 3\n0:1\n:1\n", "`:1` does not begin with an id", "trn_X_Y.txt:3"),
    sparse_labels("negative id", b"2 3\n0:1\n-1:1\n", "`-1:1` does not begin with an id", "trn_X_Y.txt:3"),
    sparse_labels("no value", b"2 3\n0:1\n1:\n", "value of `1:` is not a number", "trn_X_Y.txt:3"),
    sparse_labels("odd value", b"2 3\n0:1\n1:1x\n", "value of `1:1x` is not a number", "trn_X_Y.txt:3"),
    sparse_labels("odd exponent", b"2 3\n0:1\n1:1e\n", "value of `1:1e` is not a number", "trn_X_Y.txt:3"),
    sparse_labels("huge id", b"2 3\n0:1\n99999999999999999999:1\n", "is past the last of 3", "trn_X_Y.txt:3"),
    sparse_labels("too wide", b"2 3000000000\n0:1\n1:1\n", "more than 2^31 columns", "trn_X_Y.txt:1"),
    sparse_labels("blank", b"\n\n", "the file is empty", "trn_X_Y.txt"),
    sparse_features("feature NaN", b"2 4\n0:1\n1:NaN\n", "`1:NaN` is not finite", "trn_X_Xf.txt:3"),
    sparse_features("rows that differ", b"1 4\n0:1\n", "1 rows, but", "trn_X_Xf.txt"),
    Broken(
        "features that differ",
        {"trn_X_Xf.txt": XF, "trn_X_Y.txt": XY, "tst_X_Xf.txt": b"1 5\n0:1\n", "tst_X_Y.txt": b"1 3\n0:1\n"},
        "5 features, but",
        "tst_X_Xf.txt",
    ),
    Broken(
        "labels that differ",
        {"trn_X_Xf.txt": XF, "trn_X_Y.txt": XY, "tst_X_Xf.txt": b"1 4\n0:1\n", "tst_X_Y.txt": b"1 2\n0:1\n"},
        "2 labels, but",
        "tst_X_Y.txt",
    ),
    Broken(
        "label features that differ",
        {"trn_X_Xf.txt": XF, "trn_X_Y.txt": XY, "lbl_X_Xf.txt": b"1 4\n0:1\n"},
        "1 labels, but",
        "lbl_X_Xf.txt",
    ),
    Broken(
        "test labels alone",
        {"trn_X_Xf.txt": XF, "trn_X_Y.txt": XY, "tst_X_Y.txt": b"1 3\n0:1\n"},
        "labels without texts or features",
        "tst_X_Y.txt",
    ),
    # filter files
    Broken(
        "filter row",
        {"trn.json": ROW, "filter_labels_train.txt": b"0 0\n1 0\n"},
        "row 1 is not one of 1",
        "train.txt:2",
    ),
    Broken(
        "filter label", {"trn.json": ROW, "filter_labels_train.txt": b"0 1\n"}, "label 1 is not one of 1", "train.txt:1"
    ),
    Broken(
        "filter words", {"trn.json": ROW, "filter_labels_train.txt": b"0 0\n\n0\n"}, "`0` is not a pair", "train.txt:3"
    ),
    # the old single file
    single("rows in the header", b"2 3 2\n0 1:1\n", "the header says 2 rows but there are 1", "train.txt:1"),
    single("label past the end", b"1 3 2\n0,2 1:1\n", "a label of `0,2` is past the last of 2", "train.txt:2"),
    single("feature past the end", b"1 3 2\n0 3:1\n", "the id of `3:1` is past the last of 3", "train.txt:2"),
    single("odd labels", b"1 3 2\n0,x 1:1\n", "`0,x` is not a list of labels", "train.txt:2"),
    single("trailing comma", b"1 3 2\n0, 1:1\n", "`0,` is not a list of labels", "train.txt:2"),
    single("label twice", b"1 3 2\n0,0 1:1\n", "label id 0 stands twice", "train.txt:2"),
    Broken(
        "split files past the end",
        {"x_data.txt": b"1 3 2\n0 1:1\n", "x_trSplit.txt": b"1\n2\n"},
        "a row number is past",
        "x_trSplit.txt",
    ),
    # texts and labels side by side
    Broken(
        "fewer labels than texts",
        {"train_texts.txt": b"a\nb\n", "train_labels.txt": b"x\n"},
        "1 lines, but",
        "train_labels.txt",
    ),
    Broken("text not UTF-8", {"trn_X.txt": b"a\nb\xff\n", "trn_X_Y.txt": XY}, "not UTF-8 (byte 0xff)", "trn_X.txt:2"),
    # delimited files
    csv("columns twice", b"text,labels,labels\nx,a,b\n", "the column 'labels' stands twice", "train.csv:1"),
    csv("no text column", b"a,b\n1,2\n", "no field named text; there are a, b", "train.csv:1"),
    csv("header alone", b"text,labels\n", "the file is empty", "train.csv"),
    csv("too many cells", b"text,labels\nx,a\ny,a,b\n", "3 cells in a file of 2 columns", "train.csv:3"),
    csv("too few cells", b'text,labels\n"x\ny",a\ny\n', "1 cells in a file of 2 columns", "train.csv:4"),
    csv("quote left open", b'text,labels\nx,a\n"y,a\nz,b\n', "not valid CSV", "train.csv:3"),
    csv("text behind a quote", b'text,labels\n"x" y,a\n', "not valid CSV", "train.csv:2"),
    csv("commas in label cells", b'text,labels\nx,"a, b"\n', "one label or several", "train.csv:2"),
    csv("weights that differ", b"text,labels,weights\nx,a|b,1\n", "1 weights for 2 labels", "train.csv:2"),
    csv("weights that are words", b"text,labels,weights\nx,a,w\n", "are not numbers", "train.csv:2"),
    csv("weights below 0", b"text,labels,weights\nx,a,-1\n", "label weight -1 is not", "train.csv:2"),
    csv("not UTF-8", b"text,labels\nx,\xe4\n", "not UTF-8 (byte 0xe4)", "train.csv:2"),
    csv("a JSON cell cut off", b'text,labels\nx,"[""a"""\n', "is not a JSON list", "train.csv:2"),
    csv("positions that are words", b"text,target_ind\nx,a\n", "label 'a' is not a row number", "train.csv:2"),
    Broken("no tab", {"train.tsv": b"x\t<u:a>\ny\n"}, "no tab between text and labels", "train.tsv:2"),
    Broken("no tab in text2text", {"train.txt": b"0,1\tx\n0\n"}, "no tab between labels and text", "train.txt:2"),
    Broken("words in text2text", {"train.txt": b"0,1\tx\na\ty\n"}, "`a` is not a list of label numbers", "train.txt:2"),
    Broken("bare texts", {"train.txt": b"x\ny\n"}, "no labels found", "train.txt"),
    # stored matrices and tables
    Broken("not a matrix", {"X.trn.npz": b"PK", "Y.trn.npz": b"PK"}, "not a readable sparse matrix", "Y.trn.npz"),
    Broken(
        "matrix past its end",
        {"trn_X.txt": b"a\nb\n", "Y.trn.npz": stored(past_the_end())},
        "not a readable sparse matrix",
        "Y.trn.npz",
    ),
    Broken(
        "matrix with a weight below 0",
        {"trn_X.txt": b"a\nb\n", "Y.trn.npz": stored(sparse.csr_matrix([[0.0, 1.0], [-1.0, 0.0]]))},
        "label weight -1 is not",
        "Y.trn.npz, row 1",
    ),
    Broken(
        "features that are not finite",
        {"X.trn.npz": stored(sparse.csr_matrix([[1.0], [np.nan]])), "Y.trn.npz": stored(sparse.csr_matrix(np.eye(2)))},
        "a feature value is not finite",
        "X.trn.npz, row 1",
    ),
    Broken(
        "pickled features",
        {"X.trn.npy": objects(), "Y.trn.npz": stored(sparse.csr_matrix(np.eye(2)))},
        "Object arrays cannot be loaded",
        "X.trn.npy",
    ),
    Broken(
        "Parquet cut off", {"train.parquet": table(text=["x"], labels=[["a"]])[:-20]}, "not a readable", "train.parquet"
    ),
    Broken("Parquet without rows", {"train.parquet": table(text=pa.array([], pa.string()))}, "empty", "train.parquet"),
    Broken("Parquet of numbers", {"train.parquet": table(text=[1.5], labels=[["a"]])}, "holds double", "train.parquet"),
    Broken("null in a list", {"train.parquet": table(text=["x"], labels=[["a", None]])}, "holds null", "train.parquet"),
    Broken(
        "weights in Parquet",
        {"train.parquet": table(text=["x", "y"], labels=[["a"], ["b"]], weights=[[1.0], [1.0, 2.0]])},
        "2 weights for 1 labels",
        "train.parquet, row 1",
    ),
    Broken(
        "one by name, one by position",
        {"trn.jsonl": ROW, "tst.jsonl": json.dumps({"text": "x", "labels": ["a"]}).encode()},
        "by position, another by name",
        "tst.jsonl",
    ),
]

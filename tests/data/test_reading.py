"""What a layout means: label spaces, options, places of rows, rows read against a model's labels."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_data import lists_of

from deepxc.data.dataset import Dataset
from deepxc.data.label_space import LabelSpace
from deepxc.data.reading import align, read_split
from deepxc.errors import DataError, UserError

LABELS = LabelSpace(["u:1", "u:2", "u:3"], ["one", "two", "three"], ["one", "two", "three"])


def jsonl(*rows) -> list[str]:
    return [json.dumps(row) for row in rows]


def test_title_and_content_are_joined_unless_the_text_is_named(files):
    files.write("trn.json", jsonl({"title": "a", "target_ind": [0]}, {"title": "b", "content": "c", "target_ind": []}))
    files.write("lbl.json", jsonl({"uid": "u", "title": "t", "content": "said"}))
    data = Dataset.read(files.folder)
    assert data.train.texts == ["a", "b c"]
    assert data.labels.texts == ["t said"]
    assert data.labels.names == ["t"]
    assert Dataset.read(files.folder, text="title").train.texts == ["a", "b"]
    assert Dataset.read(files.folder, text=["content", "title"]).train.texts == ["a", "c b"]


def test_labels_go_as_far_as_the_label_file(files):
    files.write("trn.json", jsonl({"title": "a", "target_ind": [0]}))
    files.write("lbl.json", jsonl({"uid": "u"}, {"uid": "v", "title": "V"}, {"title": "w"}))
    data = Dataset.read(files.folder)
    assert data.train.Y.shape == (1, 3)
    assert data.labels.ids == ["u", "v", "w"]
    assert data.labels.names == ["u", "V", "w"]
    assert data.labels.frequencies.tolist() == [1, 0, 0]


def test_labels_by_position_without_a_label_file(files):
    files.write("trn.json", jsonl({"title": "a", "target_ind": [0]}))
    files.write("tst.json", jsonl({"title": "b", "target_ind": [4]}))
    assert Dataset.read(files.folder).labels.ids == ["0", "1", "2", "3", "4"]


def test_names_of_test_alone_are_labels_too(files):
    files.write("train.jsonl", jsonl({"text": "a", "labels": ["b", "a"]}))
    files.write("test.jsonl", jsonl({"text": "a", "labels": ["c"]}))
    data = Dataset.read(files.folder)
    assert data.labels.ids == ["a", "b", "c"]
    assert data.labels.frequencies.tolist() == [1, 1, 0]
    assert lists_of(data.test) == [["c"]]


def test_numbers_as_labels_are_ordered_as_numbers(files):
    files.write("train.jsonl", jsonl({"text": "a", "labels": [10, 9]}, {"text": "b", "labels": 100}))
    assert Dataset.read(files.folder).labels.ids == ["9", "10", "100"]


def test_labels_with_ids_and_names(files):
    files.write("train.jsonl", jsonl({"text": "a", "labels": [{"id": "x", "name": "The X", "score": 0.5}, "y"]}))
    data = Dataset.read(files.folder)
    assert data.labels.ids == ["x", "y"]
    assert data.labels.names == ["The X", "y"]
    assert data.train.Y.data.tolist() == [0.5, 1]


def test_a_label_named_twice_in_a_row_is_one_label(files):
    files.write("train.jsonl", jsonl({"text": "a", "labels": ["x", "x"], "weights": [1, 2]}))
    assert Dataset.read(files.folder).train.Y.data.tolist() == [2]


def test_a_weight_of_zero_is_no_label(files):
    files.write("train.jsonl", jsonl({"text": "a", "labels": ["x", "y"], "weights": [0, 1]}))
    data = Dataset.read(files.folder)
    assert data.train.Y.nnz == 1
    assert data.labels.ids == ["x", "y"]


def test_cells_are_ids_names_or_row_numbers(files):
    files.write(
        "train.jsonl", jsonl({"text": "a", "labels": ["u:1", "two", 2]}, {"text": "b", "labels": None}, {"text": "c"})
    )
    files.write("labels.tsv", ["<u:1>\tone", "<u:2>\ttwo", "<u:3>\tthree\t3.1"])
    assert lists_of(Dataset.read(files.folder).train) == [["u:1", "u:2", "u:3"], [], []]


def test_a_name_that_two_labels_share_is_no_label(files):
    files.write("train.jsonl", jsonl({"text": "a", "labels": ["same"]}))
    files.write("labels.tsv", ["<u:1>\tsame", "<u:2>\tsame"])
    with pytest.raises(DataError, match="'same' is not among the known labels"):
        Dataset.read(files.folder)


def test_unknown_labels_dropped_or_added(files):
    files.write("train.jsonl", jsonl({"text": "a", "labels": ["z", "a", "new"]}))
    files.write("labels.txt", ["z", "a"])
    assert lists_of(Dataset.read(files.folder, unknown="drop").train) == [["z", "a"]]
    added = Dataset.read(files.folder, unknown="add")
    assert added.labels.ids == ["z", "a", "new"]
    assert added.labels.texts == ["z", "a", "new"]
    assert added.train.Y.nnz == 3


def test_rows_know_their_lines(files):
    path = files.write(
        "train.jsonl", ["", *jsonl({"text": "a", "labels": []}), "", *jsonl({"text": "b", "labels": []})]
    )
    split = Dataset.read(path).train
    assert split.at(0) == f"{path}:2"
    assert split.at(1) == f"{path}:4"
    path = files.write("x.csv", 'text,labels\n"a\nb",x\nc,y\n')
    split = Dataset.read(path).train
    assert [split.at(0), split.at(1)] == [f"{path}:2", f"{path}:4"]


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (["a|b", "c"], [["a", "b"], ["c"]]),
        (["a; b;", ""], [["a", "b"], []]),
        (["1,2", "3 4"], [["1", "2"], ["3", "4"]]),
        (['["a, b", "c"]', "[]"], [["a, b", "c"], []]),
        (["<u:a> <u:b>", "<u:a>"], [["u:a", "u:b"], ["u:a"]]),
        (["http://a http://b", "http://a"], [["http://a", "http://b"], ["http://a"]]),
        (["one label", "another"], [["one label"], ["another"]]),
    ],
)
def test_label_cells(files, cells, wanted):
    out = "".join(f'x,"{cell.replace(chr(34), chr(34) * 2)}"\n' for cell in cells)
    files.write("train.csv", f"text,labels\n{out}")
    assert list(map(sorted, lists_of(Dataset.read(files.folder).train))) == wanted


def test_label_cells_are_split_as_the_vocabulary_has_them(files):
    files.write("labels.txt", ["a, b", "c", "d e"])
    files.write("train.csv", 'text,labels\nx,"c,d e"\n')
    assert lists_of(Dataset.read(files.folder).train) == [["c", "d e"]]
    files.write("train.csv", 'text,labels\nx,"a, b"\ny,"a, b;c"\n')
    assert lists_of(Dataset.read(files.folder).train) == [["a, b"], ["a, b", "c"]]


def test_separator_as_the_user_says(files):
    files.write("train.csv", 'text,labels\nx,"a, b"\n')
    assert lists_of(Dataset.read(files.folder, separator=",").train) == [["a", "b"]]
    assert lists_of(Dataset.read(files.folder, separator="").train) == [["a, b"]]


def test_columns_as_the_user_says(files):
    files.write("x.csv", "nr,abstract,mesh,w\n7,x,a|b,0.5|2\n")
    path = files.folder / "x.csv"
    data = Dataset.read(path, text="abstract", label="mesh", id="nr", weight="w", name="mine")
    assert data.name == "mine"
    assert data.train.texts == ["x"]
    assert data.train.ids == ["7"]
    assert data.train.Y.data.tolist() == [0.5, 2]


def test_tsv_with_bare_quotes(files):
    files.write("train.tsv", ["text\tlabels", '"Quoted" and not\tx', '12" records\ty'])
    assert Dataset.read(files.folder).train.texts == ['"Quoted" and not', '12" records']


def test_annif_csv_with_vocabulary_in_two_languages(files):
    files.write("train.csv", ["text,subject_uris,document_id", "cats,<u:1> <u:2>,d1"])
    files.write("vocab.csv", ["uri,label_en,label_fi,notation", "u:1,cat,kissa,1", "u:2,dog,koira,2"])
    data = Dataset.read(files.folder, language="fi")
    assert data.labels.names == ["kissa", "koira"]
    assert data.train.ids == ["d1"]
    assert lists_of(data.train) == [["u:1", "u:2"]]


def test_annif_json_lines(files):
    rows = {"text": "a", "subjects": [{"uri": "u:1"}, {"label": "dog"}], "document_id": "d"}
    files.write("train.jsonl", jsonl(rows))
    files.write("vocab.tsv", ["<u:1>\tcat", "<u:2>\tdog"])
    assert lists_of(Dataset.read(files.folder).train) == [["u:1", "u:2"]]


def test_sparse_rows_as_other_tools_write_them(files):
    files.write("trn_X_Xf.txt", ["3 4", "# a comment", " qid:7 3:1.5e0  0:-.25\t", "", "1:+2 # behind a row", ""])
    files.write("trn_X_Y.txt", ["3 2", "0:1.00000", "1:1 0:0.5", ""])
    data = Dataset.read(files.folder)
    assert data.train.X.toarray().tolist() == [[-0.25, 0, 0, 1.5], [0, 0, 0, 0], [0, 2, 0, 0]]
    assert data.train.Y.toarray().tolist() == [[1, 0], [0.5, 1], [0, 0]]
    assert data.train.at(0).endswith("trn_X_Xf.txt:3")
    assert data.train.inputs is data.train.X


def test_sparse_files_with_texts_beside(files):
    files.write("trn_X_Xf.txt", ["2 3", "0:1", "1:1"])
    files.write("trn_X_Y.txt", ["2 2", "0:1", "1:1"])
    files.write("trn.json", jsonl({"uid": "d0", "title": "a"}, {"uid": "d1", "title": "b"}))
    files.write("lbl.json", jsonl({"uid": "x", "title": "X"}, {"uid": "y", "title": "Y"}))
    data = Dataset.read(files.folder)
    assert data.train.texts == ["a", "b"]
    assert data.train.ids == ["d0", "d1"]
    assert data.train.X is not None
    assert data.labels.names == ["X", "Y"]


def test_old_layout_with_split_files(files):
    files.write("Small_data.txt", ["3 2 2", "0,1 0:1", " 1:1", "1"])
    files.write("small_trSplit.txt", ["1 3", "3 1"])
    files.write("small_tstSplit.txt", ["2 2"])
    data = Dataset.read(files.folder)
    assert lists_of(data.train) == [["0", "1"], ["1"]]
    assert lists_of(data.test) == [[]]
    assert data.train.at(1).endswith("Small_data.txt:4")
    assert lists_of(Dataset.read(files.folder, split_column=1).train) == [["1"], ["0", "1"]]


def test_old_layout_in_one_file(files):
    path = files.write("any.txt", ["1 2 2", "1 0:1"])
    assert lists_of(Dataset.read(path).train) == [["1"]]


def test_parquet_as_others_write_it(files):
    files.folder.mkdir()
    labels = pa.array(
        [[{"uri": "u:2", "label": "two"}], None], pa.list_(pa.struct({"uri": pa.string(), "label": pa.string()}))
    )
    pq.write_table(pa.table({"id": [1, 2], "title": ["a", None], "labels": labels}), files.folder / "train.parquet")
    data = Dataset.read(files.folder)
    assert data.train.texts == ["a", ""]
    assert data.train.ids == ["1", "2"]
    assert lists_of(data.train) == [["u:2"], []]
    assert data.labels.names == ["two"]
    for column in (pa.array(["x", "y"]), pa.array(["x", "y"]).dictionary_encode(), pa.array([["x"], ["y"]])):
        pq.write_table(pa.table({"text": ["a", "b"], "label": column}), files.folder / "train.parquet")
        assert lists_of(Dataset.read(files.folder).train) == [["x"], ["y"]]
    pq.write_table(pa.table({"text": ["a", "b"], "target_ind": [[0], [2]]}), files.folder / "train.parquet")
    assert Dataset.read(files.folder).labels.ids == ["0", "1", "2"]


def test_gzip_whatever_the_name(files):
    files.folder.mkdir()
    (files.folder / "train.jsonl").write_bytes(gzip.compress(b'{"text": "a", "labels": ["x"]}'))
    assert Dataset.read(files.folder).train.texts == ["a"]


def test_a_text_of_ten_megabytes(files):
    text = "word " * 2_000_000
    files.write("train.jsonl", jsonl({"text": text, "labels": ["x"]}, {"text": "b", "labels": []}))
    assert Dataset.read(files.folder).train.texts[0] == text
    (files.folder / "train.jsonl").unlink()
    files.write("train.csv", ["text,labels", f"{text},x"])
    assert Dataset.read(files.folder).train.texts[0] == text
    (files.folder / "train.csv").unlink()
    files.write("train.tsv", [f"{text}\t<u:1>"])
    assert Dataset.read(files.folder).train.texts[0] == text


def test_lines_longer_than_a_block(files, monkeypatch):
    monkeypatch.setattr("deepxc.data.files.BLOCK_BYTES", 64)
    rows = [{"text": "x" * size, "labels": [str(size)]} for size in (1, 200, 3, 63, 64, 65, 0)]
    files.crlf = True
    path = files.write("train.jsonl", jsonl(*rows, {"text": "y", "labels": [], "content": "z"}))
    split = Dataset.read(path).train
    assert split.texts == [row["text"] for row in rows] + ["y"]
    assert split.at(6) == f"{path}:7"


def test_a_path_wins_over_a_sample(files, monkeypatch):
    files.write("icd10/train.jsonl", jsonl({"text": "mine", "labels": ["x"]}))
    monkeypatch.chdir(files.folder)
    assert Dataset.read("icd10").train.texts == ["mine"]


def test_a_sample_by_name():
    assert len(Dataset.read("synthetic:labels=20,texts=50").labels) == 20


def test_the_same_files_give_the_same_label_space(files):
    files.write("train.jsonl", jsonl(*({"text": "a", "labels": [f"l{i * 7 % 50}"]} for i in range(50))))
    assert Dataset.read(files.folder).labels.ids == sorted(f"l{i}" for i in range(50))


# rows against labels that are known


def test_bare_texts(files):
    path = files.write("queries.txt", ["a: b", "", "c"])
    split, unknown = read_split(path, LABELS)
    assert split.texts == ["a: b", "", "c"]
    assert split.Y.shape == (3, 3)
    assert not unknown


@pytest.mark.parametrize(
    ("first", "second"),
    [("2001 9 11", "a text"), ("2001 9 11", "a: b"), ("1984 2", "a: b"), ("1984 2", "10"), ("7", "a text")],
)
def test_bare_texts_that_begin_with_numbers(files, first, second):
    path = files.write("queries.txt", [first, second])
    assert read_split(path, LABELS).split.texts == [first, second]


def test_rows_against_known_labels(files):
    path = files.write(
        "x.jsonl", jsonl({"text": "a", "labels": ["three", "u:1", "?"]}, {"text": "b", "labels": ["?", "!"]})
    )
    with pytest.raises(DataError, match=r"x.jsonl:1: label '\?' is not among the known labels \(and 2 more"):
        read_split(path, LABELS)
    split, unknown = read_split(path, LABELS, unknown="drop")
    assert split.Y.toarray().tolist() == [[1, 0, 1], [0, 0, 0]]
    assert (unknown.count, unknown.distinct) == (3, 2)
    assert unknown.examples == (("?", f"{path}:1"), ("!", f"{path}:2"))
    assert str(unknown).startswith("3 labels (2 different) are not in the label space: '?' (")


def test_raw_rows_against_known_labels(files):
    path = files.write("tst.json", jsonl({"title": "a", "target_ind": [2]}))
    assert lists_of(read_split(path, LABELS).split) == [["u:3"]]


def test_a_folder_against_known_labels(files):
    files.write("train.jsonl", jsonl({"text": "a", "labels": ["two", "ten"]}))
    files.write("dev.jsonl", jsonl({"text": "b", "labels": ["one", "two"]}))
    split, unknown = read_split(files.folder, LABELS, part="validation")
    assert lists_of(split) == [["u:1", "u:2"]]
    assert not unknown
    split, unknown = read_split(files.folder, LABELS, unknown="drop")
    assert split.texts == ["a"]
    assert lists_of(split) == [["u:2"]]
    assert unknown.examples[0][0] == "ten"
    with pytest.raises(DataError, match="there is no test part"):
        read_split(files.folder, LABELS, part="test")


def test_align_moves_filter_pairs(files):
    files.write("trn.json", jsonl({"title": "a", "target_ind": [0, 1], "target_rel": [0.5, 2]}))
    files.write("lbl.json", jsonl({"uid": "u:3"}, {"uid": "u:1"}, {"uid": "u:9"}))
    files.write("filter_labels_train.txt", ["0 2", "0 0"])
    split, unknown = align(Dataset.read(files.folder).train, LABELS)
    assert split.Y.toarray().tolist() == [[2, 0, 0.5]]
    assert split.filter_pairs.tolist() == [[0, 2]]
    assert split.labels is LABELS
    assert not unknown


def test_options_are_checked():
    with pytest.raises(UserError, match="unknown='ignore' is not one of"):
        Dataset.read(".", unknown="ignore")


def test_float32_values_are_exact_however_they_are_written(files):
    scales = 10.0 ** np.arange(-20, 20).repeat(50)
    values = (np.random.default_rng(0).standard_normal(2000) * scales).astype(np.float32)
    for write in ("{:.9g}", "{!r}", "{:.18e}", "{:.60f}"):
        row = " ".join(f"{i}:{write.format(float(value))}" for i, value in enumerate(values))
        files.write("trn_X_Xf.txt", ["1 2000", row])
        files.write("trn_X_Y.txt", ["1 1", "0:1"])
        assert np.array_equal(Dataset.read(files.folder).train.X.data, values)


@pytest.mark.parametrize("text", ["{}", "{}0", '{"a title in braces"}', "[{a}]"])
def test_texts_that_begin_like_json_are_texts(tmp_path, text):
    (tmp_path / "train.tsv").write_text(f"{text}\t<http://a> <http://b>\n", encoding="utf-8")
    assert Dataset.read(tmp_path).train.texts == [text]
    (tmp_path / "train.tsv").unlink()
    (tmp_path / "train.csv").write_text(f'text,labels\n"{text.replace(chr(34), chr(34) * 2)}",a\n', encoding="utf-8")
    assert Dataset.read(tmp_path).train.texts == [text]


def test_json_lines_in_a_file_of_any_other_name(tmp_path):
    (tmp_path / "train.txt").write_text('{"text": "x", "labels": ["a"]}\n', encoding="utf-8")
    assert Dataset.read(tmp_path).train.texts == ["x"]

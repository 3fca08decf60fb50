from __future__ import annotations

import csv
import stat

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from deepxc.data.label_space import LabelSpace
from deepxc.errors import UserError
from deepxc.evaluate.per_label import per_label


def test_counts_by_hand(truth):
    # Truth 0 2 | 2 | 3; two best answers 2 1 | 2 0 | 1 -.
    report = per_label(np.array([[2, 1, 0], [2, 0, 3], [1, -1, -1]]), truth([[0, 2], [2], [3]], 5), k=2)
    assert report.support.tolist() == [1, 0, 2, 1, 0]
    assert report.tp.tolist() == [0, 0, 2, 0, 0]
    assert report.fp.tolist() == [1, 2, 0, 0, 0]
    assert report.fn.tolist() == [1, 0, 0, 1, 0]
    assert report.precision.tolist() == [0, 0, 100, 0, 0]
    assert report.recall.tolist() == [0, 0, 100, 0, 0]
    assert report.f1.tolist() == [0, 0, 100, 0, 0]
    assert report.macro() == pytest.approx({"macro-P@2": 100 / 3, "macro-R@2": 100 / 3, "macro-F1@2": 100 / 3})


def test_agrees_with_sklearn(zipf):
    answers, Y, _ = zipf
    predicted = np.zeros(Y.shape, np.int64)
    np.put_along_axis(predicted, answers[:, :3], 1, axis=1)
    report = per_label(answers, Y, k=3)
    wanted = precision_recall_fscore_support(Y.toarray().astype(np.int64), predicted, zero_division=0)
    for found, value in zip((report.precision, report.recall, report.f1), wanted[:3], strict=True):
        assert found == pytest.approx(100 * value)
    assert report.support.tolist() == wanted[3].tolist()


def test_filter_pairs_leave_the_counts(truth):
    Y = truth([[0, 2]], 4)
    answers = np.array([[2, 1, 0, 3]])
    report = per_label(answers, Y, k=2, filter_pairs=[[0, 2]])
    assert report.tp.tolist() == [1, 0, 0, 0]
    assert report.fn.tolist() == [0, 0, 1, 0]
    assert per_label(answers, Y, k=2, filter_pairs=[[0, 2]], filter_truth=True).fn.sum() == 0


def test_tsv_reads_back(tmp_path, truth):
    labels = LabelSpace(["a", "b", "c", "d"], ["A", "tab\there", "two\nlines", "ä"], frequencies=np.array([4, 0, 7, 1]))
    report = per_label(np.array([[2, 1], [2, 0]]), truth([[0, 2], [2]], 4), k=2)
    path = tmp_path / "labels.tsv"
    path.write_text("an older report")
    report.write_tsv(path, labels)
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert [row["label"] for row in rows] == ["0", "1", "2"]  # label 3 is in neither
    assert [row["name"] for row in rows] == ["A", "tab here", "two lines"]
    assert rows[2] == {
        "label": "2", "id": "c", "name": "two lines", "train_texts": "7", "support": "2",
        "tp": "2", "fp": "0", "fn": "0", "precision": "100.00", "recall": "100.00", "f1": "100.00",
    }  # fmt: skip
    report.write_tsv(path, LabelSpace.numbered(4), unseen=True)
    lines = path.read_text().splitlines()
    assert lines[4] == "3\t3\t3\t\t0\t0\t0\t0\t0.00\t0.00\t0.00"
    assert [file.name for file in tmp_path.iterdir()] == ["labels.tsv"]


def test_a_failed_write_leaves_the_old_file(tmp_path, truth):
    class Breaks(list):
        def __getitem__(self, place):
            raise OSError(28, "No space left on device")

    report = per_label(np.array([[2]]), truth([[2]], 4), k=1)
    path = tmp_path / "labels.tsv"
    path.write_text("old")
    with pytest.raises(UserError, match="No space left on device"):
        report.write_tsv(path, LabelSpace(Breaks("abcd"), list("abcd")))
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["labels.tsv"]


def test_the_file_has_ordinary_permissions(tmp_path, truth):
    plain = tmp_path / "plain"
    plain.touch()
    per_label(np.array([[2]]), truth([[2]], 4), k=1).write_tsv(tmp_path / "x.tsv", LabelSpace.numbered(4))
    assert stat.S_IMODE((tmp_path / "x.tsv").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_bad_arguments_are_named(tmp_path, truth):
    report = per_label(np.array([[2]]), truth([[2]], 4), k=1)
    with pytest.raises(UserError, match="3 labels given but 4 measured"):
        report.write_tsv(tmp_path / "x.tsv", LabelSpace.numbered(3))
    with pytest.raises(UserError, match="cannot be written"):
        report.write_tsv(tmp_path / "absent" / "x.tsv", LabelSpace.numbered(4))
    with pytest.raises(UserError, match="no cut-offs"):
        per_label(np.array([[2]]), truth([[2]], 4), k=0)

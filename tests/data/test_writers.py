"""Writers leave everything or nothing, and the same data give the same bytes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from deepxc.data.dataset import Dataset, Split
from deepxc.data.label_space import LabelSpace
from deepxc.data.writers import write_parquet, write_xc_raw
from deepxc.errors import DataError, UserError

WRITERS = [write_xc_raw, write_parquet]


def made(texts: list[str]) -> Dataset:
    labels = LabelSpace.from_names(["a", "b"])
    Y = sparse.csr_matrix(np.ones((len(texts), 2), np.float32))
    return Dataset("made", labels, Split(labels, Y, texts))


@pytest.mark.parametrize("write", WRITERS)
def test_a_folder_in_use_is_left_alone(write, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    with pytest.raises(UserError, match="something under this name already"):
        write(made(["x"]), tmp_path / "out")
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "mine"]


@pytest.mark.parametrize("write", WRITERS)
def test_an_empty_folder_is_filled(write, tmp_path):
    (tmp_path / "out").mkdir()
    assert write(made(["x"]), str(tmp_path / "out")) == tmp_path / "out"
    assert Dataset.read(tmp_path / "out").train.texts == ["x"]
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("texts", [[], ["fine", "half a pair \ud800"]])
def test_what_cannot_be_written_leaves_nothing(write, texts, tmp_path):
    with pytest.raises(DataError, match=r"no rows|cannot be written"):
        write(made(texts), tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("write", WRITERS)
def test_a_place_that_cannot_be_written(write, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="cannot be written"):
        write(made(["x"]), tmp_path / "file" / "out")


@pytest.mark.parametrize("write", WRITERS)
def test_a_fault_half_way_leaves_nothing(write, tmp_path):
    data = made(["x"])
    features = np.array([["not a number"]])  # the labels are written before the features fail
    broken = Split(data.labels, data.train.Y, data.train.texts, X=features)
    with pytest.raises(ValueError, match="could not convert"):
        write(Dataset("made", data.labels, broken), tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("write", WRITERS)
def test_the_same_bytes_twice(write, tmp_path):
    one, two = (write(made(["x", "y"]), tmp_path / name) for name in ("one", "two"))
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in two.iterdir())
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in names)


def test_packed_lines_in_many_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("deepxc.data.writers.ROWS_AT_A_TIME", 3)
    texts = [f"text {i}" for i in range(10)]
    assert Dataset.read(write_xc_raw(made(texts), tmp_path / "out")).train.texts == texts

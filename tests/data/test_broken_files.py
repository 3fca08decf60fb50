"""Bad input gets an error that says what, where and how to mend it."""

from __future__ import annotations

import pytest
from broken_corpus import CORPUS, Broken

from deepxc.data.dataset import Dataset
from deepxc.errors import DataError, UserError


@pytest.mark.parametrize("broken", CORPUS, ids=lambda broken: broken.name)
def test_broken(broken: Broken, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for name, data in broken.files.items():
        (folder / name).write_bytes(data)
    with pytest.raises(UserError) as caught:
        Dataset.read(folder, **broken.options)
    error = caught.value
    assert broken.what in str(error)
    assert (error.where or "").endswith(broken.where)
    assert error.remedy
    assert "\n" not in str(error)


def test_no_such_path(tmp_path):
    with pytest.raises(DataError, match="no such file, folder or sample"):
        Dataset.read(tmp_path / "nothing")


def test_a_sample_misspelt():
    with pytest.raises(DataError, match="Did you mean the sample icd10"):
        Dataset.read("icd-10")


def test_one_of_the_sparse_files(tmp_path):
    path = tmp_path / "trn_X_Xf.txt"
    path.write_bytes(b"1 2\n0:1\n")
    with pytest.raises(DataError, match="Give the folder that holds it"):
        Dataset.read(path)

"""A tiny data set that every contestant reads from disk, as the bench's own users do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepxc.data.dataset import Dataset
from deepxc.data.writers import write_xc_raw

if TYPE_CHECKING:
    from pathlib import Path

TINY = "synthetic:labels=60,texts=600,test_texts=80,noise_words=1"


@pytest.fixture(scope="session")
def tiny() -> str:
    """As it is named on the command line."""
    return TINY


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, as a folder with filter pairs: the first true label of every tenth test text is no answer."""
    place = tmp_path_factory.mktemp("bench") / "tiny"
    write_xc_raw(Dataset.read(TINY), place)
    truth = Dataset.read(TINY).test.Y
    lines = [f"{row} {truth.indices[truth.indptr[row]]}\n" for row in range(0, truth.shape[0], 10)]
    (place / "filter_labels_test.txt").write_text("".join(lines), encoding="utf-8")
    return place

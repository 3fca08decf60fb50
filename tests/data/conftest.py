from __future__ import annotations

import pytest
from made_data import Files


@pytest.fixture
def files(tmp_path) -> Files:
    return Files(tmp_path / "data")

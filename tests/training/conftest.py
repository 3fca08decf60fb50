"""Small products on a busy machine are quickest on one thread."""

import pytest

from deepxc.training.computing import on_threads


@pytest.fixture(autouse=True)
def one_thread():
    with on_threads(1):
        yield

import numpy as np
import pytest

from deepxc.data.samples import load_sample


@pytest.fixture(scope="session")
def zipf():
    """A small Zipf label space with texts that follow from the labels."""
    return load_sample("synthetic", labels=300, texts=3_000, seed=3)


@pytest.fixture(scope="session")
def fruit():
    """Eight texts that a person can label too."""
    texts = [
        "red apple pie",
        "green apple juice",
        "pear tart",
        "pear and apple cake",
        "plum jam",
        "dried plum",
        "banana bread",
        "banana split",
    ]
    labels = [["apple"], ["apple"], ["pear"], ["pear", "apple"], ["plum"], ["plum"], ["banana"], ["banana"]]
    return texts, labels


@pytest.fixture
def rng():
    return np.random.default_rng(0)

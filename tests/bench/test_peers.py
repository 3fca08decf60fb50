"""Other libraries, where they are installed."""

from __future__ import annotations

import json
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse

from deepxc.bench.contestant import Stages, Trial
from deepxc.bench.peers import PEERS, peer_entry
from deepxc.bench.peers.bag_peer import BagPeer
from deepxc.bench.runner import compare
from deepxc.data.dataset import Dataset, Split
from deepxc.data.label_space import LabelSpace
from deepxc.errors import UserError

pytestmark = [  # what those libraries warn of is theirs
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PACKAGE = {
    "omikuji-parabel": "omikuji",
    "omikuji-bonsai": "omikuji",
    "pecos-xrl": "pecos",
    "napkin-plt": "napkinxc",
    "bm25-labels": "bm25s",
    "bm25-texts": "bm25s",
}
READ_TEXTS = {"bm25-labels", "bm25-texts"}
UNTAUGHT = {"bm25-labels"}
"""Peers that look at label texts alone."""


def need(name: str) -> None:
    if find_spec(PACKAGE[name]) is None:
        pytest.skip(f"the package {PACKAGE[name]} is not installed")


def test_every_peer_has_a_package_here():
    assert set(PACKAGE) == set(PEERS)


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_learns_or_says_what_is_missing(name: str, folder):
    outcome = compare(str(folder), [peer_entry(name)], threads=2).outcomes[0]
    if find_spec(PACKAGE[name]) is None:
        assert outcome.status == "missing"
        assert "is not installed" in outcome.problem
        assert "pip install" in outcome.remedy
        return
    assert outcome.status == "ok", outcome.problem
    assert outcome.metrics["P@1"] > (20 if name in UNTAUGHT else 50)
    assert outcome.metrics["R@10"] > (30 if name in UNTAUGHT else 60)
    json.dumps(outcome.costs, allow_nan=False)


def test_label_texts_are_further_train_texts(tmp_path):
    names = ["green pear", "red apple", "blue plum"]
    labels = LabelSpace(ids=names, names=names, texts=names)
    Y = sparse.csr_matrix(np.eye(3, dtype=np.float32)[[0, 1, 0]])
    train = Split(labels, Y, ["a pear", "an apple", "green pear"])
    seen = {}
    peer = _Kept(label_texts=True)
    peer.seen = seen
    peer.fit(train, Trial(tmp_path, 1, Stages()))
    # the text of label 0 is a train text of its own already; those of 1 and 2 come as rows 3 and 4
    assert seen["Y"].toarray().tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    plain = _Kept()
    plain.seen = seen
    plain.fit(train, Trial(tmp_path, 1, Stages()))
    assert seen["Y"].shape == (3, 3)


def test_the_setting_is_named_in_the_table_and_others_are_refused():
    entry = peer_entry("omikuji-bonsai", {"label_texts": True})
    assert entry.name == "omikuji-bonsai with label texts"
    assert entry.params["label_texts"] is True
    assert entry.params["max_depth"] == 3
    with pytest.raises(UserError, match="no such setting"):
        peer_entry("omikuji-bonsai", {"max_depth": 4})


class _Kept(BagPeer):
    """A peer that notes what it was given."""

    def _train(self, X, Y, trial):
        self.seen |= {"X": X, "Y": Y}

    def _save(self, folder):
        raise NotImplementedError

    def _open(self, folder, threads):
        raise NotImplementedError

    def _rank(self, X, k):
        raise NotImplementedError

    def _rank_one(self, columns, values, k):
        raise NotImplementedError


@pytest.mark.parametrize("name", PEERS)
def test_a_saved_peer_answers_one_text_as_it_answers_many(name: str, tiny: str, tmp_path):
    need(name)
    data = Dataset.read(tiny)
    peer = peer_entry(name).make()
    peer.fit(data.train, Trial(tmp_path, 1, Stages()))
    peer.save(tmp_path)
    peer.open(tmp_path, 1)
    ids = peer.rank(data.test.texts, 12)
    assert ids.shape == (80, 12)
    assert ids.dtype == np.int64
    assert (ids >= -1).all()
    assert (ids < 60).all()
    for row in ids.tolist():
        known = [label for label in row if label >= 0]
        assert len(set(known)) == len(known)
    for row in range(5):
        one = peer.rank_one(data.test.texts[row], 3)
        if sparse.issparse(one):
            found = one.indices[np.argsort(-one.data)].tolist()
        else:
            found = [label for label, _ in (one[0] if isinstance(one[0], list) else one)]
        assert found[0] == ids[row, 0]


@pytest.mark.parametrize("name", PEERS)
def test_rows_that_teach_nothing_do_no_harm(name: str, tiny: str, tmp_path):
    need(name)
    train = Dataset.read(tiny).train
    Y = sparse.vstack([train.Y, train.Y[:1], sparse.csr_matrix((1, 60), dtype=np.float32)]).tocsr()
    odd = Split(labels=train.labels, Y=Y, texts=[*train.texts, "...", train.texts[0]])
    peer = peer_entry(name).make()
    peer.fit(odd, Trial(tmp_path, 1, Stages()))
    peer.save(tmp_path)
    peer.open(tmp_path, 1)
    assert peer.rank(["", train.texts[0]], 5).shape == (2, 5)


@pytest.mark.parametrize("name", sorted(PEERS.keys() - READ_TEXTS))
def test_features_are_taken_as_they_are(name: str, tmp_path):
    need(name)
    rng = np.random.default_rng(0)
    which = rng.integers(0, 8, 200)
    X = sparse.csr_matrix(np.eye(8, dtype=np.float32)[which] + np.float32(0.01) * (rng.random((200, 8)) > 0.7))
    Y = sparse.csr_matrix(np.eye(8, dtype=np.float32)[which])
    from deepxc.data.label_space import LabelSpace

    split = Split(labels=LabelSpace.numbered(8), Y=Y, X=X.astype(np.float32))
    peer = peer_entry(name).make()
    peer.fit(split, Trial(tmp_path, 1, Stages()))
    peer.save(tmp_path)
    peer.open(tmp_path, 1)
    assert (peer.rank(split.X, 1)[:, 0] == which).mean() > 0.95


def test_an_unknown_peer_is_named():
    with pytest.raises(UserError, match="omikuji-bonsai"):
        peer_entry("omikuji-bonsay")

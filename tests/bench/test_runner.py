"""Real contestants in real processes."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from deepxc.bench.contestant import Entry
from deepxc.bench.ours import system_entry
from deepxc.bench.outcome import COSTS
from deepxc.bench.runner import compare
from deepxc.data.dataset import Dataset
from deepxc.errors import UserError
from deepxc.evaluate.scoring import score_model
from deepxc.systems.nearest import NearestLabels

if TYPE_CHECKING:
    from pathlib import Path

HOME = ("deepxc.systems.nearest", "NearestLabels")
SETTINGS = {"vectors": "tokens", "neighbours": 20}

BROKEN = """
import os
class Raises:
    def fit(self, train, trial):
        raise ArithmeticError("the weights ran away")
class Dies:
    def fit(self, train, trial):
        print("panicked at the last tree", flush=True)
        os.abort()
class Leaves:
    def fit(self, train, trial):
        os._exit(3)
class Lacks:
    def __init__(self):
        from deepxc.bench.peers.bag_peer import imported
        imported("no_such_library_anywhere", "nosuch")
class Threads:
    def fit(self, train, trial):
        raise RuntimeError(os.environ["OMP_NUM_THREADS"] + " and " + str(trial.threads))
"""


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with contestants that do not make it."""
    (tmp_path / "broken_contestants.py").write_text(BROKEN, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "broken_contestants"


def nearest(name: str = "nearest") -> Entry:
    return system_entry(name, *HOME, "fast", 0, SETTINGS)


def test_figures_are_those_of_the_library_itself(folder: Path):
    found = compare(str(folder), [nearest()], threads=1)
    outcome = found.outcomes[0]
    assert outcome.status == "ok", outcome.problem
    data = Dataset.read(folder)
    report = score_model(NearestLabels(threads=1, **SETTINGS).fit(data.train), data.test)
    assert len(data.test.filter_pairs) == found.sizes["filter_pairs"] == 8
    assert outcome.metrics == pytest.approx(report.as_dict(), abs=0.05)
    unfiltered = score_model(NearestLabels(threads=1, **SETTINGS).fit(data.train), replace_pairs(data))
    assert outcome.metrics["P@1"] < unfiltered["P@1"] - 1


def replace_pairs(data: Dataset):
    return replace(data.test, filter_pairs=data.test.filter_pairs[:0])


def test_costs_are_whole(tiny: str):
    heard = []
    found = compare(tiny, [nearest()], threads=2, repeat=2, told=lambda *words: heard.append(words))
    costs = found.outcomes[0].costs
    assert set(costs) == set(COSTS)
    assert costs["convert_s"] == 0
    assert 0 < costs["tokenise_s"] < costs["fit_s"]
    assert 0 < costs["p50_us"] <= costs["p99_us"]
    assert 20 < costs["peak_mib"] < 2_000
    assert 0 < costs["model_mib"] < 5
    assert [(name, number) for name, number, outcome in heard if outcome is None] == [("nearest", 1), ("nearest", 2)]
    assert found.sizes == {"train_texts": 600, "texts": 80, "labels": 60, "filter_pairs": 0}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of one process apart from its parent's")
def test_peak_memory_is_the_contestants_own(tiny: str):
    ballast = bytearray(600 * 2**20)
    ballast[::4096] = b"x" * len(ballast[::4096])
    costs = compare(tiny, [nearest()], threads=1).outcomes[0].costs
    assert costs["peak_mib"] < 600
    assert ballast[0] == ord("x")


def test_one_that_fails_does_not_stop_the_others(tiny: str, broken: str):
    entries = [Entry(name, "peer", f"{broken}:{name}") for name in ("Raises", "Dies", "Leaves", "Lacks")]
    found = compare(tiny, [*entries, nearest()], threads=1, repeat=1)
    raises, dies, leaves, lacks, ours = found.outcomes
    assert (raises.status, raises.problem) == ("failed", "ArithmeticError: the weights ran away")
    assert dies.status == "failed"
    assert "SIGABRT" in dies.problem
    assert leaves.status == "failed"
    assert "code 3" in leaves.problem
    assert (lacks.status, lacks.problem) == ("missing", "nosuch is not installed")
    assert "pip install 'deepxc[bench]'" in lacks.remedy
    assert ours.status == "ok"


def test_every_library_is_held_to_the_same_threads(tiny: str, broken: str):
    found = compare(tiny, [Entry("t", "peer", f"{broken}:Threads")], threads=3)
    assert found.outcomes[0].problem == "RuntimeError: 3 and 3"


def test_nothing_is_left_behind(tiny: str, broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    compare(tiny, [Entry("d", "peer", f"{broken}:Dies")], threads=1)
    assert os.listdir(scratch) == []  # noqa: PTH208


def test_bad_data_is_an_error_and_no_row(tmp_path: Path, tiny: str):
    with pytest.raises(UserError, match="nowhere"):
        compare(str(tmp_path / "nowhere"), [nearest()], threads=1)
    with pytest.raises(UserError, match="no validation part"):
        compare(tiny, [nearest()], threads=1, part="validation")


def test_the_line_up_is_checked(tiny: str):
    with pytest.raises(UserError, match="nobody"):
        compare(tiny, [], threads=1)
    with pytest.raises(UserError, match="twice"):
        compare(tiny, [nearest("a"), nearest("a")], threads=1)

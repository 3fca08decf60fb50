"""The command line as a user meets it: real processes for the exit codes, the same code in process for the rest."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from deepxc import NearestLabels
from deepxc.cli.main import main
from deepxc.data.dataset import Split
from deepxc.data.label_space import LabelSpace

ROWS = [
    ("red apple pie", "apple"),
    ("green apple juice", "apple"),
    ("pear tart", "pear"),
    ("pear and apple cake", "pear"),
    ("plum jam", "plum"),
    ("dried plum", "plum"),
]


def run(capsysbinary, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    captured = capsysbinary.readouterr()
    return stop.value.code, captured.out.decode(), captured.err.decode()


def deepxc(*arguments, text=None):
    command = [sys.executable, "-m", "deepxc.cli.main", *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "fruit.csv"
    file.write_text("text,labels\n" + "".join(f"{text},{label}\n" for text, label in ROWS))
    return file


@pytest.fixture(scope="module")
def model(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "m"
    done = deepxc(
        "train", table, "--model", "nearest", "--out", folder, "--set", "vectors=random", "--set", "dim=64", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["texts"] == 6
    return folder


def test_predict_streams_json_lines(model):
    done = deepxc("predict", model, "-k", 2, text="apple crumble\njam of plum\n")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["text"] for row in rows] == ["apple crumble", "jam of plum"]
    assert [row["labels"][0]["name"] for row in rows] == ["apple", "plum"]
    assert set(rows[0]["labels"][0]) == {"id", "name", "score"}
    assert len(rows[0]["labels"]) == 2


def test_predict_reads_files_and_passes_ids_on(capsysbinary, model, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"id": 7, "text": "pear"}\n{"title": "plum"}\n')
    (tmp_path / "plain.txt").write_bytes("\ufeffapple\r\n\r\n".encode())
    code, out, _ = run(capsysbinary, "predict", model, tmp_path / "rows.jsonl", tmp_path / "plain.txt", "-k", 1)
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert rows[0]["id"] == 7
    assert [row["text"] for row in rows] == ["pear", "plum", "apple", ""]


def test_candidates_exclude_and_min_score(capsysbinary, model, tmp_path):
    (tmp_path / "some.txt").write_text("plum\npear\n")
    (tmp_path / "rows.txt").write_text("apple\n")
    for option, expected in (("--candidates", {"plum", "pear"}), ("--exclude", {"apple"})):
        _, out, _ = run(capsysbinary, "predict", model, tmp_path / "rows.txt", option, tmp_path / "some.txt")
        assert {label["name"] for label in json.loads(out)["labels"]} == expected
    _, out, _ = run(capsysbinary, "predict", model, tmp_path / "rows.txt", "--min-score", 2)
    assert json.loads(out)["labels"] == []


def test_evaluate_prints_one_object(capsysbinary, model, table):
    code, out, _ = run(capsysbinary, "evaluate", model, table, "--json")
    report = json.loads(out)
    assert code == 0
    assert report["P@1"] > 50
    assert {"PSP@3", "R@10", "nDCG@5"} <= set(report)
    code, out, _ = run(capsysbinary, "evaluate", model, table, "--quantiles")
    assert "PSP" in out
    assert "labels" in out


def test_info(capsysbinary, model):
    code, out, _ = run(capsysbinary, "info", model, "--json")
    report = json.loads(out)
    assert code == 0
    assert report["system"] == "NearestLabels"
    assert report["settings"]["dim"] == 64
    assert report["data"]["labels"] == 3
    assert report["zero_shot_labels"] == []
    _, out, _ = run(capsysbinary, "info", model)
    assert "dim: 64" in out
    assert "zero_shot_labels: 0\n" in out


def test_info_lists_labels_that_have_only_text(capsysbinary, tmp_path):
    names = [f"thing {i}" for i in range(14)]
    labels = LabelSpace(ids=names, names=names, texts=[*names[:-1], ""])
    Y = sparse.csr_matrix((np.ones(2, np.float32), ([0, 1], [0, 1])), shape=(2, 14))
    NearestLabels(dim=8).fit(Split(labels, Y, ["one text", "another text"])).save(tmp_path / "m")
    _, out, _ = run(capsysbinary, "info", tmp_path / "m", "--json")
    assert json.loads(out)["zero_shot_labels"] == names[2:-1]
    _, out, _ = run(capsysbinary, "info", tmp_path / "m")
    assert "zero_shot_labels: 11 (thing 2, thing 3," in out
    assert "thing 11, ...)" in out


def test_a_run_file_and_options_over_it(capsysbinary, table, tmp_path):
    (tmp_path / "run.toml").write_text(
        f'data = "{table}"\nmodel = "nearest"\nseed = 1\n[settings]\ndim = 32\nneighbours = 0\n'
    )
    code, out, err = run(
        capsysbinary, "train", "--config", tmp_path / "run.toml", "--out", tmp_path / "m", "--set", "dim=16"
    )
    assert code == 0, err
    _, out, _ = run(capsysbinary, "info", tmp_path / "m", "--json")
    settings = json.loads(out)["settings"]
    assert (settings["dim"], settings["neighbours"]) == (16, 0)


WRONG = {
    "no such data": (["train", "nowhere", "--out", "m"], "nowhere"),
    "no data": (["train", "--out", "m"], "no data was named"),
    "no out": (["train", "icd10"], "--out m/"),
    "no such model": (["train", "icd10", "--out", "m", "--model", "nearst"], "Did you mean 'nearest'?"),
    "no such setting": (["train", "icd10", "--out", "m", "--set", "dims=3"], "Did you mean 'dim'?"),
    "no assignment": (["train", "icd10", "--out", "m", "--set", "dim"], "--set dim=256"),
    "no such preset": (["train", "TABLE", "--out", "m", "--preset", "quick"], "Choose one of"),
    "a word for a number": (["train", "TABLE", "--out", "m", "--set", "dim=wide"], "whole number"),
    "no such command": (["trian"], "trian"),
    "no such option": (["train", "--ouput", "m"], "--ouput"),
    "no such run file": (["train", "--config", "none.toml"], "run file"),
    "no such model folder": (["info", "none"], "no model folder"),
    "no such model to evaluate": (["evaluate", "none", "icd10"], "no model folder"),
    "no such text file": (["predict", "MODEL", "none.txt"], "none.txt"),
    "no such candidates": (["predict", "MODEL", "TABLE", "--candidates", "none.txt"], "none.txt"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_users_error_is_one_line_and_exit_2(capsysbinary, model, table, tmp_path, monkeypatch, name):
    arguments, message = WRONG[name]
    monkeypatch.chdir(tmp_path)
    places = {"MODEL": model, "TABLE": table}
    code, out, err = run(capsysbinary, *(places.get(a, a) for a in arguments))
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""
    assert not (tmp_path / "m").exists()


BROKEN_RUNS = {
    "unknown key": ("modle = 'nearest'", "Did you mean 'model'?"),
    "not TOML": ("model = ", "not readable as TOML"),
    "wrong type": ("seed = 'seven'", "whole number"),
}


@pytest.mark.parametrize("name", BROKEN_RUNS)
def test_a_broken_run_file_is_named(capsysbinary, tmp_path, name):
    content, message = BROKEN_RUNS[name]
    (tmp_path / "run.toml").write_text(content)
    code, _, err = run(capsysbinary, "train", "--config", tmp_path / "run.toml")
    assert code == 2
    assert message in err
    assert "run.toml" in err


def test_bad_lines_on_standard_input_are_named(model):
    done = deepxc("predict", model, text='fine\n{"text": 5}\n')
    assert done.returncode == 2
    assert "standard input:2" in done.stderr
    done = deepxc("predict", model, text='{"text": "x"\n')
    assert "standard input:1: not JSON" in done.stderr


def test_exit_codes_of_real_processes(tmp_path):
    assert deepxc("--version").returncode == 0
    assert deepxc("info", tmp_path / "none").returncode == 2
    nothing = deepxc()
    assert nothing.returncode == 2
    assert "train" in nothing.stdout + nothing.stderr


@pytest.mark.parametrize("command", ["train", "predict", "evaluate", "info", "data", "demo", "bench"])
def test_every_command_has_help_with_an_example(capsysbinary, command):
    code, out, _ = run(capsysbinary, command, "--help")
    assert code == 0
    assert f"deepxc {command}" in out

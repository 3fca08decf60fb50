from __future__ import annotations

import json

import pytest

from deepxc.cli.bench import split_specs
from deepxc.cli.main import main
from deepxc.errors import UserError


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(["bench", *arguments])
    printed = capsys.readouterr()
    return end.value.code, printed.out, printed.err


def test_table_and_json_file(capsys, tiny: str, tmp_path):
    file = tmp_path / "bench.json"
    systems = "nearest:vectors=tokens,neighbours=0,nearest:best,neighbours=10"
    code, out, err = run(capsys, tiny, "--systems", systems, "--peers", "none", "--threads", "1", "--json", str(file))
    assert code == 0
    written = json.loads(file.read_text(encoding="utf-8"))
    assert [row["name"] for row in written["results"]] == [
        "nearest:vectors=tokens,neighbours=0",
        "nearest:best,neighbours=10",
    ]
    for row in written["results"]:
        assert row["status"] == "ok", row["problem"]
        assert f"{row['metrics']['P@1']:.2f}" in out
        assert row["name"] in err
    assert written["threads"] == 1
    assert written["part"] == "test"


def test_json_on_stdout_is_all_that_is_printed(capsys, tiny: str):
    code, out, _ = run(capsys, tiny, "--systems", "nearest:vectors=tokens", "--peers", "none", "--json", "-")
    assert code == 0
    assert json.loads(out)["results"][0]["status"] == "ok"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--systems", "nearset"), "Did you mean 'nearest'"),
        (("--systems", "nearest:fats"), "no preset 'fats'"),
        (("--systems", "nearest:fast,dimm=3"), "'dim'"),
        (("--systems", "nearest:dim=many"), "whole number"),
        (("--systems", "dim=3"), "follows no system"),
        (("--peers", "omikuji-bonsia"), "omikuji-bonsai"),
        (("--systems", "none", "--peers", "none"), "nobody"),
    ],
)
def test_a_mistyped_name_is_told_before_anything_is_trained(capsys, tiny: str, arguments, words):
    code, out, err = run(capsys, tiny, *arguments)
    assert code == 2
    assert out == ""
    assert words in err
    assert err.count("\n") == 1


def test_specs():
    assert split_specs(("nearest:fast,dim=256,seed=1, nearest",)) == ["nearest:fast,dim=256,seed=1", "nearest"]
    assert split_specs(("nearest", "nearest:dim=3", "nearest")) == ["nearest", "nearest:dim=3"]
    with pytest.raises(UserError):
        split_specs(("dim=3",))

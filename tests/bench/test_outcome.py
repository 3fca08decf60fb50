from __future__ import annotations

import json

from deepxc.bench.outcome import Comparison, Outcome, merged
from deepxc.bench.table import table

OURS = Outcome("nearest", "ours", metrics={"P@1": 40.0, "R@10": 50.0}, costs={"fit_s": 5.0, "peak_mib": 1234.4})
BONSAI = Outcome("bonsai", "peer", metrics={"P@1": 38.0, "R@10": 51.0}, costs={"fit_s": 20.0, "peak_mib": 99.0})
PECOS = Outcome("pecos", "peer", metrics={"P@1": 30.0, "R@10": 45.0}, costs={"fit_s": 2.5, "peak_mib": float("nan")})
GONE = Outcome("napkin", "peer", "missing", "napkinxc is not installed", "Install it with: pip install napkinxc")
DEAD = Outcome("parabel", "peer", "failed", "its process was killed by SIGABRT")
SIZES = {"train_texts": 12_000, "texts": 800, "labels": 300, "filter_pairs": 7}


def comparison(*outcomes: Outcome, repeat: int = 1) -> Comparison:
    return Comparison("data/", "test", SIZES, 2, repeat, list(outcomes))


def test_ratios_and_best_peer():
    found = comparison(OURS, BONSAI, PECOS, GONE, DEAD)
    assert found.best_peer is BONSAI  # by P@1, not by R@10 alone or by speed
    assert found.ratios(OURS) == {"bonsai": 0.25, "pecos": 2.0}
    assert found.ratios(GONE) == {}


def test_no_peer_leaves_no_ratio():
    found = comparison(OURS, GONE)
    assert found.best_peer is None
    assert found.ratios(OURS) == {}
    assert "multiple" not in table(found)


def test_json_is_strict_and_complete():
    text = json.dumps(comparison(OURS, BONSAI, PECOS, GONE, DEAD).as_dict(), allow_nan=False)
    found = json.loads(text)
    assert [row["status"] for row in found["results"]] == ["ok", "ok", "ok", "missing", "failed"]
    assert found["results"][0]["fit_ratios"] == {"bonsai": 0.25, "pecos": 2.0}
    assert found["results"][3]["remedy"] == GONE.remedy
    assert "peak_mib" not in found["results"][2]["costs"]
    assert found["best_peer"] == "bonsai"
    assert found["sizes"] == SIZES


def test_table_has_every_contestant_in_every_band():
    lines = table(comparison(OURS, BONSAI, PECOS, GONE, DEAD, repeat=3)).splitlines()
    assert lines[0] == (
        "data/, 12,000 train texts, 800 test texts, 300 labels, 7 pairs filtered, 2 threads, medians of 3 rounds"
    )
    rows = [line.split() for line in lines]
    assert ["nearest", "40.00", "-", "-", "-", "-", "-", "-", "50.00"] in rows
    assert ["nearest", "5.00", "-", "-", "-", "-", "-", "1,234", "-"] in rows
    assert ["nearest", "0.25x", "2.00x", "0.25x"] in rows
    assert ["pecos", "2.50", "-", "-", "-", "-", "-", "-", "-"] in rows
    assert rows.count(["napkin", "not", "installed"]) == 3
    assert rows.count(["parabel", "failed"]) == 3
    assert "napkin: napkinxc is not installed. Install it with: pip install napkinxc" in lines
    assert "parabel: its process was killed by SIGABRT" in lines


def test_columns_line_up_under_their_heads():
    lines = table(comparison(OURS, BONSAI)).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("percent"))
    assert len({len(line) for line in lines[start : start + 3]}) == 1
    assert lines[start].index("P@1") + 3 == lines[start + 1].index("40.00") + 5


def test_rounds_give_medians_and_one_failure_wins():
    rounds = [Outcome("a", "ours", metrics={"P@1": 1.0}, costs={"fit_s": s}) for s in (3.0, 1.0, 2.0)]
    assert merged(rounds).costs == {"fit_s": 2.0}
    assert merged(rounds).metrics == {"P@1": 1.0}
    assert merged([*rounds, DEAD]) is DEAD

"""The factory, the saved description and the settings."""

import json

import numpy as np
import pytest

from deepxc.errors import ModelFolderError, UserError
from deepxc.search import choose
from deepxc.search.choose import build_index, kind_for, load_index


def test_kind_follows_the_size():
    assert [kind_for(size) for size in (0, 2000, 2001, 100_000, 100_001)] == ["exact", "exact", "scan", "scan", "lists"]


def test_auto_builds_that_kind(planted, monkeypatch):
    monkeypatch.setattr(choose, "EXACT_UP_TO", 1000)
    monkeypatch.setattr(choose, "SCAN_UP_TO", 2000)
    assert [build_index(planted[0][:size]).kind for size in (900, 1100, 2500)] == ["exact", "scan", "lists"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"kind": "tree"},
        {"kind": "scan", "widht": 3},
        {"probes": 3},
        {"metric": "euclid"},
        {"kind": "scan", "store": "float8"},
        {"kind": "scan", "rescore": 0.5},
        {"kind": "scan", "code_dims": 0},
        {"kind": "lists", "probes": 0},
        {"kind": "graph", "width": -1},
        {"kind": "scan", "threads": 0},
    ],
)
def test_bad_arguments(planted, arguments):
    with pytest.raises(UserError) as caught:
        build_index(planted[0], **arguments)
    assert caught.value.remedy


@pytest.mark.parametrize("store", ["float32", "float16", "int8"])
def test_stores(planted, store):
    index = build_index(planted[0], kind="scan", store=store)
    exact = build_index(planted[0], kind="exact")
    ids, scores = index.search(planted[1], 10)
    true_ids, true_scores = exact.search(planted[1], 10)
    assert (ids[:, 0] == true_ids[:, 0]).mean() >= 0.97
    np.testing.assert_allclose(scores, true_scores, atol={"float32": 1e-5, "float16": 2e-3, "int8": 0.05}[store])


def test_wider_search_finds_more(planted):
    vectors, queries = planted
    true_ids, _ = build_index(vectors, kind="exact").search(queries, 50)

    def hits(**settings):
        ids, _ = build_index(vectors, kind="lists", lists=100, **settings).search(queries, 50)
        return np.mean([np.isin(a, b).mean() for a, b in zip(true_ids, ids, strict=True)])

    assert hits(probes=100, rescore=20) > 0.999
    assert hits(probes=2, rescore=2) < hits(probes=10, rescore=2) <= hits(probes=100, rescore=20)


def test_short_lists_are_filled_up(planted):
    """Two vectors a list and one list read: the rest comes from the whole store, so no answer falls short."""
    index = build_index(planted[0], kind="lists", lists=1500, probes=1)
    ids, _ = index.search(planted[1], 40)
    assert (ids >= 0).all()
    true_ids, _ = build_index(planted[0], kind="exact").search(planted[1], 40)
    assert np.mean([np.isin(a, b).mean() for a, b in zip(true_ids, ids, strict=True)]) > 0.95


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format_version": 99}, "newer"),
        ({"kind": "tree"}, "unknown kind"),
        ({"metric": None}, "unknown kind or metric"),
        ({"size": -1}, "whole number"),
        ({"size": 7}, "holds 3000 vectors"),
        ({"dim": 5}, "holds 3000 vectors"),
        ({"settings": []}, "settings"),
        ({"settings": {}}, "settings"),
        ({"extra": 1}, "extra"),
        ({"kind": "lists"}, "damaged"),
    ],
)
def test_edited_description(planted, tmp_path, change, message):
    build_index(planted[0], kind="scan").save(tmp_path)
    path = tmp_path / "index.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelFolderError, match=message):
        load_index(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00"])
def test_broken_description(tmp_path, text):
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(ModelFolderError, match="damaged index"):
        load_index(tmp_path)


def test_folder_without_an_index(tmp_path):
    with pytest.raises(ModelFolderError, match="no saved index"):
        load_index(tmp_path)

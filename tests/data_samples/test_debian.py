"""The debian sample, from an index made here and, where the machine has one, from the machine's own."""

from __future__ import annotations

import os
import stat
import subprocess

import numpy as np
import pytest

from deepxc.data.samples import debian, load_sample
from deepxc.errors import UserError


def stanza(name, synopsis, **relations):
    lines = [f"Package: {name}", "Version: 1.0-1", f"Description: {synopsis}"]
    lines += [f"{field.replace('_', '-')}: {value}" for field, value in relations.items()]
    return [*lines, f"Tag: role::x, Depends: {name}", " continued: here", ""]


def made_index(packages=40):
    """A ring of packages that depend on the next two; every third also on the one before it."""
    lines = []
    for i in range(packages):
        following = f"p{(i + 1) % packages:02d} (>= 1.0) | absent, p{(i + 2) % packages:02d}:any"
        before = {"Suggests": f"p{(i - 1) % packages:02d}, p{i:02d}"} if i % 3 == 0 else {}
        lines += stanza(f"p{i:02d}", f"package number {i}", Depends=following, **before)
    return [*lines, *stanza("lonely", "has no relations"), "Package: silent", "Depends: p01", ""]


def relations(packages=40):
    pairs = set()
    for i in range(packages):
        pairs |= {(i, (i + 1) % packages), (i, (i + 2) % packages)} | (
            {(i, (i - 1) % packages)} if i % 3 == 0 else set()
        )
    return {(f"p{a:02d}", f"p{b:02d}") for a, b in pairs}


def named(split):
    row = np.repeat(np.arange(len(split)), np.diff(split.Y.indptr))
    return {(split.ids[r], split.labels.ids[label]) for r, label in zip(row, split.Y.indices, strict=True)}


def filtered(split):
    return {(split.ids[row], split.labels.ids[label]) for row, label in split.filter_pairs}


@pytest.mark.parametrize("seed", range(5))
def test_what_texts_labels_and_filter_pairs_are(seed):
    made = debian.from_index(made_index(), seed)
    train, test = named(made.train), named(made.test)
    assert len(made.train) == 36
    assert {label for _, label in train} == set(made.labels.ids)
    assert train == {(a, b) for a, b in relations() if a in made.train.ids}
    turned = {(b, a) for a, b in train}
    possible = {(a, b) for a, b in relations() if a not in made.train.ids and b in made.labels.ids}
    assert test == possible - turned
    known = set(made.labels.ids)
    assert filtered(made.train) == {(name, name) for name in made.train.ids if name in known}
    expected = {(name, name) for name in made.test.ids if name in known}
    assert filtered(made.test) == expected | {(a, b) for a, b in possible & turned if a in made.test.ids}
    assert made.train.texts[0] == f"package number {int(made.train.ids[0][1:])}"
    assert made.labels.texts[made.labels.index["p07"]] == "package number 7"


def test_seed_decides():
    one, same, other = (debian.from_index(made_index(), seed) for seed in (1, 1, 2))
    assert one.test.ids == same.test.ids != other.test.ids


def test_the_last_entry_of_a_package_counts():
    index = [*stanza("p03", "an old version", Depends="p04"), *made_index()]
    made = debian.from_index(index)
    assert "an old version" not in {*made.train.texts, *made.test.texts, *made.labels.texts}


def fake_apt(tmp_path, monkeypatch, script):
    program = tmp_path / "apt-cache"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)


def test_no_apt(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"debian: there is no apt .*icd10"):
        load_sample("debian")


@pytest.mark.parametrize(
    "script", ["exit 0", "echo 'E: no lists' >&2; exit 100", "echo 'Package: a'; echo 'Description: b'"]
)
def test_no_package_index(tmp_path, monkeypatch, script):
    fake_apt(tmp_path, monkeypatch, script)
    with pytest.raises(UserError, match="apt-get update") as caught:
        load_sample("debian")
    assert "no lists" in str(caught.value) or "no lists" not in script


def test_this_machines_index():
    try:
        made = load_sample("debian")
    except UserError as missing:
        pytest.skip(f"no package index here: {missing}")
    for split in (made.train, made.test):
        assert len(split.texts) == len(split) > 0
        assert np.diff(split.Y.indptr).min() > 0
        assert not named(split) & filtered(split)
    assert not {(b, a) for a, b in named(made.train)} & named(made.test)
    shown = subprocess.run(["apt-cache", "show", made.test.ids[0]], capture_output=True, text=True, check=True).stdout
    assert made.test.texts[0] in shown

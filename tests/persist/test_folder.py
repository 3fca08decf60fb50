"""A model folder is whole or it is refused, whatever happens while it is written."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from deepxc.data.label_space import LabelSpace
from deepxc.errors import ModelFolderError, UserError
from deepxc.persist.folder import MANIFEST, Manifest, open_folder, save_folder
from deepxc.persist.label_table import read_labels, write_labels
from deepxc.persist.strings import StringTable
from deepxc.persist.tensors import read_tensors, write_tensors


def save(path, value=1.0, size=1000):
    manifest = Manifest(system="Probe", settings={"value": value})
    save_folder(path, manifest, lambda d: write_tensors(d / "t.safetensors", {"x": np.full(size, value)}))


def value_of(path):
    return read_tensors(open_folder(path).data / "t.safetensors")["x"][0]


def test_a_saved_model_opens_with_what_was_said_of_it(tmp_path):
    save(tmp_path / "m", 2.0)
    opened = open_folder(tmp_path / "m")
    assert opened.manifest == Manifest(system="Probe", settings={"value": 2.0})
    assert opened.bytes > 8000
    assert value_of(tmp_path / "m") == 2.0


def test_saving_again_replaces_and_leaves_nothing_behind(tmp_path):
    save(tmp_path / "m", 1.0)
    save(tmp_path / "m", 2.0)
    assert value_of(tmp_path / "m") == 2.0
    assert len(list((tmp_path / "m").iterdir())) == 2


def test_a_folder_with_other_things_in_it_is_not_overwritten(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match="not a model folder"):
        save(tmp_path)
    assert (tmp_path / "thesis.txt").exists()


def test_a_failing_save_leaves_the_old_model(tmp_path):
    save(tmp_path / "m", 1.0)

    def fail(_):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        save_folder(tmp_path / "m", Manifest("Probe", {}), fail)
    assert value_of(tmp_path / "m") == 1.0
    assert len(list((tmp_path / "m").iterdir())) == 2


SAVER = """
import sys, time, resource, signal
import numpy as np
from pathlib import Path
from deepxc.errors import UserError
from deepxc.persist.folder import Manifest, save_folder
from deepxc.persist.tensors import write_tensors
"""


def test_a_full_disk_leaves_the_old_model_and_says_what_to_do(tmp_path):
    save(tmp_path / "m", 1.0)
    code = SAVER + textwrap.dedent("""
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        def write(d):
            with (d / "big.bin").open("wb") as file:
                file.write(bytes(1_000_000))
        try:
            save_folder(sys.argv[1], Manifest("Probe", {}), write)
        except UserError as fault:
            print(fault)
            sys.exit(2)
    """)
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "m"], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "could not be saved" in done.stdout
    assert "space" in done.stdout
    assert value_of(tmp_path / "m") == 1.0


def test_a_kill_while_saving_leaves_the_old_model_and_the_next_save_cleans_up(tmp_path):
    save(tmp_path / "m", 1.0)
    code = SAVER + textwrap.dedent("""
        def write(d):
            write_tensors(d / "t.safetensors", {"x": np.full(1000, 9.0)})
            print("half", flush=True)
            time.sleep(60)
        save_folder(sys.argv[1], Manifest("Probe", {}), write)
    """)
    child = subprocess.Popen([sys.executable, "-c", code, tmp_path / "m"], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"half\n"
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    time.sleep(0.05)
    assert value_of(tmp_path / "m") == 1.0
    save(tmp_path / "m", 3.0)
    assert value_of(tmp_path / "m") == 3.0
    assert len(list((tmp_path / "m").iterdir())) == 2


def tensors_file(folder):
    return next(folder.glob("data-*/t.safetensors"))


def truncate(folder):
    file = tensors_file(folder)
    file.write_bytes(file.read_bytes()[:-10])


def flip_a_bit(folder):
    file = tensors_file(folder)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def rewrite(change):
    def apply(folder):
        document = json.loads((folder / MANIFEST).read_text())
        change(document)
        (folder / MANIFEST).write_text(json.dumps(document))

    return apply


DAMAGE = {
    "truncated tensors": (truncate, "truncated"),
    "edited tensors": (flip_a_bit, "checksum"),
    "missing tensors": (lambda f: tensors_file(f).unlink(), "missing"),
    "missing manifest": (lambda f: (f / MANIFEST).unlink(), "not a model folder"),
    "truncated manifest": (lambda f: (f / MANIFEST).write_text((f / MANIFEST).read_text()[:40]), "damaged"),
    "edited settings": (rewrite(lambda d: d["settings"].update(value=5)), "edited"),
    "newer version": (rewrite(lambda d: d.update(format_version=99)), "Upgrade deepxc"),
    "other format": (rewrite(lambda d: d.update(format="cake")), "not the manifest"),
    "a list": (lambda f: (f / MANIFEST).write_text("[]"), "not the manifest"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_folder_is_refused_with_its_reason(tmp_path, name):
    damage, reason = DAMAGE[name]
    save(tmp_path / "m")
    damage(tmp_path / "m")
    with pytest.raises(ModelFolderError, match=reason) as caught:
        open_folder(tmp_path / "m")
    assert caught.value.remedy
    assert str(tmp_path) in caught.value.where


def test_no_folder_at_all(tmp_path):
    with pytest.raises(ModelFolderError, match="no model folder"):
        open_folder(tmp_path / "nowhere")


@given(st.lists(st.text()))
def test_string_tables_give_back_every_string(strings):
    table = StringTable.pack(strings)
    assert list(table) == strings
    assert table[::-1] == strings[::-1]


def test_tensors_come_back_as_maps_of_the_file(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.random(20, 30, 0.2, "csr", dtype=np.float32, rng=rng)
    arrays = {
        "a": rng.normal(size=(3, 4)),
        "b.c": np.arange(7, dtype=np.int8),
        "none": np.empty((0, 5), np.float32),
        "X": X,
    }
    write_tensors(tmp_path / "t", arrays)
    for mmap in (True, False):
        back = read_tensors(tmp_path / "t", mmap=mmap)
        assert set(back) == set(arrays)
        np.testing.assert_array_equal(back["a"], arrays["a"])
        np.testing.assert_array_equal(back["b.c"], arrays["b.c"])
        assert back["none"].shape == (0, 5)
        assert (back["X"] != X).nnz == 0
    assert not read_tensors(tmp_path / "t")["a"].flags.writeable


@pytest.mark.parametrize(
    "labels",
    [
        LabelSpace.numbered(3),
        LabelSpace.from_names(["a", "b"]),
        LabelSpace(["1", "2"], ["x", "x"], ["x one", ""], None, np.array([3, 0])),
        LabelSpace([], []),
        LabelSpace(["é"], ["猫"], None, sparse.csr_matrix(np.eye(1, 4, dtype=np.float32))),
    ],
)
def test_label_spaces_come_back_whole(tmp_path, labels):
    write_labels(tmp_path / "l", labels)
    back = read_labels(tmp_path / "l")
    for part in ("ids", "names", "texts"):
        before, after = getattr(labels, part), getattr(back, part)
        assert (before is None) == (after is None)
        assert before is None or list(before) == list(after)
    assert (labels.features is None) == (back.features is None)
    assert (labels.frequencies is None) == (back.frequencies is None)
    assert back.index == labels.index

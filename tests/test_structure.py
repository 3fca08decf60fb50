"""The house keeps its order: imports point one way, start-up is cheap, nothing is pickled."""

import ast
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import deepxc

ROOT = Path(deepxc.__file__).parent

# Rooms from the ground up. A room may import the rooms of the floors below its own, and itself.
FLOORS = [
    {"errors", "version"},
    {"threads", "number_formats"},
    {"data", "text"},
    {"persist"},
    {"labels"},
    {"search"},
    {"modules"},
    {"training"},
    {"predict", "evaluate"},
    {"systems"},
    {"testing", "bench"},
    {"cli"},
]
SHARED = {"deepxc.predict.topk"}  # the answer of every system: `evaluate` may know it by name
FLOOR_OF = {room: i for i, floor in enumerate(FLOORS) for room in floor}
MODULES = sorted(p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py")


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path):
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert room in FLOOR_OF, f"{room} stands on no floor: add it to FLOORS and to CONTRIBUTING.md"
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "deepxc" or len(parts) < 2 or parts[1] == room or parts[1] not in FLOOR_OF:
            continue
        lower = FLOOR_OF[parts[1]] < FLOOR_OF[room]
        assert lower or any(name.startswith(shared) for shared in SHARED), f"{path.name} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_nothing_is_pickled(path):
    banned = {"pickle", "cPickle", "joblib", "dill", "cloudpickle", "shelve", "marshal"}
    assert not banned & {name.split(".")[0] for name in imports(path)}
    source = path.read_text(encoding="utf-8")
    for call in ("allow_pickle=True", "torch.save(", "torch.load("):
        assert call not in source


def test_a_load_survives_without_pickle(tmp_path):
    code = f"""
import sys
sys.modules["pickle"] = None  # any import of it from here on fails
import json
class Ban:
    pass
from deepxc.persist import folder, tensors, label_table
from deepxc.persist.folder import Manifest
import numpy as np
place = {str(tmp_path / "m")!r}
folder.save_folder(place, Manifest("Probe", {{}}), lambda d: tensors.write_tensors(d / "t", {{"x": np.ones(3)}}))
print(tensors.read_tensors(folder.open_folder(place).data / "t")["x"].sum())
"""
    # NumPy and SciPy import pickle for themselves; they come first, so that only our own use of it would fail.
    code = "import numpy, scipy.sparse, safetensors.numpy\n" + code
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "3.0", done.stderr


def test_the_help_is_quick_and_imports_no_numerical_library():
    code = (
        "import sys\nfrom deepxc.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'torch', 'numpy', 'scipy', 'sklearn', 'numba', 'faiss', 'pyarrow'} & set(sys.modules)))"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "predict" in done.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


def test_public_names_are_there():
    for name in deepxc.__all__:
        assert getattr(deepxc, name) is not None
    assert set(dir(deepxc)) == set(deepxc.__all__)
    with pytest.raises(AttributeError, match="no attribute"):
        deepxc.nonsense  # noqa: B018


def test_modules_stay_small():
    for path in MODULES:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 420, path

"""A training on disk, whole at any moment: what was learned, the optimiser's state, randomness, position, history.

It is a model folder as `deepxc.persist` writes it: checked on reading, replaced in one step. Tensors go from memory to
file and back without a second copy.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from deepxc.errors import UserError
from deepxc.persist.folder import Manifest, open_folder, save_folder
from deepxc.training.loop import Callback, Run

if TYPE_CHECKING:
    from safetensors import _SafeOpen  # pyrefly: ignore[missing-module-attribute]

_SYSTEM = "Checkpoint"
_FILE = "training.safetensors"


class Checkpoint(Callback):
    """Writes a checkpoint now and then.

    Args:
        folder: Where; one that is there is replaced.
        seconds: Write after the first batch that ends so long after the last writing, if given.
        epochs: Write after every so many epochs, if given.
    """

    last = True

    def __init__(self, folder: str | Path, *, seconds: float | None = None, epochs: int | None = 1) -> None:
        self.folder, self.seconds, self.epochs = Path(folder), seconds, epochs
        self._written, self._step = 0.0, -1

    def on_train_begin(self, run: Run) -> None:  # noqa: ARG002, D102
        self._written = time.monotonic()

    def on_batch_end(self, run: Run) -> None:  # noqa: D102
        if self.seconds is not None and time.monotonic() - self._written >= self.seconds:
            self._write(run)

    def on_epoch_end(self, run: Run) -> None:  # noqa: D102
        if self.epochs is not None and (run.epoch + 1) % self.epochs == 0:
            self._write(run)

    def on_train_end(self, run: Run) -> None:  # noqa: D102
        if run.stop and run.step > self._step:
            self._write(run)

    def _write(self, run: Run) -> None:
        write_checkpoint(self.folder, run)
        self._written, self._step = time.monotonic(), run.step


def write_checkpoint(folder: Path, run: Run) -> None:
    """Save a training as it stands."""
    tensors = {f"learner.{name}": tensor for name, tensor in run.learner.state().items()}
    tensors |= {f"optimiser.{name}": tensor for name, tensor in run.optimiser.state().items()}
    tensors |= {f"random.{name}": tensor for name, tensor in _random_state().items()}
    tensors["losses"] = torch.tensor(run.history.losses, dtype=torch.float64)
    values: list[dict[str, Any]] = []
    for i, callback in enumerate(run.callbacks):
        state = callback.state()
        tensors |= {f"callback.{i}.{name}": part for name, part in state.items() if torch.is_tensor(part)}
        values.append({name: part for name, part in state.items() if not torch.is_tensor(part)})
    facts = {
        "plan": _plan(run),
        "batch": run.position[1],
        "epochs": run.history.epochs,
        "callbacks": [
            {"name": type(callback).__name__, "state": state}
            for callback, state in zip(run.callbacks, values, strict=True)
        ],
    }
    kept = _distinct(tensors)
    save_folder(folder, Manifest(_SYSTEM, {}, facts=facts), lambda data: save_file(kept, data / _FILE))


def read_checkpoint(folder: Path, run: Run) -> bool:
    """Take a training up where its checkpoint left it; False where there is none."""
    folder = Path(folder)
    if not (folder / "manifest.json").exists():
        return False
    opened = open_folder(folder)
    facts = opened.manifest.facts
    if opened.manifest.system != _SYSTEM:
        raise UserError("a model, not a checkpoint", where=str(folder), remedy="Give the folder of a checkpoint")
    now, then = _plan(run), facts["plan"]
    if other := [f"{name} {then.get(name)}, now {now[name]}" for name in now if then.get(name) != now[name]]:
        raise UserError(
            f"the checkpoint is of another training ({'; '.join(other)})",
            where=str(folder),
            remedy="Resume with the same data and settings, or remove the checkpoint",
        )
    with safe_open(opened.data / _FILE, framework="pt") as file:
        run.learner.load_state(_Part(file, "learner.", run.learner.state()))
        run.optimiser.load_state(_Part(file, "optimiser."))
        _restore_random(_Part(file, "random."))
        run.history.losses = file.get_tensor("losses").tolist()
        unmet = list(enumerate(facts["callbacks"]))
        for callback in run.callbacks:
            for place, (i, saved) in enumerate(unmet):
                if saved["name"] == type(callback).__name__:
                    callback.load_state(saved["state"] | dict(_Part(file, f"callback.{i}.")))
                    del unmet[place]
                    break
    run.history.epochs = facts["epochs"]
    run.epoch, run.batch = len(facts["epochs"]), facts["batch"]
    return True


class _Part(Mapping[str, torch.Tensor]):
    """The tensors of a file whose names begin alike, each read when it is asked for.

    A tensor that was saved under another name, because two names share it, is found through `own`.
    """

    def __init__(self, file: _SafeOpen, prefix: str, own: Mapping[str, torch.Tensor] | None = None) -> None:
        self._file, self._prefix = file, prefix
        self._names = {name.removeprefix(prefix): name for name in file.keys() if name.startswith(prefix)}  # noqa: SIM118 (not a dict)
        first: dict[Any, str] = {}
        for name, tensor in (own or {}).items():
            self._names.setdefault(name, prefix + first.setdefault(_memory(tensor), name))

    def __getitem__(self, name: str) -> torch.Tensor:
        return self._file.get_tensor(self._names[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _plan(run: Run) -> dict[str, Any]:
    """What has to be the same when a training goes on."""
    batches = run.batches
    return {
        "rows": batches.n,
        "batch_size": batches.size,
        "seed": batches.seed,
        "epochs": run.epochs,
    } | {name: list(tensor.shape) for name, tensor in run.learner.state().items()}


def _distinct(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors as the file takes them: contiguous, and memory that two names share under the first of them."""
    kept: dict[str, torch.Tensor] = {}
    seen = set()
    for name, tensor in tensors.items():
        memory = _memory(tensor)
        if memory in seen:
            continue
        if tensor.numel():
            seen.add(memory)
        kept[name] = tensor.detach().contiguous()
    return kept


def _memory(tensor: torch.Tensor) -> tuple[int, torch.dtype, tuple[int, ...]]:
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape)


def _random_state() -> dict[str, torch.Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"cuda.{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def _restore_random(states: Mapping[str, torch.Tensor]) -> None:
    torch.set_rng_state(states["cpu"])
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            if f"cuda.{i}" in states:
                torch.cuda.set_rng_state(states[f"cuda.{i}"], i)

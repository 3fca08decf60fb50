"""What our encoders share: parameters sized by `learn`, and a folder that any of them is opened from again.

A folder holds `encoder.json` (kind, settings, sizes), `encoder.safetensors` (every tensor, tables included) and, where
texts are read, `tokenizer.json`. An encoder of your own may inherit from `StoredEncoder` to be saved the same way; the
`Encoder` protocol does not ask for it.
"""

from __future__ import annotations

import inspect
import json
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch

from deepxc.errors import ModelFolderError, UserError
from deepxc.persist.tensors import read_tensors, write_tensors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scipy import sparse

    from deepxc.data.dataset import Split
    from deepxc.modules.protocols import Inputs

FORMAT = 1
ABOUT = "encoder.json"
TENSORS = "encoder.safetensors"
TOKENIZER = "tokenizer.json"
GIVEN = "given"
"""Stands in saved settings for an array or a function, neither of which JSON can hold."""

KINDS: dict[str, type[StoredEncoder]] = {}
"""The class of each kind that has been imported."""


class StoredEncoder(torch.nn.Module):
    """An encoder whose constructor keeps each argument as the attribute of that name, and whose `learn` ends in `size`.

    A subclass with a `kind` of its own is known to `open_encoder` once its module is imported.
    """

    kind: ClassVar[str] = ""
    dim: int
    seed: int = 0

    _empty_first: ClassVar[bool] = True
    """Opening makes the modules without memory, then hands them the saved tensors: nothing is drawn in vain."""

    def __init_subclass__(cls, **named: Any) -> None:  # noqa: ANN401 (passed on)
        super().__init_subclass__(**named)
        if "kind" in cls.__dict__:
            known = KINDS.setdefault(cls.kind, cls)
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise TypeError(f"{cls.__qualname__} has the kind {cls.kind!r} of {known.__qualname__}")
            KINDS[cls.kind] = cls

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[str, Any] = {}
        """What `build` was called with; empty until something was learned."""

    def learn(self, split: Split) -> Inputs:
        """Learn what reading needs from train rows, size the parameters, and read the rows."""
        raise NotImplementedError

    def read(self, inputs: Sequence[str] | sparse.csr_matrix | np.ndarray) -> Inputs:
        """Read new rows with what was learned."""
        raise NotImplementedError

    def forward(self, batch: Any) -> torch.Tensor:  # noqa: ANN401 (what the inputs' `take` gave)
        """Features of a batch, (rows, dim)."""
        raise NotImplementedError

    def build(self, **sizes: Any) -> None:  # noqa: ANN401 (each encoder names its own)
        """Make the submodules for these sizes, with fresh parameters."""
        raise NotImplementedError

    def size(self, **sizes: Any) -> None:  # noqa: ANN401
        """`build` from the encoder's seed; the caller's random state stays as it was."""
        with seeded(self.seed):
            self.build(**sizes)
        self.sizes = sizes

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments, as JSON can hold them."""
        names = [name for name in inspect.signature(type(self).__init__).parameters if name != "self"]
        return {name: _as_json(getattr(self, name)) for name in names}

    def state(self) -> dict[str, np.ndarray]:
        """Every tensor by its name, tables included; they share memory with the encoder where they can."""
        return {name: tensor.detach().cpu().numpy() for name, tensor in self.state_dict().items()}

    def load_state(self, state: Mapping[str, np.ndarray], where: str = "state") -> None:
        """Take over the values that `state` gave; optimisers that hold the parameters hold them still."""
        expected = self.state_dict()
        odd = sorted(expected.keys() ^ state.keys())
        odd += [name for name in sorted(expected.keys() & state.keys()) if not _fits(state[name], expected[name])]
        if odd:
            raise ModelFolderError(
                f"tensors that do not fit this encoder: {', '.join(odd[:3])}", where=where, remedy="Save it again"
            )
        tensors = {
            name: torch.from_numpy(state[name]).to(tensor.dtype).reshape(tensor.shape)
            for name, tensor in expected.items()
        }
        self.load_state_dict(tensors, assign=any(tensor.is_meta for tensor in expected.values()))

    def write(self, folder: str | Path) -> None:
        """Save into a folder, made if missing; `open_encoder` reads it back."""
        self.checked()
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        about = {"format": FORMAT, "kind": self.kind, "settings": self.settings(), "sizes": self.sizes}
        (folder / ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
        write_tensors(folder / TENSORS, {name: _halved(array) for name, array in self.state().items()})
        self.write_reading(folder)

    @classmethod
    def read_from(cls, folder: str | Path) -> Self:
        """Open what `write` saved."""
        folder = Path(folder)
        about = read_about(folder)
        if about["kind"] != cls.kind:
            raise ModelFolderError(f"holds an encoder of kind {about['kind']!r}, not {cls.kind!r}", where=str(folder))
        try:
            encoder = cls(**about["settings"])
        except (TypeError, UserError) as fault:
            raise _damaged(folder / ABOUT, fault) from fault
        with torch.device("meta" if cls._empty_first else "cpu"):
            encoder.size(**about["sizes"])
        path = folder / TENSORS
        if not path.is_file():
            raise ModelFolderError("the encoder's tensors are missing", where=str(path), remedy="Copy the whole folder")
        encoder.load_state(read_tensors(path, mmap=False), str(path))
        encoder.read_reading(folder)
        return encoder.eval()

    def write_reading(self, folder: Path) -> None:
        """Save what reading needs beside the tensors, such as a vocabulary."""

    def read_reading(self, folder: Path) -> None:
        """Open what `write_reading` saved."""

    def checked(self) -> Self:
        """The encoder itself, once it has learned."""
        if not self.sizes:
            raise UserError("the encoder has learned nothing yet", where=type(self).__name__, remedy="Call learn first")
        return self


def read_about(folder: Path) -> dict[str, Any]:
    """What `encoder.json` says, checked."""
    path = folder / ABOUT
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelFolderError("there is no saved encoder", where=str(path), remedy="Check the path") from None
    except ValueError as fault:
        raise _damaged(path, fault) from fault
    if not isinstance(about, dict) or not {"format", "kind", "settings", "sizes"} <= about.keys():
        raise ModelFolderError("damaged: parts are missing", where=str(path), remedy="Save the encoder again")
    if about["format"] != FORMAT:
        raise ModelFolderError(
            f"format {about['format']}, but this version reads {FORMAT}", where=str(path), remedy="Update deepxc"
        )
    return about


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """PyTorch's generator of this process starts from a seed inside, and goes on as before afterwards."""
    before = torch.get_rng_state()
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(before)


def _fits(array: np.ndarray, tensor: torch.Tensor) -> bool:
    return array.shape == tensor.shape or (tensor.ndim == 0 and array.size == 1)  # files hold no arrays of no dimension


def _halved(array: np.ndarray) -> np.ndarray:
    """The array in half precision where that loses nothing, as with tables that were rounded to it."""
    if array.dtype != np.float32 or array.ndim != 2:
        return array
    with np.errstate(over="ignore"):
        half = array.astype(np.float16)
    return half if np.array_equal(half, array) else array


def _as_json(value: object) -> Any:  # noqa: ANN401
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.ndarray) or callable(value):
        return GIVEN
    return value


def _damaged(path: Path, fault: Exception) -> ModelFolderError:
    return ModelFolderError(f"damaged ({fault})", where=str(path), remedy="Save the encoder again")

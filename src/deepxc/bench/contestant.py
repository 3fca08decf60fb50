"""What the bench asks of whoever takes part: train, save, open again, and rank labels for texts."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol

from deepxc.errors import DeepxcError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from scipy import sparse

    from deepxc.data.dataset import Split

    Inputs = Sequence[str] | sparse.csr_matrix | np.ndarray


@dataclass(frozen=True)
class Entry:
    """Who takes part, in words that cross a process boundary as JSON.

    Attributes:
        name: What the table calls it.
        kind: `ours`, or `peer` for another library.
        maker: `module:class` of a `Contestant`.
        params: Keyword arguments of that class.
    """

    name: str
    kind: Literal["ours", "peer"]
    maker: str
    params: dict[str, Any] = field(default_factory=dict)

    def make(self) -> Contestant:
        """The contestant; a library that it wraps is imported only now.

        Raises:
            MissingPackage: That library is not installed.
        """
        module, _, name = self.maker.partition(":")
        return getattr(import_module(module), name)(**self.params)


class MissingPackage(DeepxcError):  # noqa: N818 (no fault: the run goes on)
    """A library that a contestant wraps is not installed, or does not work with what is.

    Args:
        what: What is missing.
        remedy: How to get it.
    """

    def __init__(self, what: str, remedy: str) -> None:
        self.what, self.remedy = what, remedy
        super().__init__(f"{what}. {remedy}")


class Stages:
    """Wall and CPU seconds of named stages; the CPU seconds are those of all threads of this process."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = {}
        self.cpu: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the seconds of the block to a stage. Blocks of different stages may be nested."""
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.wall[name] = self.wall.get(name, 0.0) + time.perf_counter() - wall
            self.cpu[name] = self.cpu.get(name, 0.0) + time.process_time() - cpu


@dataclass(frozen=True)
class Trial:
    """What a contestant trains with.

    Attributes:
        folder: An empty folder that is the contestant's until it has answered; what lies there after `save` is its
            model, and is weighed.
        threads: Threads it may use.
        stages: Where it notes the seconds of `tokenise` (texts to features) and of `convert` (handing the data to a
            library that wants it as a file, which is not counted as training).
    """

    folder: Path
    threads: int
    stages: Stages


class Contestant(Protocol):
    """One system of the comparison, ours or theirs. A constructor does no work but importing its library."""

    def fit(self, train: Split, trial: Trial) -> None:
        """Train."""
        ...

    def save(self, folder: Path) -> None:
        """Leave in the folder what answering needs, and nothing else."""
        ...

    def open(self, folder: Path, threads: int) -> None:
        """Forget what is in memory, and get ready to answer with so many threads from what was saved."""
        ...

    def rank(self, inputs: Inputs, k: int) -> np.ndarray:
        """Ids of the k best labels of each text, best first, padded with -1; shape (n, k)."""
        ...

    def rank_one(self, item: str | sparse.csr_matrix | np.ndarray, k: int) -> object:
        """The k best labels of one text with their scores, in the form that comes cheapest."""
        ...

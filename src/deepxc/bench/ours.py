"""Our own systems as contestants."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from deepxc.bench.contestant import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy as np
    from scipy import sparse

    from deepxc.bench.contestant import Inputs, Stages, Trial
    from deepxc.data.dataset import Split
    from deepxc.systems.estimator import XmcEstimator

_MODEL = "model"
_TOKENISERS = (("deepxc.text.bag", "BagOfTokens", ("fit", "transform", "fit_transform")),)


def system_entry(name: str, module: str, system: str, preset: str, seed: int, settings: dict[str, Any]) -> Entry:
    """The entry of one of our systems, its preset and settings checked before anything is trained.

    Raises:
        UserError: No such preset or setting, or a value that it cannot take.
    """
    from deepxc.systems.presets import resolve

    kind = getattr(import_module(module), system)
    resolve(kind.settings_type, kind.preset_file, preset, settings)
    params = {"preset": preset, "seed": seed, **settings}
    return Entry(name, "ours", "deepxc.bench.ours:System", {"module": module, "system": system, "params": params})


class System:
    """An estimator of `deepxc.systems`.

    Args:
        module: Its module.
        system: Its class.
        params: What it is made with.
    """

    def __init__(self, module: str, system: str, params: dict[str, Any]) -> None:
        self._kind = getattr(import_module(module), system)
        self._params = params
        self._model: XmcEstimator | None = None

    def fit(self, train: Split, trial: Trial) -> None:
        """Train on the split; what its tokenisers take is noted."""
        self._model = self._kind(threads=trial.threads, **self._params)
        with _tokenising_noted(trial.stages):
            self._model.fit(train)

    def save(self, folder: Path) -> None:
        """Write the model folder."""
        assert self._model is not None
        self._model.save(folder / _MODEL)

    def open(self, folder: Path, threads: int) -> None:
        """Load the model folder."""
        from deepxc.systems.estimator import load

        self._model = None
        self._model = load(folder / _MODEL)
        self._model.threads = threads

    def rank(self, inputs: Inputs, k: int) -> np.ndarray:
        """Ids of the k best labels."""
        assert self._model is not None
        return self._model.predict_topk(inputs, k).ids

    def rank_one(self, item: str | sparse.csr_matrix | np.ndarray, k: int) -> object:
        """The answer as users get it."""
        assert self._model is not None
        return self._model.predict_topk([item] if isinstance(item, str) else item, k)


@contextmanager
def _tokenising_noted(stages: Stages) -> Iterator[None]:
    """Note the seconds inside our tokenisers, wherever in a training they are called from."""
    before = [(getattr(import_module(module), kind), names) for module, kind, names in _TOKENISERS]
    originals = [(kind, name, getattr(kind, name)) for kind, names in before for name in names]
    for kind, name, method in originals:
        setattr(kind, name, _noted(method, stages))
    try:
        yield
    finally:
        for kind, name, method in originals:
            setattr(kind, name, method)


def _noted(method: Callable[..., Any], stages: Stages) -> Callable[..., Any]:
    @functools.wraps(method)
    def timed(*args: Any, **named: Any) -> Any:  # noqa: ANN401 (passed on)
        with stages.stage("tokenise"):
            return method(*args, **named)

    return timed

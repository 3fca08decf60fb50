"""The trainings that one `fit` is made of: told to the same callbacks, and taken up again where a kill ended them.

Everything between two trainings (clusters, shortlists, indexes) follows from data, settings and seed, so it is done
anew when a fit goes on; only what was trained is read back.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepxc.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deepxc.training.batches import Batches
    from deepxc.training.history import History
    from deepxc.training.learner import Learner
    from deepxc.training.loop import Callback
    from deepxc.training.optimisers import Optimiser
    from deepxc.training.schedules import Schedule

_PLAN = "plan.json"
_SECONDS = 60.0  # between checkpoints


class TrainingRuns:
    """Runs trainings by name and keeps their histories.

    Args:
        callbacks: Told of the events of every training.
        folder: Where checkpoints go, one folder a training; None keeps none.
        plan: What has to be the same for a checkpoint to be taken up: system, settings, data.
    """

    def __init__(
        self,
        callbacks: Sequence[Callback] = (),
        folder: str | Path | None = None,
        plan: dict[str, Any] | None = None,
    ) -> None:
        self.callbacks = list(callbacks)
        self.folder = None if folder is None else Path(folder)
        self.histories: dict[str, History] = {}
        if self.folder is not None:
            _agree(self.folder, plan or {})

    def train(
        self,
        name: str,
        learner: Learner,
        batches: Batches,
        *,
        optimiser: Optimiser,
        epochs: int,
        schedule: Schedule,
        validate: Callable[[Learner], dict[str, float]] | None = None,
        patience: int = 0,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        """Train, or go on with the training of this name; see `deepxc.training.loop.train`.

        Args:
            name: Of the training, unique in the fit.
            learner: What learns.
            batches: What it learns from.
            optimiser: What moves it.
            epochs: How often it sees everything.
            schedule: What the learning rates are multiplied with, by progress.
            validate: Measures the learner after each epoch.
            patience: Epochs without a better `P@1` after which training ends, the best weights kept; 0: never.
            callbacks: Told of the events of this training only, before all others.
        """
        from deepxc.training.callbacks import EarlyStopping
        from deepxc.training.checkpoints import Checkpoint
        from deepxc.training.loop import train

        callbacks = [*callbacks, *self.callbacks]
        place = None
        if validate is not None and patience:
            callbacks.append(EarlyStopping("P@1", patience=patience))
        if self.folder is not None:
            place = self.folder / name
            callbacks.append(Checkpoint(place, seconds=_SECONDS, epochs=epochs))
        self.histories[name] = train(
            learner,
            batches,
            optimiser=optimiser,
            epochs=epochs,
            schedule=schedule,
            callbacks=callbacks,
            validate=validate,
            resume=place,
        )


def _agree(folder: Path, plan: dict[str, Any]) -> None:
    """Note the plan in the folder, or check that the one noted there is the same."""
    path = folder / _PLAN
    document = json.dumps(plan, sort_keys=True, indent=1, default=str)
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(document, encoding="utf-8")
        fresh.replace(path)
        return
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise UserError("damaged", where=str(path), remedy="Remove the folder of checkpoints") from None
    now = json.loads(document)
    if noted != now:
        other = ", ".join(name for name in now if noted.get(name) != now[name])
        raise UserError(
            f"these checkpoints are of another training (other {other or 'plan'})",
            where=str(folder),
            remedy="Train with the same data, settings and seed, or choose another folder",
        )

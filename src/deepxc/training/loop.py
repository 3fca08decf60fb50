"""The training loop of every system."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from deepxc.errors import UserError
from deepxc.training.computing import keep_freed_memory
from deepxc.training.history import History
from deepxc.training.schedules import Schedule, constant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from deepxc.training.batches import Batches
    from deepxc.training.learner import Learner
    from deepxc.training.optimisers import Optimiser


@dataclass
class Run:
    """A training under way: what callbacks see, and may stop.

    Attributes:
        learner: What learns.
        optimiser: What moves it.
        batches: What it learns from.
        epochs: How many epochs there will be.
        history: What happened so far.
        callbacks: Who is told of the events.
        epoch: The current epoch, from 0.
        batch: Batches of this epoch that are done.
        stop: Set it to a reason, and training ends after the current batch.
    """

    learner: Learner
    optimiser: Optimiser
    batches: Batches
    epochs: int
    history: History = field(default_factory=History)
    callbacks: Sequence[Callback] = ()
    epoch: int = 0
    batch: int = 0
    stop: str | None = None

    @property
    def step(self) -> int:
        """Batches done since the start of training."""
        return len(self.history.losses)

    @property
    def steps(self) -> int:
        """Batches of the whole training."""
        return self.epochs * len(self.batches)

    @property
    def position(self) -> tuple[int, int]:
        """Epochs done, and batches done of the next one: where a training that resumes has to go on."""
        done = len(self.history.epochs)
        return done, self.batch if done == self.epoch else 0


class Callback:
    """Told of the events of a training; each may read the run, and stop it."""

    last = False
    """Whether to be told after the others, who may still change what this one looks at."""

    def on_train_begin(self, run: Run) -> None:
        """Before the first batch, or the first after resuming."""

    def on_epoch_begin(self, run: Run) -> None:
        """Before the first batch of an epoch, or the first after resuming within one."""

    def on_batch_end(self, run: Run) -> None:
        """After every step of the optimiser."""

    def on_epoch_end(self, run: Run) -> None:
        """After an epoch and its validation; its record is the last of `run.history.epochs`."""

    def on_train_end(self, run: Run) -> None:
        """After the last epoch, or when training was stopped."""

    def state(self) -> dict[str, Any]:
        """What a resumed training has to know again, as tensors or values that JSON can hold."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over what `state` gave."""


def train(
    learner: Learner,
    batches: Batches,
    *,
    optimiser: Optimiser,
    epochs: int,
    schedule: Schedule = constant,
    callbacks: Sequence[Callback] = (),
    validate: Callable[[Learner], dict[str, float]] | None = None,
    resume: Path | None = None,
) -> History:
    """Train, and tell what happened.

    Args:
        learner: What learns.
        batches: What it learns from.
        optimiser: What moves it.
        epochs: How often it sees everything.
        schedule: What the learning rates are multiplied with, by progress.
        callbacks: Who is told of the events, in this order.
        validate: Measures the learner after each epoch; called in evaluation mode, without gradients.
        resume: A checkpoint to go on from, if there is one at this place.
    """
    run = Run(learner, optimiser, batches, epochs, callbacks=sorted(callbacks, key=lambda callback: callback.last))
    if resume is not None:  # the module of checkpoints stands on this one
        from deepxc.training.checkpoints import read_checkpoint

        read_checkpoint(resume, run)
    keep_freed_memory()
    learner.train()
    _tell(run, "on_train_begin")
    first, start = run.position
    for epoch in range(first, epochs):
        if run.stop:
            break
        run.epoch, run.batch = epoch, start
        _train_epoch(run, schedule, validate)
        start = 0
    run.history.stopped = run.stop
    _tell(run, "on_train_end")
    return run.history


def _train_epoch(run: Run, schedule: Schedule, validate: Callable[[Learner], dict[str, float]] | None) -> None:
    begun = time.perf_counter()
    scale = 0.0
    _tell(run, "on_epoch_begin")
    for batch in run.batches.epoch(run.epoch, run.batch):
        scale = schedule(run.step / run.steps)
        loss = run.learner.loss(batch)
        loss.backward()
        run.optimiser.step(scale)
        _note_loss(run, loss.item())
        _tell(run, "on_batch_end")
        if run.stop:
            return
    of_epoch = run.history.losses[run.epoch * len(run.batches) :]
    record: dict[str, Any] = {
        "epoch": run.epoch + 1,
        "loss": math.fsum(of_epoch) / max(1, len(of_epoch)),
        "rate_scale": scale,
        "seconds": time.perf_counter() - begun,
    }
    if validate is not None:
        run.learner.train(mode=False)
        with torch.no_grad():
            record |= validate(run.learner)
        run.learner.train()
    run.history.epochs.append(record)
    _tell(run, "on_epoch_end")


def _note_loss(run: Run, loss: float) -> None:
    if not math.isfinite(loss):
        raise UserError(
            f"the loss became {loss} in batch {run.batch + 1} of epoch {run.epoch + 1}",
            where="training",
            remedy="Lower the learning rate, or check the features for values that are not finite",
        )
    run.history.losses.append(loss)
    run.batch += 1


def _tell(run: Run, event: str) -> None:
    for callback in run.callbacks:
        getattr(callback, event)(run)

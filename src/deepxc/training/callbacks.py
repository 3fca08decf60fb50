"""Callbacks for every day: progress, early stopping, a time limit, TensorBoard. Checkpoints have their own module."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from deepxc.errors import UserError
from deepxc.training.loop import Callback, Run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import torch


class Progress(Callback):
    """A progress bar with the loss, on a terminal; nothing where the error stream goes elsewhere."""

    def __init__(self, name: str = "training") -> None:
        self.name = name
        self._bar: Any = None

    def on_train_begin(self, run: Run) -> None:  # noqa: D102
        from tqdm import tqdm

        self._bar = tqdm(total=run.steps, initial=run.step, desc=self.name, unit="batch", disable=None)

    def on_batch_end(self, run: Run) -> None:  # noqa: D102
        self._bar.set_postfix(
            epoch=f"{run.epoch + 1}/{run.epochs}", loss=f"{run.history.losses[-1]:.4f}", refresh=False
        )
        self._bar.update()

    def on_train_end(self, run: Run) -> None:  # noqa: ARG002, D102
        self._bar.close()


class EarlyStopping(Callback):
    """Ends training when a validation metric has not become better for a while, and takes the best weights back.

    Args:
        metric: A key of what `validate` returns, or `loss`.
        patience: How many epochs without a better value are enough.
        smallest: By how much a value must exceed the best to be better.
        largest_is_best: Whether more is better.
        restore: Keep a copy of the best weights in memory, and take them back at the end.
    """

    def __init__(
        self,
        metric: str,
        *,
        patience: int = 1,
        smallest: float = 0.0,
        largest_is_best: bool = True,
        restore: bool = True,
    ) -> None:
        self.metric, self.patience, self.smallest = metric, patience, smallest
        self.restore = restore
        self._sign = 1 if largest_is_best else -1
        self.best: float | None = None
        self.best_epoch = 0
        self._waited = 0
        self._weights: dict[str, torch.Tensor] = {}

    def on_train_begin(self, run: Run) -> None:  # noqa: D102
        self._judge(run)

    def on_epoch_end(self, run: Run) -> None:  # noqa: D102
        record = run.history.epochs[-1]
        if self.metric not in record:
            raise UserError(
                f"validation gives no {self.metric!r}, only {sorted(record)}",
                where="early stopping",
                remedy="Name one of these",
            )
        value = float(record[self.metric])
        if self.best is None or self._sign * (value - self.best) > self.smallest:
            self.best, self.best_epoch, self._waited = value, run.epoch + 1, 0
            if self.restore:
                self._weights = {name: tensor.detach().clone() for name, tensor in run.learner.state().items()}
        else:
            self._waited += 1
        self._judge(run)

    def on_train_end(self, run: Run) -> None:  # noqa: D102
        if self._weights and self._waited:
            run.learner.load_state(self._weights)

    def state(self) -> dict[str, Any]:  # noqa: D102
        return {"best": self.best, "best_epoch": self.best_epoch, "waited": self._waited} | {
            f"weights.{name}": tensor for name, tensor in self._weights.items()
        }

    def load_state(self, state: dict[str, Any]) -> None:  # noqa: D102
        self.best, self.best_epoch, self._waited = (state[name] for name in ("best", "best_epoch", "waited"))
        self._weights = {
            name.removeprefix("weights."): part for name, part in state.items() if name.startswith("weights.")
        }

    def _judge(self, run: Run) -> None:
        if self._waited >= self.patience:
            run.stop = f"{self.metric} did not get better in {self._waited} epochs (best {self.best:.6g})"


class TimeLimit(Callback):
    """Ends training after so many seconds, those before an interruption included."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._before = 0.0
        self._begun: float | None = None

    def on_train_begin(self, run: Run) -> None:  # noqa: D102
        self._begun = self._clock()
        self.on_batch_end(run)

    def on_batch_end(self, run: Run) -> None:  # noqa: D102
        if self._spent() >= self.seconds:
            run.stop = f"the time limit of {self.seconds:g} seconds"

    def state(self) -> dict[str, Any]:  # noqa: D102
        return {"spent": self._spent()}

    def load_state(self, state: dict[str, Any]) -> None:  # noqa: D102
        self._before = state["spent"]

    def _spent(self) -> float:
        return self._before + (0.0 if self._begun is None else self._clock() - self._begun)


class TensorBoard(Callback):
    """Writes losses and metrics for TensorBoard, which has to be installed.

    Args:
        folder: Where to write.
        every: Batches between two points of the loss curve.
    """

    def __init__(self, folder: str | Path, *, every: int = 10) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as fault:
            raise UserError(
                "TensorBoard is not installed", where="TensorBoard", remedy="Run `pip install tensorboard`"
            ) from fault
        self._writer = SummaryWriter(str(folder))
        self.every = every

    def on_batch_end(self, run: Run) -> None:  # noqa: D102
        if run.step % self.every == 0:
            self._writer.add_scalar("loss/batch", run.history.losses[-1], run.step)

    def on_epoch_end(self, run: Run) -> None:  # noqa: D102
        for name, value in run.history.epochs[-1].items():
            if name != "epoch":
                self._writer.add_scalar(f"epoch/{name}", value, run.epoch + 1)

    def on_train_end(self, run: Run) -> None:  # noqa: ARG002, D102
        self._writer.close()

"""What a training looks at anew every few epochs: hard negatives by the present encoder, groups of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from deepxc.training.loop import Callback

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from deepxc.modules.auxiliary import AuxiliaryVectors, LabelGroups
    from deepxc.training.loop import Run


class RefreshedNegatives(Callback):
    """ANCE's negatives: labels that the present encoder takes for each text's, looked up anew every few epochs.

    Args:
        mine: Gives labels of each text that it does not have but might seem to (-1 where fewer).
        every: Epochs for which they serve.
    """

    def __init__(self, mine: Callable[[], np.ndarray], every: int = 5) -> None:
        self.mine, self.every = mine, every
        self._found: torch.Tensor | None = None

    def on_epoch_begin(self, run: Run) -> None:
        """Look them up, if it is time to and they were not read from a checkpoint."""
        if run.epoch % self.every == 0 and run.batch == 0:
            self._found = torch.from_numpy(self.mine())
        if self._found is not None:
            run.learner.hard = self._found.numpy()  # pyrefly: ignore[missing-attribute]

    def state(self) -> dict[str, Any]:
        """What was found."""
        return {} if self._found is None else {"found": self._found}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over what `state` gave."""
        self._found = state.get("found")


class RegroupedLabels(Callback):
    """DEXA's dynamic clusters: labels are grouped anew by their present embeddings every few epochs.

    Args:
        auxiliary: The vectors; which of them a label has is part of the learner's state.
        group: Groups the labels by the present encoder.
        every: Epochs between.
    """

    def __init__(self, auxiliary: AuxiliaryVectors, group: Callable[[], LabelGroups], every: int) -> None:
        self.auxiliary, self.group, self.every = auxiliary, group, every

    def on_epoch_end(self, run: Run) -> None:
        """Group, if it is time to."""
        if (run.epoch + 1) % self.every == 0 and run.epoch + 1 < run.epochs:
            self.auxiliary.regroup(self.group())

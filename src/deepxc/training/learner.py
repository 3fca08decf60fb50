"""What the training loop needs of the thing that learns."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepxc.training.batches import Batch


@runtime_checkable
class Learner(Protocol):
    """Turns a batch into a loss; knows its own tensors."""

    def loss(self, batch: Batch) -> torch.Tensor:
        """The loss of a batch, differentiable. Draws at random from `batch.rng`, or from PyTorch's own generator."""
        ...

    def train(self, mode: bool = True) -> Any:  # noqa: ANN401
        """Switch dropout and the like on, or off."""
        ...

    def state(self) -> Mapping[str, torch.Tensor]:
        """All tensors that training changes, by name, not copied."""
        ...

    def load_state(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Take over what `state` gave."""
        ...


class LearnerModule(torch.nn.Module):
    """A learner that is a PyTorch module: `loss` is all that is left to write."""

    @abstractmethod
    def loss(self, batch: Batch) -> torch.Tensor:
        """The loss of a batch, differentiable."""

    def state(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers, tables among them."""
        return dict(self.state_dict())

    def load_state(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Copy into parameters and buffers, one at a time."""
        for name, own in self.state_dict().items():
            own.copy_(tensors[name])

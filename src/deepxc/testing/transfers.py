"""What every transfer must do; see `deepxc.modules.protocols.Transfer`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepxc.modules.protocols import Transfer
from deepxc.modules.tables import RowTable

if TYPE_CHECKING:
    from collections.abc import Callable

_DIM, _TOKENS = 12, 30


class TinyEncoder(torch.nn.Module):
    """A table of token vectors and a small layer: enough of an encoder to try a transfer on."""

    dim = _DIM

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            self.tokens = RowTable(torch.randn(_TOKENS, _DIM))
            self.small = torch.nn.Linear(_DIM, _DIM)

    def learn(self, split: Any) -> Any:  # noqa: ANN401 - nothing to learn
        """Not needed to try a transfer."""
        raise NotImplementedError

    def read(self, inputs: Any) -> Any:  # noqa: ANN401 - nothing to read
        """Not needed to try a transfer."""
        raise NotImplementedError

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Features of rows that have one token each."""
        return torch.relu(self.small(self.tokens.rows(batch)))


def check_transfer(make: Callable[[], Transfer], seed: int = 0) -> None:
    """Raise AssertionError where the transfers that `make` gives break the protocol.

    Args:
        make: Gives a new transfer, untouched, each time.
        seed: Handed to the transfer.
    """
    assert isinstance(make(), Transfer), "a transfer has the method attach(encoder, seed)"
    encoder = TinyEncoder()
    block = make().attach(encoder, seed)
    assert isinstance(block, torch.nn.Module), f"attach gives a torch.nn.Module, not {type(block).__name__}"
    twin_encoder = TinyEncoder()
    twin = make().attach(twin_encoder, seed)
    _same(encoder, twin_encoder, "the encoder")
    _same(block, twin, "the transfer's module")
    block.eval()
    twin.eval()
    rows = torch.arange(_TOKENS)
    features = encoder(rows)
    final = block(features)
    assert final.shape == features.shape, f"features of shape {features.shape} became {final.shape}"
    assert torch.isfinite(final).all(), "final features hold NaN or infinity"
    assert torch.equal(final, block(encoder(rows))), "evaluating twice gave different features"
    pieces = torch.cat([block(features[i : i + 1]) for i in range(_TOKENS)])
    assert torch.allclose(final, pieces, atol=1e-5), "the features of a row depend on the other rows"
    _state_is_whole(block, twin)
    _trains(encoder, block, rows)


def _same(one: torch.nn.Module, other: torch.nn.Module, name: str) -> None:
    state, expected = one.state_dict(), other.state_dict()
    assert state.keys() == expected.keys(), f"the same seed gave {name} other parameters"
    for key, value in state.items():
        assert torch.equal(value, expected[key]), f"the same seed gave {name} other values of {key}"


def _state_is_whole(block: torch.nn.Module, twin: torch.nn.Module) -> None:
    """What a saved model keeps of the module, its `state_dict`, must be all there is."""
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.mul_(0.9)
    twin.load_state_dict(block.state_dict())
    probe = torch.from_numpy(np.random.default_rng(1).random((7, _DIM), np.float32))
    assert torch.equal(block(probe), twin(probe)), "state_dict does not hold everything that the features depend on"


def _trains(encoder: TinyEncoder, block: torch.nn.Module, rows: torch.Tensor) -> None:
    """Every parameter that says it trains gets a gradient, and none besides."""
    block.train()
    final = block(encoder(rows))
    if final.requires_grad:
        (final**2).sum().backward()
    for module in (encoder, block):
        for name, parameter in module.named_parameters():
            trained = parameter.grad is not None
            assert trained == parameter.requires_grad, f"{name}: requires_grad is {parameter.requires_grad}"
    got = encoder.tokens.take_gradient()
    assert (got is not None) == encoder.tokens.trained, f"the table's trained is {encoder.tokens.trained}"

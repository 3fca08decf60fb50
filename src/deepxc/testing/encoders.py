"""What every encoder must do; see `deepxc.modules.protocols.Encoder`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse

from deepxc.modules.encoders.encoding import encode
from deepxc.modules.protocols import Encoder, Inputs
from deepxc.modules.tables import RowTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepxc.data.dataset import Split


def check_encoder(make: Callable[[], Encoder], split: Split) -> None:
    """Raise AssertionError where the encoders that `make` gives break the protocol.

    Args:
        make: Gives a new encoder, untouched and with the same settings and seed, each time.
        split: Some train rows of the kind that the encoder reads, with a word or two in most; ten will do.
    """
    assert len(split) >= 2, "the checks need two rows or more"
    for check in CHECKS:
        check(make, split)


def check_protocol(make: Callable[[], Encoder], split: Split) -> None:
    """It has the methods, and what they give has the right form."""
    encoder = make()
    assert isinstance(encoder, torch.nn.Module), "an encoder is a torch.nn.Module"
    assert isinstance(encoder, Encoder), "an encoder has dim, learn(split), read(inputs) and forward(batch)"
    inputs = encoder.learn(split)
    assert isinstance(inputs, Inputs), "learn gives inputs, with __len__ and take(rows)"
    assert len(inputs) == len(split), f"learn gave {len(inputs)} rows of {len(split)}"
    assert isinstance(encoder.dim, int), "dim is an int once the encoder has learned"
    assert encoder.dim > 0, "dim is above 0 once the encoder has learned"
    for rows in (np.arange(len(split)), np.array([1])):
        _well_formed(_features(encoder, inputs, rows), len(rows), encoder.dim)


def check_deterministic(make: Callable[[], Encoder], split: Split) -> None:
    """The same rows give the same features, and so does a second encoder made the same way."""
    first, second = _learned(make, split), _learned(make, split)
    a, again, b = _all(*first), _all(*first), _all(*second)
    assert np.array_equal(a, again), "the same rows gave different features"
    assert np.array_equal(a, b), "two encoders made and taught alike gave different features"


def check_rows_are_independent(make: Callable[[], Encoder], split: Split) -> None:
    """A row's features depend neither on the other rows of its batch nor on their order."""
    encoder, inputs = _learned(make, split)
    together = _all(encoder, inputs)
    order = np.random.default_rng(0).permutation(len(inputs))
    _same(_features(encoder, inputs, order), together[order], "features depend on the order of the batch's rows")
    for row in range(min(len(inputs), 8)):
        alone = _features(encoder, inputs, np.array([row]))[0]
        _same(alone, together[row], f"row {row} alone and row {row} in a batch differ")
    twice = _features(encoder, inputs, np.array([1, 0, 1]))
    _same(twice, together[[1, 0, 1]], "a row that stands twice in a batch got other features")


def check_reading(make: Callable[[], Encoder], split: Split) -> None:
    """`read` reads the train rows as `learn` did, and `encode` agrees with `forward`, mode by mode."""
    encoder, inputs = _learned(make, split)
    expected = _all(encoder, inputs)
    read = encoder.read(split.inputs)
    assert len(read) == len(split), f"read gave {len(read)} rows of {len(split)}"
    _same(_all(encoder, read), expected, "read and learn read the same rows differently")
    assert isinstance(encoder, torch.nn.Module)
    encoder.train()
    _same(encode(encoder, inputs, batch_size=3, threads=1), expected, "encode and forward differ")
    assert encoder.training, "encode left the encoder in evaluation mode"


def check_gradients(make: Callable[[], Encoder], split: Split) -> None:
    """A loss on the features reaches every parameter and every table that trains, and nothing as large as a table."""
    _gradients_arrive(*_learned(make, split))


def _gradients_arrive(encoder: Encoder, inputs: Inputs) -> None:
    assert isinstance(encoder, torch.nn.Module)
    parameters = {name: p for name, p in encoder.named_parameters() if p.requires_grad}
    tables = _tables(encoder)
    batch = inputs.take(np.arange(len(inputs)))
    encoder.train()
    features = encoder.forward(batch)
    trains = bool(parameters) or any(table.trained for table in tables.values())
    assert features.requires_grad == trains, "features carry a gradient where something trains, and only there"
    if not trains:
        return
    weights = torch.linspace(0.5, 1.5, features.numel(), dtype=features.dtype, device=features.device)
    (features * weights.reshape(features.shape)).sum().backward()
    for name, parameter in parameters.items():
        assert parameter.grad is not None, f"no gradient reached {name}"
        assert torch.isfinite(parameter.grad).all(), f"the gradient of {name} is not finite"
        assert parameter.grad.any(), f"the gradient of {name} is all zero"
    for name, table in tables.items():
        _table_gradient_arrives(name, table)
    encoder.eval()
    with torch.no_grad():
        encoder.forward(batch)
    assert not any(table.pending for table in tables.values()), "a lookup under no_grad left a gradient behind"


def _table_gradient_arrives(name: str, table: RowTable) -> None:
    assert table.weight.grad is None, f"{name} got a gradient as large as itself"
    taken = table.take_gradient()
    if taken is None:
        assert not table.trained, f"no gradient reached {name}"
        return
    assert table.trained, f"{name} does not train and got a gradient"
    rows, gradient = taken
    assert len(torch.unique(rows)) == len(rows), f"the gradient of {name} has a row twice"
    assert gradient.shape == (len(rows), table.dim), f"the gradient of {name} has the shape {tuple(gradient.shape)}"
    assert torch.isfinite(gradient).all(), f"the gradient of {name} is not finite"
    assert gradient.any(), f"the gradient of {name} is all zero"
    assert 0 <= int(rows.min()) <= int(rows.max()) < len(table), f"{name} has a gradient for rows that are not there"


def check_odd_rows(make: Callable[[], Encoder], split: Split) -> None:
    """Unseen words, empty texts, long texts and empty rows are no trouble, and leave their neighbours alone."""
    encoder, inputs = _learned(make, split)
    odd = encoder.read(_odd(split.inputs))
    features = _all(encoder, odd)
    expected = _features(encoder, inputs, np.array([0]))[0]
    _same(features[-1], expected, "a row's features changed in the company of odd rows")
    for row in range(len(odd)):
        _well_formed(_features(encoder, odd, np.array([row])), 1, encoder.dim)


def check_saving(make: Callable[[], Encoder], split: Split) -> None:
    """An encoder that can `write` comes back the same to the bit, from JSON and safetensors alone, and can train on."""
    encoder, inputs = _learned(make, split)
    write, open_again = getattr(encoder, "write", None), getattr(type(encoder), "read_from", None)
    if write is None or open_again is None:
        return
    expected = _all(encoder, inputs)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        kinds = {path.suffix for path in Path(folder).rglob("*") if path.is_file()}
        assert kinds <= {".json", ".safetensors"}, f"a saved encoder is JSON and safetensors, not {sorted(kinds)}"
        opened = open_again(Path(folder))
    assert opened.dim == encoder.dim, "the opened encoder has another dim"
    assert _tables(opened).keys() == _tables(encoder).keys(), "tables were lost in saving"
    read = opened.read(split.inputs)
    assert np.array_equal(_all(opened, read), expected), "the opened encoder gives other features"
    _gradients_arrive(opened, read)


CHECKS = (
    check_protocol,
    check_deterministic,
    check_rows_are_independent,
    check_reading,
    check_gradients,
    check_odd_rows,
    check_saving,
)
"""The checks one by one, to be run as tests of their own: each takes what `check_encoder` takes."""


def _learned(make: Callable[[], Encoder], split: Split) -> tuple[Encoder, Inputs]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # for encoders that have no seed of their own
        encoder = make()
        return encoder, encoder.learn(split)


def _features(encoder: Encoder, inputs: Inputs, rows: np.ndarray) -> np.ndarray:
    assert isinstance(encoder, torch.nn.Module)
    encoder.eval()
    with torch.no_grad():
        features = encoder.forward(inputs.take(rows))
    assert isinstance(features, torch.Tensor), f"forward gives a tensor, not {type(features).__name__}"
    assert features.dtype == torch.float32, f"features are float32, not {features.dtype}"
    return features.cpu().numpy()


def _all(encoder: Encoder, inputs: Inputs) -> np.ndarray:
    return _features(encoder, inputs, np.arange(len(inputs)))


def _well_formed(features: np.ndarray, rows: int, dim: int) -> None:
    assert features.shape == (rows, dim), f"features of the shape {features.shape} where ({rows}, {dim}) belongs"
    assert np.isfinite(features).all(), "features hold NaN or infinity"


def _same(features: np.ndarray, expected: np.ndarray, fault: str) -> None:
    """Up to the order of sums in float32; anything wrong is off by far more."""
    assert np.allclose(features, expected, rtol=1e-4, atol=1e-5), f"{fault}: by {np.abs(features - expected).max():.1e}"


def _tables(encoder: Encoder) -> dict[str, RowTable]:
    assert isinstance(encoder, torch.nn.Module)
    return {name: module for name, module in encoder.named_modules() if isinstance(module, RowTable)}


def _odd(inputs: Any) -> Any:  # noqa: ANN401 (of the kind that came in)
    """Odd rows of the kind of these, then the first of these."""
    if sparse.issparse(inputs):
        return sparse.csr_matrix(sparse.vstack([sparse.csr_matrix((2, inputs.shape[1])), inputs[:1]]))
    if isinstance(inputs, np.ndarray) and inputs.dtype.kind not in "OUS":
        return np.concatenate([np.zeros_like(inputs[:2]), inputs[:1]])
    first = str(inputs[0])
    return ["", "zzyzxq qqzzy", "?! ...", "\N{SNOWMAN} \N{GREEK SMALL LETTER PSI}", f"{first} " * 300, first]

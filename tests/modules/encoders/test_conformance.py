"""Every encoder passes the checks that users run on theirs, and the checks catch what they are for."""

import numpy as np
import pytest
import torch

from deepxc.modules.encoders import (
    DenseFeatures,
    ImageResNet,
    InceptionEncoder,
    Joint,
    MachMLP,
    TokenBag,
    WordGRU,
    XmlCNN,
    open_encoder,
)
from deepxc.modules.tables import RowTable
from deepxc.testing import check_encoder
from deepxc.testing.encoders import CHECKS

TOKENS = {"min_df": 1}
SMALL_CNN = {"dim": 6, "word_dim": 5, "filters": 4, "tokens": TOKENS}
ENCODERS = {
    "bag-spectral": ("texts", lambda: TokenBag(8, tokens=TOKENS)),
    "bag-random": ("texts", lambda: TokenBag(8, start="random", activation="none", tokens=TOKENS)),
    "bag-ngrams": ("texts", lambda: TokenBag(8, start="projection", tokens={"min_df": 1, "ngrams": (3, 4)})),
    "bag-subwords": ("texts", lambda: TokenBag(8, start="random", tokens={"min_df": 1, "subwords": 60})),
    "bag-frozen": ("texts", lambda: TokenBag(8, trained=False, tokens=TOKENS)),
    "bag-features": ("sparse", lambda: TokenBag(8)),
    "mach": ("texts", lambda: MachMLP(8, hidden=(6, 5), tokens=TOKENS)),
    "mach-hashed": ("texts", lambda: MachMLP(8, hidden=(6,), hashed=9, tokens=TOKENS)),
    "mach-features": ("sparse", lambda: MachMLP(8, hidden=(6,), hashed=9)),
    "xml-cnn": ("texts", lambda: XmlCNN(**SMALL_CNN)),
    "xml-cnn-parts": ("texts", lambda: XmlCNN(**SMALL_CNN, widths=(1, 3), parts=5, length=4)),
    "inception": ("texts", lambda: InceptionEncoder(word_dim=64, length=6, channels=3, tokens=TOKENS)),
    "inception-plain": ("texts", lambda: InceptionEncoder(word_dim=68, length=0, attention=False, tokens=TOKENS)),
    "joint": ("texts", lambda: Joint([TokenBag(8, tokens=TOKENS), WordGRU(6, word_dim=5, tokens=TOKENS)], [1.0, 0.5])),
    "gru": ("texts", lambda: WordGRU(6, word_dim=5, tokens=TOKENS)),
    "gru-deep": ("texts", lambda: WordGRU(6, word_dim=5, layers=2, bidirectional=False, tokens=TOKENS)),
    "dense": ("dense", DenseFeatures),
    "dense-linear": ("dense", lambda: DenseFeatures(5, activation="relu")),
    "images": ("images", lambda: ImageResNet((4, 4, 6, 8), small=True)),
    "images-large": ("images", lambda: ImageResNet((4, 4, 6, 8))),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", ENCODERS)
def test_ours_conform(name, check, splits):
    rows, make = ENCODERS[name]
    check(make, splits[rows])


@pytest.mark.parametrize("name", ENCODERS)
def test_any_kind_opens_with_the_same_settings(name, splits, tmp_path):
    rows, make = ENCODERS[name]
    encoder = make()
    encoder.learn(splits[rows])
    encoder.write(tmp_path)
    opened = open_encoder(tmp_path)
    assert type(opened) is type(encoder)
    assert opened.settings() == encoder.settings()
    assert opened.state().keys() == encoder.state().keys()


@pytest.mark.parametrize("name", ENCODERS)
def test_gradients_are_the_slopes_of_the_features(name, splits):
    """Against finite differences in double precision, in the direction of one random change of all that trains."""
    rows, make = ENCODERS[name]
    encoder = make()
    inputs = encoder.learn(splits[rows])
    encoder.double().eval()
    batch = inputs.take(np.arange(len(inputs)))
    torch.manual_seed(1)
    for parameter in encoder.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)  # away from the corners of rectifiers, such as zero biases
    weights = torch.randn(len(inputs), encoder.dim, dtype=torch.float64)
    features = encoder(batch)
    if not features.requires_grad:
        return
    (features * weights).sum().backward()
    moved, slope = [], 0.0
    for parameter in encoder.parameters():
        moved.append((parameter.data, torch.randn_like(parameter)))
        slope += float((parameter.grad * moved[-1][1]).sum())
    for table in (module for module in encoder.modules() if isinstance(module, RowTable)):
        touched, gradient = table.take_gradient()
        moved.append((table.weight, torch.randn_like(table.weight)))
        slope += float((gradient * moved[-1][1][touched]).sum())
    values = []
    step = 1e-6
    for sign in (1, -2):
        for tensor, direction in moved:
            tensor.add_(direction, alpha=sign * step)
        with torch.no_grad():
            values.append(float((encoder(batch) * weights).sum()))
    assert slope == pytest.approx((values[0] - values[1]) / (2 * step), rel=2e-3, abs=1e-4)


def test_learning_leaves_the_callers_generator_alone(splits):
    for rows, make in ENCODERS.values():
        before = torch.get_rng_state()
        make().learn(splits[rows])
        assert torch.equal(before, torch.get_rng_state())


class OneHot(torch.nn.Module):
    """The smallest encoder: a vector for the first letter of a text."""

    dim = 3

    def learn(self, split):
        self.table = torch.nn.Parameter(torch.randn(27, self.dim))
        return self.read(split.inputs)

    def read(self, inputs):
        return Letters(np.array([ord(text[0]) % 27 if text else 0 for text in inputs]))

    def forward(self, batch):
        return self.table[torch.from_numpy(batch)]


class Letters:
    def __init__(self, ids):
        self.ids = ids

    def __len__(self):
        return len(self.ids)

    def take(self, rows):
        return self.ids[rows]


def test_an_encoder_of_ones_own_conforms_without_inheriting(splits):
    check_encoder(OneHot, splits["texts"])


def broken(name, method):
    return type(name, (OneHot,), {name: method})


FAULTY = {
    "batch": (lambda self, batch: OneHot.forward(self, batch) - OneHot.forward(self, batch).mean(0), "alone|order"),
    "noise": (lambda self, batch: OneHot.forward(self, batch) + torch.rand(1), "different features"),
    "double": (lambda self, batch: OneHot.forward(self, batch).double(), "float32"),
    "shape": (lambda self, batch: OneHot.forward(self, batch)[:, :2], "shape"),
    "nan": (lambda self, batch: OneHot.forward(self, batch) / (torch.from_numpy(batch) > 0)[:, None], "NaN"),
    "detached": (lambda self, batch: OneHot.forward(self, batch).detach(), "gradient"),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_the_checks_catch_a_fault(fault, splits):
    forward, message = FAULTY[fault]
    faulty = type(fault, (OneHot,), {"forward": forward})
    with pytest.raises(AssertionError, match=message):
        check_encoder(faulty, splits["texts"])

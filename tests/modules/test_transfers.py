"""Transfers: the bound of Theorem 1(a), the norm against exact decompositions, what trains and what does not."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deepxc.errors import UserError
from deepxc.modules.transfers.fine_tune import FineTune
from deepxc.modules.transfers.freeze import Freeze
from deepxc.modules.transfers.reinitialise import Reinitialise
from deepxc.modules.transfers.residual import Residual, SpectralResidual
from deepxc.modules.transfers.spectral import spectral_norm
from deepxc.testing.transfers import TinyEncoder, check_transfer


@pytest.fixture(autouse=True)
def one_thread():
    """Matrices this small only lose time to threads that wait for one another."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    "make",
    [
        Residual,
        lambda: Residual(bound=0.3, dropout=0.0, start="random"),
        Freeze,
        FineTune,
        lambda: FineTune(block=False),
        Reinitialise,
        lambda: Reinitialise(block=False),
    ],
)
def test_every_transfer_conforms(make):
    check_transfer(make)


def moved(block, v):
    """x - v in float64 arithmetic, so that only the block's own numbers are tried."""
    return torch.relu(v.double() @ block.weight.double().T)


def assert_theorem(block, v):
    distance = torch.linalg.vector_norm(moved(block, v), dim=1)
    length = torch.linalg.vector_norm(v.double(), dim=1)
    assert (distance <= block.bound * length * (1 + 1e-15)).all()


@given(dim=st.integers(1, 24), bound=st.floats(0.05, 3.0), seed=st.integers(0, 999), scale=st.floats(0.01, 30.0))
@settings(max_examples=40, deadline=None)
def test_theorem_1a_holds_exactly_for_any_settled_weights(dim, bound, seed, scale):
    block = SpectralResidual(dim, bound=bound, start="random", seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        block.weight.copy_(scale * torch.randn(dim, dim, generator=generator))
    block.settle()
    block.eval()
    assert spectral_norm(block.weight) <= bound
    assert np.linalg.norm(block.matrix().astype(np.float64), 2) <= bound
    v = torch.randn(50, dim, generator=generator)
    # The direction that R stretches most is where the bound is tight.
    v = torch.cat([v, block.right[None], torch.zeros(1, dim)])
    assert_theorem(block, v)
    assert torch.allclose(block(v), v + moved(block, v).float(), atol=1e-5)


@pytest.mark.parametrize("bound", [1.0, 0.5])
def test_theorem_1a_holds_on_trained_weights(bound):
    torch.manual_seed(0)
    block = SpectralResidual(32, bound=bound, dropout=0.5)
    v = torch.relu(torch.randn(400, 32))
    goal = torch.randn(32, 32) * 2
    optimiser = torch.optim.Adam(block.parameters(), lr=0.005)
    block.train()
    for _ in range(120):
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(block(v), torch.relu(v @ goal)).backward()
        optimiser.step()
    assert spectral_norm(block.weight) > bound  # training pushed against the bound
    used = spectral_norm(torch.from_numpy(block.matrix()))
    assert used <= bound * 1.1  # the estimate was good
    before = block.eval()(v)
    block.settle()
    assert spectral_norm(block.weight) <= bound
    assert spectral_norm(block.weight) >= bound * (1 - 1e-5)
    assert_theorem(block, v)
    assert torch.nn.functional.cosine_similarity(before, block(v)).min() > 0.999


def test_estimate_is_the_norm_after_some_steps():
    block = SpectralResidual(20, bound=0.25, start="random", seed=3)
    block.train()
    with torch.no_grad():
        block.weight.copy_(torch.randn(20, 20, generator=torch.Generator().manual_seed(1)))
    for _ in range(200):
        block(torch.ones(1, 20))
    assert spectral_norm(torch.from_numpy(block.matrix())) == pytest.approx(0.25, rel=1e-4)


def test_a_small_matrix_is_left_alone():
    block = SpectralResidual(6, bound=1.0, start="identity").eval()
    with torch.no_grad():
        block.weight.mul_(0.3)
    block.settle()
    assert torch.equal(block.weight, 0.3 * torch.eye(6))
    v = torch.tensor([[1.0, -1.0, 2.0, 0.0, 0.0, -3.0]])
    assert torch.allclose(block(v), v + 0.3 * torch.relu(v))


def test_starts_at_the_identity_scaled_to_the_bound():
    v = torch.rand(5, 8)
    assert torch.allclose(SpectralResidual(8).eval()(v), 2 * v)
    assert torch.allclose(SpectralResidual(8, bound=0.25).eval()(v), 1.25 * v)


def test_gradient_flows_through_the_bound():
    block = SpectralResidual(5, bound=0.5, dropout=0.0, start="random", seed=2).double()
    with torch.no_grad():
        block.weight.mul_(4)
    block._iterate(500)
    block.eval()
    v = torch.rand(3, 5, dtype=torch.float64)

    def used(weight):
        return torch.relu(v @ (weight * 0.5 / torch.linalg.matrix_norm(weight, ord=2)).T).sum()

    weight = block.weight.detach().clone().requires_grad_()
    (expected,) = torch.autograd.grad(used(weight), weight)
    (found,) = torch.autograd.grad(block(v).sum(), block.weight)
    assert torch.allclose(found, expected, atol=1e-6)


def test_dropout_acts_on_the_correction_alone_and_in_training_alone():
    block = SpectralResidual(50, dropout=0.5)
    v = torch.ones(20, 50)
    torch.manual_seed(1)
    values = block.train()(v)
    assert set(torch.unique(values.round(decimals=4)).tolist()) == {1.0, 3.0}
    assert torch.allclose(block.eval()(v), torch.full_like(v, 2.0))


@pytest.mark.parametrize("make", [Residual, Freeze])
def test_a_frozen_encoder_keeps_still(make):
    encoder = TinyEncoder()
    encoder.tokens.rows(torch.arange(3)).sum().backward()  # a gradient left over from the surrogate task
    make().attach(encoder, 0)
    assert not any(p.requires_grad for p in encoder.parameters())
    assert not encoder.tokens.trained
    assert encoder.tokens.take_gradient() is None


def test_reinitialise_keeps_tables_and_restarts_the_rest():
    encoder, fresh = TinyEncoder(), TinyEncoder()
    state = torch.random.get_rng_state()
    Reinitialise().attach(encoder, 3)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(encoder.tokens.weight, fresh.tokens.weight)
    assert not torch.equal(encoder.small.weight, fresh.small.weight)
    assert encoder.tokens.trained
    assert encoder.small.weight.requires_grad
    other = TinyEncoder()
    Reinitialise().attach(other, 4)
    assert not torch.equal(encoder.small.weight, other.small.weight)


def test_a_thawed_encoder_trains_again():
    encoder = TinyEncoder()
    Freeze().attach(encoder, 0)
    FineTune().attach(encoder, 0)
    assert encoder.tokens.trained
    assert all(p.requires_grad for p in encoder.parameters())


def test_bad_parts_are_refused():
    with pytest.raises(UserError, match="bound"):
        SpectralResidual(4, bound=0.0)
    with pytest.raises(UserError, match="start"):
        SpectralResidual(4, start="nowhere")
    with pytest.raises(UserError, match="no torch"):
        Residual().attach(object(), 0)

    class Bare(TinyEncoder):
        def __init__(self):
            super().__init__()
            self.alone = torch.nn.Parameter(torch.ones(3))

    with pytest.raises(UserError, match="reset_parameters"):
        Reinitialise().attach(Bare(), 0)


def test_the_suite_notices_a_broken_transfer():
    class Unbounded:
        def attach(self, encoder, seed):
            return torch.nn.Linear(encoder.dim, encoder.dim)

    with pytest.raises(AssertionError, match="same seed"):
        check_transfer(Unbounded)

    class Narrow:
        def attach(self, encoder, seed):
            torch.manual_seed(seed)
            return torch.nn.Linear(encoder.dim, 3)

    with pytest.raises(AssertionError, match="shape"):
        check_transfer(Narrow)

"""Row-sparse optimisers against PyTorch's dense and sparse ones."""

import numpy as np
import pytest
import torch

from deepxc.errors import UserError
from deepxc.modules.tables import RowTable
from deepxc.training.optimisers import Group, Optimiser
from deepxc.training.row_rules import RowAdagrad, RowAdam, RowSGD


def batches(n_rows, dim, steps, seed=0, everything=False):
    make = np.random.default_rng(seed)
    for _ in range(steps):
        rows = np.arange(n_rows) if everything else make.choice(n_rows, n_rows // 3, replace=False)
        yield torch.from_numpy(rows), torch.from_numpy(make.standard_normal((len(rows), dim)))


def run(rule, table, stream, rate=0.05):
    for rows, slopes in stream:
        (table.rows(rows) * slopes.to(table.weight.dtype)).sum().backward()
        rule.step(rate)
    assert not table.pending


def start(dtype=torch.float64, n=30, dim=7):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("count", ["steps", "rows"])
def test_adam_on_all_rows_is_dense_adam(count):
    table, reference = RowTable(start()), start().requires_grad_()
    run(RowAdam(table, count=count), table, batches(30, 7, 12, everything=True))
    dense = torch.optim.Adam([reference], lr=0.05)
    for _, slopes in batches(30, 7, 12, everything=True):
        reference.grad = slopes
        dense.step()
    torch.testing.assert_close(table.weight, reference.detach())


def test_adam_on_some_rows_is_sparse_adam():
    table, reference = RowTable(start()), start().requires_grad_()
    run(RowAdam(table, epsilon=1e-30), table, batches(30, 7, 20))
    sparse = torch.optim.SparseAdam([reference], lr=0.05, eps=1e-30)
    for rows, slopes in batches(30, 7, 20):
        reference.grad = torch.sparse_coo_tensor(rows[None], slopes, reference.shape, check_invariants=True)
        sparse.step()
    torch.testing.assert_close(table.weight, reference.detach())


def test_adam_that_counts_rows_is_one_dense_adam_for_each_row():
    table = RowTable(start())
    run(RowAdam(table, count="rows"), table, batches(30, 7, 20))
    singles = [row[None].clone().requires_grad_() for row in start()]
    each = [torch.optim.Adam([row], lr=0.05) for row in singles]
    for rows, slopes in batches(30, 7, 20):
        for r, slope in zip(rows.tolist(), slopes, strict=True):
            singles[r].grad = slope[None]
            each[r].step()
    torch.testing.assert_close(table.weight, torch.cat(singles).detach())


def test_adagrad_and_descent_are_the_dense_ones():
    for rule_of, dense_of in (
        (lambda t: RowAdagrad(t, start=0.1), lambda p: torch.optim.Adagrad(p, lr=0.05, initial_accumulator_value=0.1)),
        (RowSGD, lambda p: torch.optim.SGD(p, lr=0.05)),
    ):
        table, reference = RowTable(start()), start().requires_grad_()
        run(rule_of(table), table, batches(30, 7, 12))
        dense = dense_of([reference])
        for rows, slopes in batches(30, 7, 12):
            reference.grad = torch.zeros_like(reference).index_add_(0, rows, slopes)
            dense.step()
        torch.testing.assert_close(table.weight, reference.detach())


def test_one_second_moment_a_row_by_hand():
    table = RowTable(torch.zeros(2, 2, dtype=torch.float64))
    rule = RowAdam(table, second="row", epsilon=0.0)
    run(rule, table, [(torch.tensor([1]), torch.tensor([[3.0, 4.0]]))], rate=1.0)
    root = np.sqrt((9 + 16) / 2)
    assert table.weight.tolist() == [[0, 0], pytest.approx([-3 / root, -4 / root])]
    assert rule.state()["second"].shape == (2,)


@pytest.mark.parametrize("second", ["full", "row"])
@pytest.mark.parametrize("count", ["steps", "rows"])
@pytest.mark.parametrize("moments", ["float32", "bfloat16"])
def test_compiled_adam_is_the_general_one(second, count, moments):
    options = {"second": second, "count": count, "moments": moments}
    compiled, general = RowTable(start(torch.float32)), RowTable(start())
    run(RowAdam(compiled, **options), compiled, batches(30, 7, 15))
    run(RowAdam(general, **options), general, batches(30, 7, 15))
    tolerance = 1e-5 if moments == "float32" else 3e-3
    torch.testing.assert_close(compiled.weight.double(), general.weight, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("make", [RowSGD, RowAdagrad, lambda t: RowAdagrad(t, second="row")])
def test_compiled_rules_are_the_general_ones(make):
    compiled, general = RowTable(start(torch.float32)), RowTable(start())
    for table in (compiled, general):
        run(make(table), table, batches(30, 7, 15))
    torch.testing.assert_close(compiled.weight.double(), general.weight, rtol=1e-5, atol=1e-5)


def test_rows_that_were_not_read_stay_as_they_were():
    table = RowTable(start(torch.float32))
    rule = RowAdam(table)
    run(rule, table, [(torch.tensor([2, 5]), torch.ones(2, 7))] * 3)
    moved = (table.weight != start(torch.float32)).any(1)
    assert torch.nonzero(moved).ravel().tolist() == [2, 5]
    assert torch.nonzero(rule.state()["first"].any(1)).ravel().tolist() == [2, 5]


def test_memory_of_the_state():
    table = RowTable(torch.zeros(1000, 64))

    def size(**options):
        return sum(t.nbytes for t in RowAdam(table, **options).state().values())

    assert size() == 2 * table.weight.nbytes + 4
    assert size(second="row") == table.weight.nbytes + 4 * 1000 + 4
    assert size(second="row", moments="bfloat16") == table.weight.nbytes // 2 + 4 * 1000 + 4


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = RowTable(torch.randn(9, 4))
        self.frozen = RowTable(torch.randn(9, 4), trained=False)
        self.layer = torch.nn.Linear(4, 1)

    def step(self, optimiser, rows):
        self.layer(self.table.rows(rows) + self.frozen.rows(rows)).square().sum().backward()
        optimiser.step(0.5)


@pytest.mark.parametrize("rule", ["adam", "adagrad", "sgd"])
def test_an_optimiser_for_a_module_goes_on_where_it_stopped(rule):
    rows = torch.tensor([0, 4, 7])
    straight, broken, resumed = Small(), Small(), Small()
    optimisers = [Optimiser.of(m, 0.1, table_rate=0.2, rule=rule) for m in (straight, broken, resumed)]
    for _ in range(4):
        straight.step(optimisers[0], rows)
    for _ in range(2):
        broken.step(optimisers[1], rows)
    resumed.load_state_dict(broken.state_dict())
    optimisers[2].load_state({name: tensor.clone() for name, tensor in optimisers[1].state().items()})
    for _ in range(2):
        resumed.step(optimisers[2], rows)
    for a, b in zip(straight.state_dict().values(), resumed.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(straight.frozen.weight, Small().frozen.weight)
    assert not torch.equal(straight.layer.weight, Small().layer.weight)
    assert straight.layer.weight.grad is None


def test_rates_and_their_scale():
    a, b = RowTable(torch.zeros(1, 1)), RowTable(torch.zeros(1, 1))
    c = torch.nn.Parameter(torch.zeros(1))
    optimiser = Optimiser([Group(1.0, tables=[a], rule="sgd"), Group(10.0, tables=[b], parameters=[c], rule="sgd")])
    (a.rows(torch.tensor([0])) + b.rows(torch.tensor([0])) + c).sum().backward()
    optimiser.step(0.5)
    assert (a.weight.item(), b.weight.item(), c.item()) == (-0.5, -5, -5)


def test_nothing_may_be_in_two_groups():
    table = RowTable(torch.zeros(1, 1))
    with pytest.raises(UserError, match="two groups"):
        Optimiser([Group(1.0, tables=[table]), Group(2.0, tables=[table])])

"""Row tables against PyTorch's own embedding bag, and the gradients that wait in them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from deepxc.modules.tables import BagBatch, RowTable


def batch_of(rng, n, vocabulary, density=0.2):
    matrix = sparse.random(n, vocabulary, density, "csr", rng=rng, dtype=np.float32)
    known = np.ones(n, np.float32)
    known[n // 2] = 0  # a text without known tokens
    matrix = sparse.csr_matrix(sparse.diags_array(known) @ matrix)
    matrix.eliminate_zeros()
    return BagBatch.take(matrix, np.arange(n)), torch.from_numpy(matrix.toarray())


def dense(table):
    rows, gradient = table.take_gradient()
    assert len(torch.unique(rows)) == len(rows)
    return torch.zeros_like(table.weight).index_add_(0, rows, gradient)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(n=st.integers(1, 12), vocabulary=st.integers(1, 30), dim=st.integers(1, 40), seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_bags_are_products_with_the_batch(dtype, n, vocabulary, dim, seed):
    rng = np.random.default_rng(seed)
    batch, matrix = batch_of(rng, n, vocabulary)
    weight = torch.from_numpy(rng.standard_normal((vocabulary, dim))).to(dtype)
    table = RowTable(weight.clone())
    reference = weight.clone().double().requires_grad_()
    upstream = torch.from_numpy(rng.standard_normal((n, dim))).to(dtype)

    bags = table.bag(batch)
    bags.backward(upstream)
    expected = matrix.double() @ reference
    expected.backward(upstream.double())

    assert bags.dtype == dtype
    torch.testing.assert_close(bags.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(dense(table).double(), reference.grad, rtol=1e-5, atol=1e-5)
    assert table.weight.grad is None


def test_a_bag_is_an_embedding_bag():
    rng = np.random.default_rng(3)
    batch, _ = batch_of(rng, 50, 200)
    weight = torch.randn(200, 24)
    table = RowTable(weight)
    expected = torch.nn.functional.embedding_bag(
        torch.from_numpy(batch.indices).long(),
        weight,
        torch.from_numpy(batch.indptr),
        mode="sum",
        per_sample_weights=torch.from_numpy(batch.values),
        include_last_offset=True,
    )
    torch.testing.assert_close(table.bag(batch), expected)


def test_any_integer_type_of_the_batch_will_do():
    table = RowTable(torch.eye(4))
    given_types = BagBatch(np.array([0, 2, 3], np.int32), np.array([3, 1, 1], np.int64), np.array([1.0, 2, 3]))
    bags = table.bag(given_types)
    bags.sum().backward()
    assert bags.tolist() == [[0, 2, 0, 1], [0, 3, 0, 0]]
    assert dense(table)[:, 0].tolist() == [0, 5, 0, 1]


def test_rows_are_read_and_their_gradients_wait():
    table = RowTable(torch.arange(12.0).reshape(6, 2))
    rows = table.rows(torch.tensor([4, 1]))
    assert rows.tolist() == [[8, 9], [2, 3]]
    (rows * torch.tensor([[1.0], [10.0]])).sum().backward()
    numbers, gradient = table.take_gradient()
    assert numbers.tolist() == [4, 1]
    assert gradient.tolist() == [[1, 1], [10, 10]]
    assert table.take_gradient() is None


def test_gradients_of_several_lookups_add_up():
    table = RowTable(torch.zeros(5, 1))
    (table.rows(torch.tensor([3, 0])).sum() + 2 * table.rows(torch.tensor([0, 4])).sum()).backward()
    assert dense(table).ravel().tolist() == [3, 0, 0, 1, 2]


def test_a_table_that_is_not_trained_collects_nothing():
    table = RowTable(torch.ones(3, 2), trained=False)
    out = table.rows(torch.tensor([1]))
    assert not out.requires_grad
    with torch.no_grad():
        assert not RowTable(torch.ones(3, 2)).rows(torch.tensor([1])).requires_grad


def test_the_table_is_a_buffer_not_a_parameter():
    table = RowTable(torch.ones(3, 2))
    assert list(table.parameters()) == []
    assert list(table.state_dict()) == ["weight"]


def test_no_gradient_is_as_large_as_the_table():
    table = RowTable(torch.zeros(1_000_000, 8))
    table.rows(torch.arange(10)).sum().backward()
    rows, gradient = table.take_gradient()
    assert gradient.shape == (10, 8)
    assert len(rows) == 10


def test_gradients_of_two_lookups_add_up_whatever_the_order_of_rows():
    table = RowTable(torch.zeros(9, 3))
    rng = np.random.default_rng(0)
    expected = torch.zeros(9, 3)
    for rows in ([7, 2, 5], [5, 0, 8, 7]):
        gradient = torch.from_numpy(rng.standard_normal((len(rows), 3)).astype(np.float32))
        table.pending.append((torch.tensor(rows), gradient))
        expected[rows] += gradient
    rows, gradient = table.take_gradient()
    assert rows.tolist() == [0, 2, 5, 7, 8]
    assert torch.equal(gradient, expected[rows])
    assert table.take_gradient() is None


@pytest.mark.parametrize("rows", [[0], [3], [0, 1, 2, 3], [2, 3], [3, 2], [0, 2], [1, 1], []])
def test_a_batch_holds_the_rows_that_were_asked_for(rows):
    matrix = sparse.csr_matrix(np.array([[0, 1, 2], [0, 0, 0], [3, 0, 4], [0, 5, 0]], np.float32))
    batch = BagBatch.take(matrix, np.array(rows, np.int64))
    found = sparse.csr_matrix((batch.values, batch.indices, batch.indptr), shape=(len(rows), 3))
    np.testing.assert_array_equal(found.toarray(), matrix.toarray()[rows])
    assert [part.dtype for part in batch] == [np.int64, np.int32, np.float32]

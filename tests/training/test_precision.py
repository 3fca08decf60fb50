"""The format of matrix products."""

import time

import pytest
import torch

from deepxc.training.precision import matmul, native_bfloat16, operand_type


def test_only_single_precision_is_lowered():
    assert operand_type(torch.zeros(1, dtype=torch.float64)) == torch.float64
    expected = torch.bfloat16 if native_bfloat16() else torch.float32
    assert operand_type(torch.zeros(1)) == expected


def test_products_come_back_in_the_format_of_the_operands():
    a, b = torch.randn(20, 30, dtype=torch.float64), torch.randn(30, 10, dtype=torch.float64)
    torch.testing.assert_close(matmul(a, b), a @ b)
    for operands, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 3e-2), (None, 3e-2)):
        product = matmul(a.float(), b.float(), operands)
        assert product.dtype == torch.float32
        assert (product - a @ b).norm() < tolerance * (a @ b).norm()


@pytest.mark.skipif(not native_bfloat16(), reason="this CPU has no bfloat16 products")
def test_what_is_called_native_is_faster():
    a = torch.randn(600, 600)

    def best(operands):
        times = []
        for _ in range(12):
            begun = time.thread_time()
            matmul(a, a, operands)
            times.append(time.thread_time() - begun)
        return min(times)

    assert best(torch.bfloat16) < best(torch.float32)

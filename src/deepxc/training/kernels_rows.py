"""The compiled steps of row-sparse optimisers: gradient, moments and weights of a row pass the processor once.

Row numbers are int64, everything else float32 unless said otherwise; a first moment may be the upper halves of
float32 numbers, that is bfloat16, as uint16.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange


@njit(inline="always")
def _widen(halves, out):
    for k in range(len(out)):
        out[k] = np.uint32(halves[k]) << np.uint32(16)


@njit(inline="always")
def _narrow(bits, out):
    """Round to the nearest, ties to even."""
    for k in range(len(out)):
        x = bits[k]
        out[k] = (x + np.uint32(0x7FFF) + ((x >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)


@njit(inline="always")
def _full(weight, gradient, first, second, beta1, beta2, rate, correction, epsilon):
    """One row, with a second moment for every weight."""
    for k in range(len(weight)):
        g = gradient[k]
        m = beta1 * first[k] + (np.float32(1) - beta1) * g
        v = beta2 * second[k] + (np.float32(1) - beta2) * g * g
        first[k] = m
        second[k] = v
        weight[k] -= rate * m / (np.sqrt(v) * correction + epsilon)


@njit(inline="always")
def _shared(weight, gradient, first, v, beta1, rate, correction, epsilon):
    """One row, with one second moment for all of it."""
    step = rate / (np.sqrt(v) * correction + epsilon)
    for k in range(len(weight)):
        m = beta1 * first[k] + (np.float32(1) - beta1) * gradient[k]
        first[k] = m
        weight[k] -= step * m


@njit(inline="always")
def _mean_square(gradient):
    total = np.float32(0)
    for k in range(len(gradient)):
        total += gradient[k] * gradient[k]
    return total / np.float32(len(gradient))


@njit(cache=True, nogil=True, parallel=True, fastmath={"contract"}, error_model="numpy")
def adam_full(rows, gradient, weight, first, second, rates, corrections, beta1, beta2, epsilon):
    """Adam on these rows; `rates` and `corrections` hold each row's bias correction of the two moments."""
    for t in prange(len(rows)):
        r = rows[t]
        _full(weight[r], gradient[t], first[r], second[r], beta1, beta2, rates[t], corrections[t], epsilon)


@njit(cache=True, nogil=True, parallel=True, fastmath={"contract"}, error_model="numpy")
def adam_row(rows, gradient, weight, first, second, rates, corrections, beta1, beta2, epsilon):
    """Adam with one second moment a row: the running mean of the mean square of its gradient."""
    for t in prange(len(rows)):
        r = rows[t]
        v = beta2 * second[r] + (np.float32(1) - beta2) * _mean_square(gradient[t])
        second[r] = v
        _shared(weight[r], gradient[t], first[r], v, beta1, rates[t], corrections[t], epsilon)


@njit(cache=True, nogil=True, parallel=True, fastmath={"contract"}, error_model="numpy")
def adam_full_halved(rows, gradient, weight, first, second, rates, corrections, beta1, beta2, epsilon):
    """`adam_full` with a bfloat16 first moment."""
    for t in prange(len(rows)):
        r = rows[t]
        bits = np.empty(weight.shape[1], np.uint32)
        _widen(first[r], bits)
        _full(weight[r], gradient[t], bits.view(np.float32), second[r], beta1, beta2, rates[t], corrections[t], epsilon)
        _narrow(bits, first[r])


@njit(cache=True, nogil=True, parallel=True, fastmath={"contract"}, error_model="numpy")
def adam_row_halved(rows, gradient, weight, first, second, rates, corrections, beta1, beta2, epsilon):
    """`adam_row` with a bfloat16 first moment."""
    for t in prange(len(rows)):
        r = rows[t]
        v = beta2 * second[r] + (np.float32(1) - beta2) * _mean_square(gradient[t])
        second[r] = v
        bits = np.empty(weight.shape[1], np.uint32)
        _widen(first[r], bits)
        _shared(weight[r], gradient[t], bits.view(np.float32), v, beta1, rates[t], corrections[t], epsilon)
        _narrow(bits, first[r])


@njit(cache=True, nogil=True, parallel=True, fastmath={"contract"}, error_model="numpy")
def adagrad_full(rows, gradient, weight, squares, rate, epsilon):
    """Adagrad on these rows."""
    for t in prange(len(rows)):
        w = weight[rows[t]]
        s = squares[rows[t]]
        g = gradient[t]
        for k in range(len(w)):
            s[k] += g[k] * g[k]
            w[k] -= rate * g[k] / (np.sqrt(s[k]) + epsilon)


@njit(cache=True, nogil=True, parallel=True, fastmath={"contract"}, error_model="numpy")
def adagrad_row(rows, gradient, weight, squares, rate, epsilon):
    """Adagrad with one sum of mean squares a row."""
    for t in prange(len(rows)):
        w = weight[rows[t]]
        g = gradient[t]
        squares[rows[t]] += _mean_square(g)
        step = rate / (np.sqrt(squares[rows[t]]) + epsilon)
        for k in range(len(w)):
            w[k] -= step * g[k]


@njit(cache=True, nogil=True, parallel=True, fastmath={"contract"}, error_model="numpy")
def descend(rows, gradient, weight, rate):
    """Plain gradient descent on these rows."""
    for t in prange(len(rows)):
        w = weight[rows[t]]
        g = gradient[t]
        for k in range(len(w)):
            w[k] -= rate * g[k]

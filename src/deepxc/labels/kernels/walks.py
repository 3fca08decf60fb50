"""Random walks over labels and the texts they share."""

from __future__ import annotations

import numpy as np
from numba import types

from deepxc.labels.kernels.compiled import I32, I64, compiled
from deepxc.labels.kernels.random import below, mix, uniform


@compiled(types.int64(I64, I32, I64, I32, types.int64, types.int64, types.float64, types.uint64, types.int32[::1]))
def walk(
    label_ptr: np.ndarray,
    label_texts: np.ndarray,
    text_ptr: np.ndarray,
    text_labels: np.ndarray,
    home: int,
    steps: int,
    restart: float,
    key: np.uint64,
    visits: np.ndarray,
) -> int:
    """Write the labels that one walk from `home` visits; returns how many. Home is always among them."""
    visits[0] = home
    if label_ptr[home] == label_ptr[home + 1]:
        return 1
    state = mix(key ^ mix(np.uint64(home)))
    at = home
    returned = False
    for step in range(steps):
        state = mix(state)
        if uniform(state) < restart:
            at = home
        state = mix(state)
        text = label_texts[label_ptr[at] + below(state, label_ptr[at + 1] - label_ptr[at])]
        state = mix(state)
        at = int(text_labels[text_ptr[text] + below(state, text_ptr[text + 1] - text_ptr[text])])
        visits[step] = at
        returned |= at == home
    if returned:
        return steps
    visits[steps] = home
    return steps + 1


@compiled(types.int64(types.int32[::1], types.int64, types.int64, types.int32[::1], types.int32[::1]))
def most_visited(visits: np.ndarray, home: int, top_k: int, labels: np.ndarray, counts: np.ndarray) -> int:
    """Write the `top_k` labels visited most (ties: lower id), home always among them, in the order of ids.

    Sorts `visits`; returns how many labels were written.
    """
    visits.sort()
    distinct = 0
    for i in range(visits.size):
        if i == 0 or visits[i] != visits[i - 1]:
            labels[distinct] = visits[i]
            counts[distinct] = 0
            distinct += 1
        counts[distinct - 1] += 1
    if distinct <= top_k:
        return distinct
    # One number a label that falls with its count and then rises with its id: the smallest are the ones to keep.
    order = np.empty(distinct, np.int64)
    for i in range(distinct):
        order[i] = -1 if labels[i] == home else ((visits.size - counts[i]) << 32) | labels[i]
    bound = np.sort(order)[top_k - 1]
    kept = 0
    for i in range(distinct):
        if order[i] <= bound:
            labels[kept], counts[kept] = labels[i], counts[i]
            kept += 1
    return kept


@compiled(
    types.void(
        *(I64, I32, I64, I32),
        *(types.int64, types.int64, types.int64, types.float64, types.uint64),
        *(types.int32[::1], types.int32[:, ::1], types.float32[:, ::1]),
    )
)
def walk_labels(
    label_ptr: np.ndarray,
    label_texts: np.ndarray,
    text_ptr: np.ndarray,
    text_labels: np.ndarray,
    start: int,
    end: int,
    steps: int,
    restart: float,
    key: np.uint64,
    sizes: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
) -> None:
    """Walk from each label of start..end and write its neighbours and their shares; row 0 is label `start`."""
    visits = np.empty(steps + 1, np.int32)
    seen, counts = np.empty(steps + 1, np.int32), np.empty(steps + 1, np.int32)
    for home in range(start, end):
        n_visits = walk(label_ptr, label_texts, text_ptr, text_labels, home, steps, restart, key, visits)
        kept = most_visited(visits[:n_visits], home, labels.shape[1], seen, counts)
        row = home - start
        sizes[row] = kept
        total = counts[:kept].sum()
        for i in range(kept):
            labels[row, i] = seen[i]
            weights[row, i] = counts[i] / total

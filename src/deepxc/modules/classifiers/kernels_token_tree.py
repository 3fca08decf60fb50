"""The compiled loops of `token_tree`: one linear machine a node, and the probabilities of candidates."""

from __future__ import annotations

import numpy as np
from numba import njit

from deepxc.labels.kernels.random import below, mix

STEPS = 2048
"""A weight is stored in 16 bits, as so many steps to one: compiled loops read integers, not half floats."""
WINDOW = 4096
"""Texts that are shuffled together."""


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _product(w, data, tokens, first, last):
    total = np.float32(0.0)
    for p in range(first, last):
        total += w[tokens[p]] * data[p]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def descend(w, bounds, tokens, data, squares, signs, cost, passes, tolerance, state):
    """Dual coordinate descent for the squared hinge loss: weights come into `w`, the threshold is its last place.

    Texts whose constraint is slack by more than the last pass's worst violation are set aside until the others have
    settled, as LIBLINEAR does. Texts are shuffled within windows that fit the cache: over half a million of them, a
    visit in any order would wait for memory each time.
    """
    n, last = len(signs), len(w) - 1
    alpha = np.zeros(n, np.float32)
    order = np.arange(n)
    damping = np.float32(0.5 / cost)
    active, slack = n, np.float32(np.inf)
    for _ in range(passes):
        most, least = np.float32(-np.inf), np.float32(np.inf)
        for start in range(0, active, WINDOW):
            for i in range(min(start + WINDOW, active) - 1, start, -1):
                state = mix(state)
                j = start + below(state, i + 1 - start)
                order[i], order[j] = order[j], order[i]
        s = 0
        while s < active:
            i = order[s]
            sign, start, stop = signs[i], bounds[i], bounds[i + 1]
            slope = sign * (_product(w, data, tokens, start, stop) + w[last]) - np.float32(1.0) + damping * alpha[i]
            violation = slope
            if alpha[i] == 0.0:
                if slope > slack:
                    active -= 1
                    order[s], order[active] = order[active], order[s]
                    continue
                violation = min(slope, np.float32(0.0))
            most, least = max(most, violation), min(least, violation)
            if abs(violation) > 1e-9:
                old = alpha[i]
                alpha[i] = max(old - slope / (squares[i] + np.float32(1.0) + damping), np.float32(0.0))
                step = (alpha[i] - old) * sign
                for p in range(start, stop):
                    w[tokens[p]] += step * data[p]
                w[last] += step
            s += 1
        if most - least < tolerance:
            if active == n:
                break
            active, slack = n, np.float32(np.inf)
        else:
            slack = most if most > 0 else np.float32(np.inf)


@njit(cache=True, nogil=True, error_model="numpy")
def _gather(texts, bounds, tokens, data, squares, place_of):
    """The bags of some texts side by side, their tokens numbered anew in order, and which tokens those numbers are.

    All nodes under one parent learn from the same texts: gathered once, they and the weights stay in the cache.
    `place_of` comes in as -1 everywhere, and is left so.
    """
    size = 0
    for text in texts:
        size += bounds[text + 1] - bounds[text]
    near_bounds, near_tokens = np.zeros(len(texts) + 1, np.int64), np.empty(size, np.int32)
    near_data, near_squares = np.empty(size, np.float32), np.empty(len(texts), np.float32)
    vocabulary, n, size = np.empty(size, np.int32), 0, 0
    for i in range(len(texts)):
        for p in range(bounds[texts[i]], bounds[texts[i] + 1]):
            if place_of[tokens[p]] < 0:
                place_of[tokens[p]] = 0
                vocabulary[n] = tokens[p]
                n += 1
            near_tokens[size], near_data[size] = tokens[p], data[p]
            size += 1
        near_bounds[i + 1], near_squares[i] = size, squares[texts[i]]
    vocabulary = np.sort(vocabulary[:n])
    for place in range(n):
        place_of[vocabulary[place]] = place
    for p in range(size):
        near_tokens[p] = place_of[near_tokens[p]]
    for token in vocabulary:
        place_of[token] = -1
    return near_bounds, near_tokens, near_data, near_squares, vocabulary


@njit(cache=True, nogil=True, error_model="numpy")
def learn_nodes(
    texts, nodes, bounds, tokens, data, squares, own_bounds, own, cost, passes, tolerance, smallest, n_tokens, seed
):
    """Train some nodes of one parent, each to tell its texts from the rest of the parent's.

    Args (beside the bags, and the settings of `descend`):
        texts: The parent's texts, in order.
        nodes: The nodes.
        own_bounds, own: The texts of every node of this level, in order.

    Returns:
        Ends of the nodes' rows, tokens and weights; the threshold stands last in each row, under `n_tokens`. A node
        without texts has no row.
    """
    place_of = np.full(n_tokens, -1, np.int32)
    near_bounds, near_tokens, near_data, near_squares, vocabulary = _gather(
        texts, bounds, tokens, data, squares, place_of
    )
    width = len(vocabulary)
    w, signs = np.zeros(width + 1, np.float32), np.empty(len(texts), np.float32)
    ends = np.zeros(len(nodes), np.int64)
    out_tokens, out_weights = np.empty(1 << 12, np.int32), np.empty(1 << 12, np.float32)
    size = 0
    for i in range(len(nodes)):
        node = nodes[i]
        p, stop = own_bounds[node], own_bounds[node + 1]
        if p < stop:
            for q in range(len(texts)):
                signs[q] = -1.0
                if p < stop and own[p] == texts[q]:
                    signs[q] = 1.0
                    p += 1
            w[:] = 0
            state = mix(np.uint64(seed + node))
            descend(w, near_bounds, near_tokens, near_data, near_squares, signs, cost, passes, tolerance, state)
            if size + width + 1 > len(out_tokens):
                room = max(2 * len(out_tokens), size + width + 1)
                more_tokens, more_weights = np.empty(room, np.int32), np.empty(room, np.float32)
                more_tokens[:size], more_weights[:size] = out_tokens[:size], out_weights[:size]
                out_tokens, out_weights = more_tokens, more_weights
            for place in range(width):
                if abs(w[place]) > smallest:
                    out_tokens[size], out_weights[size] = vocabulary[place], w[place]
                    size += 1
            out_tokens[size], out_weights[size] = n_tokens, w[width]
            size += 1
        ends[i] = size
    return ends, out_tokens[:size].copy(), out_weights[:size].copy()


@njit(cache=True, nogil=True, error_model="numpy")
def _loss(node, rows, tokens, weights, query_tokens, query_data, first, last):
    """How far the node's margin falls short of 1, squared: minus the logarithm of its probability.

    A node's tokens and a query's are both in order: each of the query's is looked for behind the one before it.
    """
    low, high = rows[node], rows[node + 1] - 1
    if high < low:
        return np.float32(np.inf)
    margin = np.float32(weights[high])
    for p in range(first, last):
        token, end = query_tokens[p], high
        while low < end:
            middle = (low + end) >> 1
            if tokens[middle] < token:
                low = middle + 1
            else:
                end = middle
        if low == high:
            break
        if tokens[low] == token:
            margin += np.float32(weights[low]) * query_data[p]
    short = max(np.float32(0.0), np.float32(1.0) - margin * np.float32(1.0 / STEPS))
    return short * short


@njit(cache=True, nogil=True, error_model="numpy")
def candidate_losses(
    query_bounds, query_tokens, query_data, rows, tokens, weights, parents, n_labels, known, stamps, ids, losses
):
    """The losses of all nodes from the root to each candidate, added up; inf where a label was not trained.

    Labels are the first nodes, the nodes above them follow; `known` and `stamps` have a place for each of those above,
    so that a node shared by many candidates is scored once a query.
    """
    for q in range(len(ids)):
        first, last = query_bounds[q], query_bounds[q + 1]
        stamps[0] += 1
        now = stamps[0]
        for c in range(ids.shape[1]):
            node = ids[q, c]
            if node < 0 or node >= n_labels:
                losses[q, c] = np.inf
                continue
            total = _loss(node, rows, tokens, weights, query_tokens, query_data, first, last)
            node = parents[node]
            while node >= 0 and total < np.inf:
                place = node - n_labels
                if stamps[place + 1] != now:
                    stamps[place + 1] = now
                    known[place] = _loss(node, rows, tokens, weights, query_tokens, query_data, first, last)
                total += known[place]
                node = parents[node]
            losses[q, c] = total

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
        Ends of the nodes' rows, tokens and weights; and each node's threshold, -inf for one without texts.
    """
    place_of = np.full(n_tokens, -1, np.int32)
    near_bounds, near_tokens, near_data, near_squares, vocabulary = _gather(
        texts, bounds, tokens, data, squares, place_of
    )
    width = len(vocabulary)
    w, signs = np.zeros(width + 1, np.float32), np.empty(len(texts), np.float32)
    ends, thresholds = np.zeros(len(nodes), np.int64), np.full(len(nodes), -np.inf, np.float32)
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
            if size + width > len(out_tokens):
                room = max(2 * len(out_tokens), size + width)
                more_tokens, more_weights = np.empty(room, np.int32), np.empty(room, np.float32)
                more_tokens[:size], more_weights[:size] = out_tokens[:size], out_weights[:size]
                out_tokens, out_weights = more_tokens, more_weights
            for place in range(width):
                if abs(w[place]) > smallest:
                    out_tokens[size], out_weights[size] = vocabulary[place], w[place]
                    size += 1
            thresholds[i] = w[width]
        ends[i] = size
    return ends, out_tokens[:size].copy(), out_weights[:size].copy(), thresholds


@njit(cache=True, nogil=True, error_model="numpy")
def _add_weights(nodes, margins, posted, weights, first, last, value):
    """Add a token's weights to the margins of the nodes (in order) that stand in its list (in order, too).

    From one node to the next the list is crossed in strides that double, so that short and long lists both cost little.
    """
    low = first
    for i in range(len(nodes)):
        node, stride = nodes[i], 1
        while low + stride < last and posted[low + stride] < node:
            low += stride
            stride *= 2
        high = min(low + stride, last)
        while low < high:
            middle = (low + high) >> 1
            if posted[middle] < node:
                low = middle + 1
            else:
                high = middle
        if low == last:
            return
        if posted[low] == node:
            margins[i] += np.float32(weights[low]) * value
            low += 1


@njit(cache=True, nogil=True, error_model="numpy")
def candidate_losses(
    query_bounds, query_tokens, query_data, bounds, posted, weights, thresholds, parents, n_labels, places, ids, losses
):
    """How far the margins of all nodes from the root to each candidate fall short of 1, squared and added up.

    That is minus the logarithm of the candidate's probability; inf where a label was not trained. The weights lie in
    one list a token, so that rare tokens, which most are, have next to nothing to read. `places` has a zero for each
    node, and is left so: a node shared by many candidates is scored once a query.
    """
    step = np.float32(1.0 / STEPS)
    nodes = np.empty(len(places), np.int32)
    for q in range(len(ids)):
        n = 0
        for label in ids[q]:
            node = label if label < n_labels else -1
            while node >= 0 and places[node] == 0:
                places[node] = 1
                nodes[n] = node
                n += 1
                node = parents[node]
        asked = np.sort(nodes[:n])
        margins = np.zeros(n, np.float32)
        for i in range(n):
            places[asked[i]] = i
        for p in range(query_bounds[q], query_bounds[q + 1]):
            first, last = bounds[query_tokens[p]], bounds[query_tokens[p] + 1]
            _add_weights(asked, margins, posted, weights, first, last, query_data[p] * step)
        for i in range(n):
            short = np.float32(1.0) - (margins[i] + thresholds[asked[i]])
            margins[i] = max(short, np.float32(0.0)) ** 2
        for c in range(ids.shape[1]):
            node = ids[q, c] if ids[q, c] < n_labels else -1
            losses[q, c] = np.float32(0.0) if node >= 0 else np.float32(np.inf)
            while node >= 0:
                losses[q, c] += margins[places[node]]
                node = parents[node]
        for node in asked:
            places[node] = 0

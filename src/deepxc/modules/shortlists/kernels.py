"""The compiled loops of the shortlisters: merging, voting, leaving out positives, drawing at random.

The callers give ids as int64, CSR pointers as int64, CSR labels as int32 (ascending in a row) and scores as float32:
one version is compiled of each loop and kept on disk. Scratch arrays as long as the label space are made once a block
of rows and cleaned place by place.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from deepxc.labels.kernels.random import below, mix, uniform
from deepxc.search.kernels_postings import keep_best


@njit(cache=True, nogil=True)
def best_per_label(ids, scores, owners, n_labels, out_ids, out_scores):
    """The labels that own the found vectors, each once with its best score; `ids` come best first.

    Returns how many labels the row with fewest found has.
    """
    seen = np.zeros(n_labels, np.bool_)
    fewest = out_ids.shape[1]
    for i in range(len(ids)):
        n = 0
        for j in range(ids.shape[1]):
            if ids[i, j] < 0 or n == out_ids.shape[1]:
                break
            label = owners[ids[i, j]]
            if not seen[label]:
                seen[label] = True
                out_ids[i, n] = label
                out_scores[i, n] = scores[i, j]
                n += 1
        for j in range(n):
            seen[out_ids[i, j]] = False
        out_ids[i, n:] = -1
        out_scores[i, n:] = -np.inf
        fewest = min(fewest, n)
    return fewest


@njit(cache=True, nogil=True)
def vote(ids, similarities, indptr, labels, n_labels, out_ids, out_scores):
    """Labels of the found texts by summed similarity, divided by the row's best; similarities below 0 count as 0."""
    totals = np.zeros(n_labels, np.float32)
    seen = np.zeros(n_labels, np.bool_)
    touched = np.empty(n_labels, np.int64)
    for i in range(len(ids)):
        n = 0
        for j in range(ids.shape[1]):
            text = ids[i, j]
            if text < 0:
                break
            similarity = max(similarities[i, j], np.float32(0))
            for p in range(indptr[text], indptr[text + 1]):
                label = labels[p]
                if not seen[label]:
                    seen[label] = True
                    touched[n] = label
                    n += 1
                totals[label] += similarity
        keep_best(totals, touched, n, out_ids[i], out_scores[i])
        for j in range(n):
            totals[touched[j]] = 0
            seen[touched[j]] = False
        best = out_scores[i, 0] if out_scores.shape[1] else np.float32(0)
        if best > 0:
            for j in range(min(n, out_scores.shape[1])):
                out_scores[i, j] /= best


@njit(cache=True, nogil=True)
def merge(first_ids, first_scores, first_weight, second_ids, second_scores, second_weight, n_labels, ids, scores):
    """The best labels by the weighted sum of two shortlists' scores; a label that one lacks has 0 there."""
    totals = np.zeros(n_labels, np.float32)
    seen = np.zeros(n_labels, np.bool_)
    touched = np.empty(first_ids.shape[1] + second_ids.shape[1], np.int64)
    for i in range(len(ids)):
        n = 0
        for j in range(first_ids.shape[1]):
            label = first_ids[i, j]
            if label >= 0:
                seen[label] = True
                touched[n] = label
                n += 1
                totals[label] = first_weight * first_scores[i, j]
        for j in range(second_ids.shape[1]):
            label = second_ids[i, j]
            if label >= 0:
                if not seen[label]:
                    seen[label] = True
                    touched[n] = label
                    n += 1
                totals[label] += second_weight * second_scores[i, j]
        keep_best(totals, touched, n, ids[i], scores[i])
        for j in range(n):
            totals[touched[j]] = 0
            seen[touched[j]] = False


@njit(cache=True, nogil=True)
def _has(labels, start, end, label):
    """Whether a label stands among those between two bounds."""
    while start < end:
        middle = (start + end) >> 1
        if labels[middle] < label:
            start = middle + 1
        else:
            end = middle
    return start < len(labels) and labels[start] == label


@njit(cache=True, nogil=True)
def without_positives(ids, indptr, labels, out):
    """The first labels of each row that it does not have itself, in their order; -1 after the last."""
    for i in range(len(ids)):
        n = 0
        start, end = indptr[i], indptr[i + 1]
        for j in range(ids.shape[1]):
            if n == out.shape[1]:
                break
            label = ids[i, j]
            if label >= 0 and not (start < end and label <= labels[end - 1] and _has(labels, start, end, label)):
                out[i, n] = label
                n += 1
        out[i, n:] = -1


@njit(cache=True, nogil=True)
def fill_uniform(first_row, indptr, labels, n_labels, key, start, out):
    """Fill `out[:, start:]`, and places that hold -1 before it, with labels drawn evenly without repetition.

    Neither a row's positives nor what it holds already is drawn. Each row has a random stream of its own, so it does
    not matter who fills it.
    """
    taken = np.zeros(n_labels, np.bool_)
    k = out.shape[1]
    for i in range(len(out)):
        row = out[i]
        kept = 0
        while kept < start and row[kept] >= 0:
            taken[row[kept]] = True
            kept += 1
        barred = kept
        for p in range(indptr[i], indptr[i + 1]):
            if not taken[labels[p]]:
                taken[labels[p]] = True
                barred += 1
        wanted = min(k - kept, n_labels - barred)
        state = mix(key ^ mix(np.uint64(first_row + i)))
        n = kept
        if 2 * (barred + wanted) <= n_labels:
            while n < kept + wanted:
                state = mix(state)
                label = below(state, n_labels)
                if not taken[label]:
                    taken[label] = True
                    row[n] = label
                    n += 1
        else:  # most labels are wanted: choose among those that are left, in one pass
            left = n_labels - barred
            for label in range(n_labels):
                if n == kept + wanted:
                    break
                if not taken[label]:
                    state = mix(state)
                    if below(state, left) < kept + wanted - n:
                        row[n] = label
                        taken[label] = True
                        n += 1
                    left -= 1
            for j in range(n - 1, kept, -1):  # in random order, so that a part of a row is a fair draw too
                state = mix(state)
                other = kept + below(state, j - kept + 1)
                row[j], row[other] = row[other], row[j]
        row[n:] = -1
        for j in range(n):
            taken[row[j]] = False
        for p in range(indptr[i], indptr[i + 1]):
            taken[labels[p]] = False


@njit(cache=True, nogil=True)
def draw_weighted(first_row, indptr, labels, reach, key, tries, out):
    """Distinct labels drawn by weight, none of them a row's own; `reach` is the cumulative weight.

    A row ends in -1 where so many tries did not find as many labels as were wanted.
    """
    n_labels = len(reach)
    taken = np.zeros(n_labels, np.bool_)
    total = reach[-1]
    for i in range(len(out)):
        for p in range(indptr[i], indptr[i + 1]):
            taken[labels[p]] = True
        state = mix(key ^ mix(np.uint64(first_row + i)))
        n = 0
        for _ in range(tries):
            if n == out.shape[1]:
                break
            state = mix(state)
            label = np.searchsorted(reach, uniform(state) * total, side="right")
            if not taken[label]:
                taken[label] = True
                out[i, n] = label
                n += 1
        out[i, n:] = -1
        for j in range(n):
            taken[out[i, j]] = False
        for p in range(indptr[i], indptr[i + 1]):
            taken[labels[p]] = False


@njit(cache=True, nogil=True)
def open_clusters(found, scores, indptr, labels, out_ids, out_scores):
    """The labels of the clusters found, cluster after cluster, each with its cluster's score."""
    for i in range(len(found)):
        n = 0
        for j in range(found.shape[1]):
            cluster = found[i, j]
            if cluster < 0:
                break
            for p in range(indptr[cluster], indptr[cluster + 1]):
                if n == out_ids.shape[1]:
                    break
                out_ids[i, n] = labels[p]
                out_scores[i, n] = scores[i, j]
                n += 1
        out_ids[i, n:] = -1
        out_scores[i, n:] = -np.inf


@njit(cache=True, nogil=True)
def count_higher(scores, rows, columns, out):
    """How many scores of its row are higher than each cell's."""
    for i in range(len(rows)):
        row = scores[rows[i]]
        own = row[columns[i]]
        higher = 0
        for score in row:
            if score > own:
                higher += 1
        out[i] = higher

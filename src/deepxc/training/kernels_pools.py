"""The compiled loop of `pools`: distinct labels of a batch in the order in which they come."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def gather_pool(indptr, indices, rows, hard, drawn, place, pool, cell_rows, cell_columns):
    """Fill the pool with the batch's positives, then hard labels rank by rank, then drawn ones, each label once.

    Args:
        indptr: Bounds of each text's positives.
        indices: The positives.
        rows: The batch.
        hard: Labels for each text of the batch, -1 where there is none.
        drawn: Random labels.
        place: An array of -1, one for each label; put back as it was.
        pool: Room for the labels; a label that finds it full is left out, but positives always fit.
        cell_rows: Room for the positive cells' rows.
        cell_columns: Room for the positive cells' columns.

    Returns:
        Number of positives, of positives and hard labels, and of labels in all.
    """
    count = 0
    cell = 0
    for i in range(len(rows)):
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            label = indices[p]
            if place[label] < 0:
                place[label] = count
                pool[count] = label
                count += 1
            cell_rows[cell] = i
            cell_columns[cell] = place[label]
            cell += 1
    positives = count
    for h in range(hard.shape[1]):
        for i in range(len(rows)):
            label = hard[i, h]
            if label >= 0 and place[label] < 0 and count < len(pool):
                place[label] = count
                pool[count] = label
                count += 1
    with_hard = count
    for label in drawn:
        if place[label] < 0 and count < len(pool):
            place[label] = count
            pool[count] = label
            count += 1
    return positives, with_hard, count


@njit(cache=True, nogil=True)
def locate(hard, place, size, cell_rows, cell_columns):
    """Cells of each text's hard labels that are in a pool of that size, a text's label once; returns how many."""
    last = np.full(size, -1, np.int32)  # the last text that had each label of the pool
    cell = 0
    for i in range(hard.shape[0]):
        for h in range(hard.shape[1]):
            if hard[i, h] < 0 or place[hard[i, h]] < 0:
                continue
            column = place[hard[i, h]]
            if last[column] != i:
                last[column] = i
                cell_rows[cell] = i
                cell_columns[cell] = column
                cell += 1
    return cell


@njit(cache=True, nogil=True)
def forget(pool, place):
    """Put the array of places back to -1."""
    for label in pool:
        place[label] = np.int32(-1)

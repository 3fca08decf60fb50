"""Compiled loops of `near_duplicates`: folding texts to words, shingle sets, and the join of two sides."""

from __future__ import annotations

import numpy as np
from numba import njit

SHINGLE = 4  # characters of a shingle
_SPACE = 32
_BUCKET_BITS = 32  # low bits of a key that hold the bucket; the frequency stands above them
_MIX = np.uint64(0x9E3779B97F4A7C15)


@njit("Tuple((uint32[::1], int64[::1]))(uint32[::1], boolean[::1], int64[::1], int64)", cache=True, nogil=True)
def fold_rows(points: np.ndarray, is_word: np.ndarray, ends: np.ndarray, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Each row as its words with one space between them, cut at `longest` characters.

    Args:
        points: Code points of all rows; one code point between two rows belongs to neither.
        is_word: For each code point whether it is part of words.
        ends: Where each row ends in `points`.
        longest: Characters to keep of a row.

    Returns:
        The code points that are left, and the start of each row in them.
    """
    folded = np.empty(len(points), np.uint32)
    starts = np.empty(len(ends) + 1, np.int64)
    size, start = 0, 0
    for row in range(len(ends)):
        starts[row] = size
        gap = False
        for i in range(start, ends[row]):
            if not is_word[points[i]]:
                gap = True
                continue
            if size - starts[row] >= longest:
                break
            if gap and size > starts[row]:
                folded[size] = _SPACE
                size += 1
            gap = False
            folded[size] = points[i]
            size += 1
        start = ends[row] + 1
    starts[len(ends)] = size
    return folded[:size].copy(), starts


@njit("uint64[::1](uint32[::1], int64[::1])", cache=True, nogil=True)
def row_hashes(points: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """A 64-bit hash of each row; 0 for an empty one."""
    hashes = np.zeros(len(starts) - 1, np.uint64)
    for row in range(len(starts) - 1):
        h = np.uint64(0)
        for i in range(starts[row], starts[row + 1]):
            h = (h ^ np.uint64(points[i])) * _MIX
            h ^= h >> np.uint64(29)
        hashes[row] = h
    return hashes


@njit(
    "Tuple((int64[::1], int64[::1]))(uint32[::1], int64[::1], int64, int32[::1])",
    cache=True,
    nogil=True,
)
def shingle_sets(
    points: np.ndarray, starts: np.ndarray, bits: int, frequencies: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The set of shingles of each row, rarest first.

    A shingle is the bucket of `SHINGLE` characters in a row, of the whole row where it is shorter. Its key is
    (frequency, bucket), so one order holds in all rows.

    Args:
        points: Code points of all rows.
        starts: Start of each row in `points`.
        bits: There are 2^bits buckets.
        frequencies: How often each bucket occurs on the side that is indexed.

    Returns:
        The keys of all rows, ascending in each, and the start of each row in them.
    """
    rows = len(starts) - 1
    keys = np.empty(len(points), np.int64)
    set_starts = np.zeros(rows + 1, np.int64)
    size = 0
    for row in range(rows):
        length = starts[row + 1] - starts[row]
        count = 0 if length == 0 else max(length - SHINGLE + 1, 1)
        first = size
        for s in range(starts[row], starts[row] + count):
            h = np.uint64(0)
            for i in range(s, min(s + SHINGLE, starts[row + 1])):
                h = (h ^ np.uint64(points[i])) * _MIX
            bucket = np.int64(h >> np.uint64(64 - bits))
            keys[size] = (np.int64(frequencies[bucket]) << _BUCKET_BITS) | bucket
            size += 1
        keys[first:size].sort()
        last = first
        for i in range(first + 1, size):
            if keys[i] != keys[last]:
                last += 1
                keys[last] = keys[i]
        size = last + 1 if count else first
        set_starts[row + 1] = size
    return keys[:size].copy(), set_starts


@njit("int64(int64, float64)", cache=True, nogil=True, inline="always")
def prefix_length(size: int, threshold: float) -> int:
    """How many of a set's rarest members must hold one that any set as similar as `threshold` shares with it."""
    return 0 if size == 0 else size - int(np.ceil(threshold * size - 1e-9)) + 1


@njit("int64(int64, int64, float64)", cache=True, nogil=True, inline="always")
def needed_overlap(size: int, other_size: int, threshold: float) -> int:
    """Members that two sets of these sizes must share to be as similar as `threshold`."""
    return int(np.ceil(threshold / (1 + threshold) * (size + other_size) - 1e-9))


@njit("Tuple((int64[::1], int32[:,::1]))(int64[::1], int64[::1], float64, int64)", cache=True, nogil=True)
def prefix_postings(
    keys: np.ndarray, set_starts: np.ndarray, threshold: float, bits: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where each bucket occurs in a row's prefix.

    Returns:
        The start of each bucket in the postings, and a posting a line: the row, the members of its set from this one
        on, and the size of its set.
    """
    rows = len(set_starts) - 1
    mask = (np.int64(1) << _BUCKET_BITS) - 1
    bucket_starts = np.zeros((np.int64(1) << bits) + 1, np.int64)
    for row in range(rows):
        start = set_starts[row]
        for i in range(start, start + prefix_length(set_starts[row + 1] - start, threshold)):
            bucket_starts[(keys[i] & mask) + 1] += 1
    for bucket in range(len(bucket_starts) - 1):
        bucket_starts[bucket + 1] += bucket_starts[bucket]
    postings = np.empty((bucket_starts[-1], 3), np.int32)
    filled = bucket_starts.copy()
    for row in range(rows):
        start, end = set_starts[row], set_starts[row + 1]
        for i in range(start, start + prefix_length(end - start, threshold)):
            at = filled[keys[i] & mask]
            filled[keys[i] & mask] += 1
            postings[at, 0], postings[at, 1], postings[at, 2] = row, end - i, end - start
    return bucket_starts, postings


@njit("boolean(int64[::1], int64[::1], int64)", cache=True, nogil=True)
def shares(a: np.ndarray, b: np.ndarray, needed: int) -> bool:
    """Whether two ascending sets share at least `needed` members; gives up as soon as they cannot."""
    i, j, common = 0, 0, 0
    while i < len(a) and j < len(b):
        if common + min(len(a) - i, len(b) - j) < needed:
            return False
        if a[i] == b[j]:
            common += 1
            i += 1
            j += 1
        elif a[i] < b[j]:
            i += 1
        else:
            j += 1
    return common >= needed


@njit(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int32[:,::1], float64, int64,"
    " int64[::1], int64[::1])",
    cache=True,
    nogil=True,
)
def join(
    keys: np.ndarray,
    set_starts: np.ndarray,
    indexed_keys: np.ndarray,
    indexed_starts: np.ndarray,
    bucket_starts: np.ndarray,
    postings: np.ndarray,
    threshold: float,
    first_row: int,
    matches: np.ndarray,
    seen: np.ndarray,
) -> None:
    """Finds, for every indexed row that has no match yet, the first row that is as similar as the threshold.

    The first member that two sets share bounds what they share in all: whatever comes from there on in the shorter
    remainder. That rules most pairs out without a look at the sets.

    Args:
        keys: Shingle sets of the rows.
        set_starts: Start of each row in `keys`.
        indexed_keys: Shingle sets of the indexed rows.
        indexed_starts: Start of each indexed row in `indexed_keys`.
        bucket_starts: Start of each bucket in `postings`.
        postings: As from `prefix_postings`.
        threshold: Least Jaccard similarity of a match.
        first_row: Number of the first row.
        matches: Filled in: the matching row of every indexed row, -1 while it has none.
        seen: Filled in: the last row that every indexed row was compared with.
    """
    mask = (np.int64(1) << _BUCKET_BITS) - 1
    for row in range(len(set_starts) - 1):
        start, end = set_starts[row], set_starts[row + 1]
        size = end - start
        for i in range(start, start + prefix_length(size, threshold)):
            bucket = keys[i] & mask
            for p in range(bucket_starts[bucket], bucket_starts[bucket + 1]):
                needed = needed_overlap(size, postings[p, 2], threshold)
                if min(end - i, np.int64(postings[p, 1])) < needed:
                    continue
                other = postings[p, 0]
                if matches[other] >= 0 or seen[other] == first_row + row:
                    continue
                seen[other] = first_row + row
                if shares(keys[start:end], indexed_keys[indexed_starts[other] : indexed_starts[other + 1]], needed):
                    matches[other] = first_row + row

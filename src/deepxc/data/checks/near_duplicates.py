"""Finds texts that say almost the same: equal words, or mostly equal character shingles.

An exact join, not a sample (but for the two shingles in a million that share a hash): two sets whose Jaccard
similarity reaches the threshold share one of their rarest few members, so only rows that share a rare shingle are
ever compared. The smaller side is indexed, the larger one streams past it a chunk at a time.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepxc.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CHUNK = 1 << 16
_FEWEST_BITS = 20  # of a shingle's hash: with fewer, small collections have chance collisions
_CODE_POINTS = 0x110000
LONGEST = 10_000  # characters of a text that are compared


@dataclass(frozen=True, eq=False)
class NearDuplicates:
    """What each text is a near duplicate of.

    Attributes:
        same_words: First reference text with the same words in the same order, whatever their case and the
            punctuation between them; -1 where there is none.
        similar: First reference text whose shingles are similar, those with the same words included; -1 where
            there is none.
    """

    same_words: np.ndarray
    similar: np.ndarray


def near_duplicates(texts: Sequence[str], reference: Sequence[str], threshold: float = 0.8) -> NearDuplicates:
    """Which texts nearly repeat a reference text.

    Case, punctuation and white space do not count, nor does what follows after the first 10,000 characters. Texts
    without a letter or digit match nothing.

    Args:
        texts: The texts to look up (the test side).
        reference: The texts to look among (the train side).
        threshold: Least Jaccard similarity of the sets of 4-character shingles. In a title of 40 characters one
            changed character leaves 0.8.
    """
    from deepxc.data.checks import shingle_kernels as kernels

    if not 0 < threshold <= 1:
        raise UserError(f"a similarity of {threshold:g} does not exist", where="threshold", remedy="Give one up to 1")
    folder = _Folder()
    parts = [folder.fold(texts[i : i + _CHUNK]) for i in range(0, len(texts), _CHUNK)]
    if not parts:
        return NearDuplicates(np.empty(0, np.int64), np.empty(0, np.int64))
    points, starts = _joined(parts)
    hashes = kernels.row_hashes(points, starts)
    bits = min(max(len(points).bit_length() + 2, _FEWEST_BITS), 26)
    none = np.zeros(1 << bits, np.int32)
    plain, _ = kernels.shingle_sets(points, starts, bits, none)
    frequencies = np.bincount(plain, minlength=1 << bits).astype(np.int32)
    keys, set_starts = kernels.shingle_sets(points, starts, bits, frequencies)
    index = kernels.prefix_postings(keys, set_starts, threshold, bits)

    similar = np.full(len(texts), -1, np.int64)
    seen = similar.copy()
    reference_hashes = np.empty(len(reference), np.uint64)
    for first, chunk in _chunks(reference):
        points, starts = folder.fold(chunk)
        reference_hashes[first : first + len(chunk)] = kernels.row_hashes(points, starts)
        sets = kernels.shingle_sets(points, starts, bits, frequencies)
        kernels.join(*sets, keys, set_starts, *index, threshold, first, similar, seen)
    return NearDuplicates(_first_equal(hashes, reference_hashes), similar)


def _chunks(texts: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    for first in range(0, len(texts), _CHUNK):
        yield first, texts[first : first + _CHUNK]


def _joined(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Folded chunks as one."""
    offsets = np.cumsum([0, *(len(points) for points, _ in parts)])
    starts = [offset + starts[:-1] for offset, (_, starts) in zip(offsets[:-1], parts, strict=True)]
    return np.concatenate([points for points, _ in parts]), np.concatenate([*starts, offsets[-1:]])


def _first_equal(hashes: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The first reference row with the same hash, -1 where there is none or the hash is that of nothing."""
    distinct, first = np.unique(reference, return_index=True)
    if not len(distinct):
        return np.full(len(hashes), -1, np.int64)
    place = np.minimum(np.searchsorted(distinct, hashes), len(distinct) - 1)
    return np.where((distinct[place] == hashes) & (hashes != 0), first[place], -1)


class _Folder:
    """Turns chunks of texts into code points of their case-folded words; learns which characters are in words."""

    def __init__(self) -> None:
        self.is_word = np.zeros(_CODE_POINTS, bool)
        self.known = np.zeros(_CODE_POINTS, bool)

    def fold(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Code points of all rows and the start of each row in them."""
        from deepxc.data.checks.shingle_kernels import fold_rows

        joined = "\n".join(texts)
        if joined.count("\n") != len(texts) - 1:
            joined = "\n".join(text.replace("\n", " ") for text in texts)
        if not joined.isascii():
            joined = unicodedata.normalize("NFKC", joined)
        points = np.frombuffer(bytearray(joined.casefold().encode("utf-32-le", "surrogatepass")), np.uint32)
        self._learn(points)
        ends = np.append(np.flatnonzero(points == ord("\n")), len(points))
        return fold_rows(points, self.is_word, ends, LONGEST)

    def _learn(self, points: np.ndarray) -> None:
        """Looks up the characters not met before: letters, digits and the marks on them make words."""
        met = np.zeros(_CODE_POINTS, bool)
        met[points] = True
        new = np.flatnonzero(met & ~self.known)
        self.is_word[new] = [unicodedata.category(chr(point))[0] in "LNM" for point in new]
        self.known[new] = True

"""The parser of `id:value` rows, compiled: one pass over the bytes, the exact line of the first fault.

Import it only where sparse text is read: it pulls in numba.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

# What went wrong, as a number that compiled code can return.
NO_FAULT = 0
BAD_ID = 1
NO_COLON = 2
BAD_VALUE = 3
NOT_FINITE = 4
ID_TOO_LARGE = 5
TWICE = 6
NEGATIVE = 7
LABEL_TOO_LARGE = 8
BAD_LABEL = 9

_POWERS = 10.0 ** np.arange(23)  # every one is exact in float64
_MOST_DIGITS = 18  # of a mantissa that fits 64 bits
_TAB, _LF, _CR, _SPACE, _HASH, _PLUS, _COMMA, _MINUS, _DOT, _COLON = 9, 10, 13, 32, 35, 43, 44, 45, 46, 58
_ZERO, _NINE, _A, _Q, _LOWER = 48, 57, 97, 113, 32

_BYTES = types.Array(types.uint8, 1, "C", readonly=True)


@njit(cache=True, nogil=True, inline="always")
def _ends(byte: int) -> bool:
    """Whether a byte ends a token."""
    return byte in (_SPACE, _LF, _TAB, _CR, _HASH)


@njit(types.UniTuple(types.int64, 3)(_BYTES, types.int64, types.int64), cache=True, nogil=True)
def _integer(buf: np.ndarray, at: int, end: int) -> tuple[int, int, int]:
    """A run of digits: its value, the position after it, how many digits."""
    value = np.int64(0)
    start = at
    while at < end:
        byte = buf[at]
        if byte < _ZERO or byte > _NINE:
            break
        if at - start < _MOST_DIGITS:
            value = value * 10 + (np.int64(byte) - _ZERO)
        at += 1
    return value, at, at - start  # pyrefly: ignore[bad-return]


@njit(types.Tuple((types.float64, types.int64, types.int64))(_BYTES, types.int64, types.int64), cache=True, nogil=True)
def _number(buf: np.ndarray, at: int, end: int) -> tuple[float, int, int]:
    """A decimal number: its value, the position after it, a fault.

    Up to 15 digits the value is exactly what Python's `float` gives, past them it may be one unit in the last place
    off; a float32 written with 9 digits or more comes back as it was either way.
    """
    negative = False
    if at < end and (buf[at] == _MINUS or buf[at] == _PLUS):
        negative = buf[at] == _MINUS
        at += 1
    mantissa = np.int64(0)
    digits = 0
    scale = 0
    seen = False
    dotted = False
    while at < end:
        byte = buf[at]
        if _ZERO <= byte <= _NINE:
            seen = True
            if digits < _MOST_DIGITS:
                mantissa = mantissa * 10 + (np.int64(byte) - _ZERO)
                digits += mantissa > 0
                scale -= dotted
            else:
                scale += not dotted
        elif byte == _DOT and not dotted:
            dotted = True
        else:
            break
        at += 1
    if not seen:
        letter = (buf[at] | _LOWER) if at < end else 0
        return 0.0, at, NOT_FINITE if letter in (_A + 13, _A + 8) else BAD_VALUE  # nan, inf
    if at < end and (buf[at] | _LOWER) == _A + 4:  # e
        sign = 1
        at += 1
        if at < end and (buf[at] == _MINUS or buf[at] == _PLUS):
            sign = -1 if buf[at] == _MINUS else 1
            at += 1
        power, at, size = _integer(buf, at, end)
        if size == 0:
            return 0.0, at, BAD_VALUE
        scale += sign * min(power, 100_000)
    value = np.float64(mantissa)
    if 0 <= scale < len(_POWERS):
        value *= _POWERS[scale]
    elif -len(_POWERS) < scale < 0:
        value /= _POWERS[-scale]
    elif mantissa:
        value *= 10.0**scale
    if at < end and not _ends(buf[at]):
        return value, at, BAD_VALUE
    return (-value if negative else value), at, NO_FAULT


@njit(types.UniTuple(types.int64, 3)(_BYTES, types.int64), cache=True, nogil=True)
def count_marks(buf: np.ndarray, start: int) -> tuple[int, int, int]:
    """Lines, colons and commas from a position on: how much room the parsed rows can need."""
    lines = colons = commas = 0
    for at in range(start, len(buf)):
        byte = buf[at]
        lines += byte == _LF
        colons += byte == _COLON
        commas += byte == _COMMA
    if len(buf) > start and buf[len(buf) - 1] != _LF:
        lines += 1
    return lines, colons, commas


@njit(
    types.Tuple((types.int64, types.int64, types.int64))(
        _BYTES, types.int64, types.int64, types.int64, types.int32[::1], types.int64
    ),
    cache=True,
    nogil=True,
)
def _label_list(buf: np.ndarray, at: int, end: int, width: int, labels: np.ndarray, used: int) -> tuple[int, int, int]:
    """The comma-separated ids that may open a row: position after them, entries used, a fault."""
    start, before = at, used
    while True:
        label, at, size = _integer(buf, at, end)
        if size and at < end and buf[at] == _COLON:
            return start, before, NO_FAULT  # features without labels, the leading space trimmed
        if size == 0:
            return at, used, BAD_LABEL
        if label >= width or size > _MOST_DIGITS:
            return at, used, LABEL_TOO_LARGE
        labels[used] = label
        used += 1
        if at < end and buf[at] == _COMMA:
            at += 1
            continue
        if at < end and not _ends(buf[at]):
            return at, used, BAD_LABEL
        return at, used, NO_FAULT


@njit(
    types.Tuple((types.int64, types.int64, types.int64, types.int64, types.boolean))(
        _BYTES,
        types.int64,
        types.int64,
        types.int64,
        types.boolean,
        types.int64[::1],
        types.int32[::1],
        types.float32[::1],
        types.int64[::1],
        types.int32[::1],
        types.int64[::1],
    ),
    cache=True,
    nogil=True,
)
def parse_rows(
    buf: np.ndarray,
    start: int,
    columns: int,
    label_columns: int,
    signed: bool,
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    label_indptr: np.ndarray,
    label_indices: np.ndarray,
    row_lines: np.ndarray,
) -> tuple[int, int, int, int, bool]:
    """Parse rows into the given arrays.

    Args:
        buf: The whole file.
        start: Position after the header line.
        columns: Ids must be below this.
        label_columns: Labels open each row and must be below this; -1 where rows are pairs alone.
        signed: Whether values below 0 are allowed.
        indptr: Receives the start of each row in `indices`; long enough for every line.
        indices: Receives the ids.
        values: Receives the values.
        label_indptr: As `indptr`, for the labels.
        label_indices: Receives the labels.
        row_lines: Receives the line of each row, from 1.

    Returns:
        Rows parsed, the line of the fault, the position of the fault, the fault, whether all rows ascend.
    """
    end = len(buf)
    at = start
    row = used = labels_used = 0
    line = 1
    ascending = True
    while at < end:
        line += 1
        if buf[at] != _HASH:
            row_lines[row] = line
            if label_columns >= 0 and _ZERO <= buf[at] <= _NINE:
                at, labels_used, fault = _label_list(buf, at, end, label_columns, label_indices, labels_used)
                if fault:
                    return row, line, at, fault, ascending
            last = -1
            while at < end:
                byte = buf[at]
                if byte in (_LF, _HASH):
                    break
                if byte in (_SPACE, _TAB, _CR):
                    at += 1
                    continue
                if byte == _Q:  # qid:7, a query's number that ranking tools write
                    while at < end and not _ends(buf[at]):
                        at += 1
                    continue
                column, after, size = _integer(buf, at, end)
                if size == 0:
                    return row, line, at, BAD_ID, ascending
                if after >= end or buf[after] != _COLON:
                    return row, line, at, NO_COLON, ascending
                if column >= columns or size > _MOST_DIGITS:
                    return row, line, at, ID_TOO_LARGE, ascending
                value, after, fault = _number(buf, after + 1, end)
                if fault == NO_FAULT and value < 0 and not signed:
                    fault = NEGATIVE
                elif fault == NO_FAULT and column == last:
                    fault = TWICE
                elif fault == NO_FAULT and not np.isfinite(np.float32(value)):
                    fault = NOT_FINITE
                if fault:
                    return row, line, at, fault, ascending
                if column < last:
                    ascending = False
                last = column
                indices[used] = column
                values[used] = value
                used += 1
                at = after
            row += 1
            indptr[row] = used
            label_indptr[row] = labels_used
        while at < end and buf[at] != _LF:
            at += 1
        at += 1
    return row, line, at, NO_FAULT, ascending

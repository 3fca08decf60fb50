"""Faults that single texts have: empty, far too long, damaged by a wrong encoding."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from deepxc.data.checks.finding import Finding, row_example

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepxc.data.checks.finding import Severity
    from deepxc.data.dataset import Split

LONG = 10_000  # characters from which a text is no short text

_ONE_BYTE = ("cp1252", "latin-1")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_LOST = re.compile("[\ufffd\ud800-\udfff]")


def _as_one_byte(first: int, last: int) -> str:
    """A character class of what the bytes from `first` to `last` look like in Windows-1252 or Latin-1."""
    seen = {bytes([byte]).decode(encoding, "ignore") for byte in range(first, last + 1) for encoding in _ONE_BYTE}
    return f"[{re.escape(''.join(sorted(seen)))}]"


# UTF-8 read in a one-byte encoding: a first byte, which looks like an accented letter, and one to three bytes that
# follow it. One letter of that kind is damage where its first byte looks like Â, Ã, â or ð; other first bytes look
# like letters that may stand before a quotation mark, so there it takes two in a row.
_NEXT = _as_one_byte(0x80, 0xBF)
_MOJIBAKE = re.compile(
    f"[ÂÃ]{_NEXT}|â{_NEXT}{{2}}|ð{_NEXT}{{3}}"
    f"|(?:{_as_one_byte(0xC4, 0xDF)}{_NEXT}){{2}}|(?:{_as_one_byte(0xE0, 0xEF)}{_NEXT}{{2}}){{2}}"
)


def text_findings(part: str, split: Split) -> Iterator[Finding]:
    """Findings on the texts of one split, or on its features where it has no texts."""
    if split.texts is None:
        yield from _feature_findings(part, split)
        return
    texts = split.texts
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    empty = [row for row, text in enumerate(texts) if not text or text.isspace()]
    yield from _found(
        split, empty, "empty-text", "warning", f"{part} texts are empty", "Remove these rows or fill in their texts"
    )
    yield from _found(
        split,
        np.flatnonzero(lengths > LONG).tolist(),
        "long-text",
        "note",
        f"{part} texts are longer than {LONG:,} characters",
        "Check that one row is one text; long texts cost time and their end has little influence",
    )
    # Printable ASCII, by far the commonest, has no damage to look for
    odd = [row for row, text in enumerate(texts) if not (text.isascii() and text.isprintable())]
    yield from _found(
        split,
        [row for row in odd if _LOST.search(texts[row])],
        "lost-characters",
        "warning",
        f"{part} texts hold replacement characters (U+FFFD) or lone surrogates",
        "Convert the source to UTF-8 again from where it was still whole",
    )
    yield from _found(
        split,
        [row for row in odd if is_mojibake(texts[row])],
        "mojibake",
        "warning",
        f"{part} texts look like UTF-8 that was read in another encoding (Ã© for é)",
        "Read the source as UTF-8 instead of Latin-1 or Windows-1252",
    )
    yield from _found(
        split,
        [row for row in odd if _CONTROL.search(texts[row]) and not is_mojibake(texts[row])],
        "control-characters",
        "note",
        f"{part} texts hold control characters",
        "Strip them; those from U+0080 to U+009F mean that the source is Windows-1252 and was read as Latin-1",
    )


def is_mojibake(text: str) -> bool:
    """Whether a text has letters that look like UTF-8 read in a one-byte encoding."""
    return not text.isascii() and _MOJIBAKE.search(text) is not None


def _feature_findings(part: str, split: Split) -> Iterator[Finding]:
    X = split.X
    assert X is not None
    if isinstance(X, np.ndarray):
        finite = np.isfinite(X).all(axis=1)
        filled = X.any(axis=1)
    else:
        finite = np.ones(X.shape[0], bool)
        finite[np.searchsorted(X.indptr, np.flatnonzero(~np.isfinite(X.data)), side="right") - 1] = False
        filled = np.diff(X.indptr) > 0
    yield from _found(
        split,
        np.flatnonzero(~finite).tolist(),
        "bad-features",
        "error",
        f"{part} rows have features that are not finite",
        "Mend or remove these rows",
    )
    yield from _found(
        split,
        np.flatnonzero(~filled).tolist(),
        "empty-features",
        "warning",
        f"{part} rows have no features",
        "Remove these rows or give them features",
    )


def _found(split: Split, rows: list[int], code: str, severity: Severity, what: str, remedy: str) -> Iterator[Finding]:
    if rows:
        yield Finding(code, severity, what, len(rows), row_example(split, rows[0]), remedy)

"""Files as bytes, lines and text: gzip or not, byte-order mark or not, CRLF or not, with faults named by file:line.

Whether a file is gzip is read from its first bytes, never from its name, so a renamed file still reads.
"""

from __future__ import annotations

import gzip
import io
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, cast

from deepxc.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GZIP_MAGIC = b"\x1f\x8b"
UTF8_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Small enough that what a block is parsed into stays in the cache and is gone before the garbage collector looks at
# it: blocks of 16 MiB took three times as long.
BLOCK_BYTES = 1 << 15
HEAD_BYTES = 1 << 16


@contextmanager
def open_binary(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, unpacked where it is gzip; faults while it is open become `DataError`."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == GZIP_MAGIC
            raw.seek(0)
            if packed:
                with gzip.GzipFile(fileobj=raw) as stream:
                    yield cast("IO[bytes]", stream)
            else:
                yield raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as fault:
        what = "the gzip data end too early" if isinstance(fault, EOFError) else f"damaged gzip data ({fault})"
        raise DataError(what, where=str(path), remedy="Download or write the file again") from fault
    except OSError as fault:
        reason = fault.strerror or str(fault)
        raise DataError(f"cannot be read: {reason}", where=str(path), remedy="Check the path and its rights") from fault


def read_bytes(path: Path, *, may_be_empty: bool = False) -> bytes:
    """The whole file, unpacked, without its byte-order mark."""
    with open_binary(path) as stream:
        data = stream.read()
    data = _without_mark(data, path)
    if not data and not may_be_empty:
        raise empty_file(path)
    return data


def read_head(path: Path, size: int = HEAD_BYTES) -> bytes:
    """The first bytes of a file, unpacked, to tell its format from."""
    with open_binary(path) as stream:
        return _without_mark(stream.read(size), path)


def line_blocks(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """The lines of a file in blocks, so that a file larger than memory can be read.

    Yields:
        The number of the block's first line (from 1) and its lines without their ends (LF or CRLF).
    """
    first = 1
    with open_binary(path) as stream:
        parts = [_without_mark(stream.read(BLOCK_BYTES), path)]  # of a line that goes on in the next block
        if not parts[0]:
            raise empty_file(path)
        while more := stream.read(BLOCK_BYTES):
            cut = more.rfind(b"\n") + 1
            if not cut:
                parts.append(more)
                continue
            lines = split_lines(b"".join((*parts, more[:cut])))
            yield first, lines
            first += len(lines)
            parts = [more[cut:]]
    rest = b"".join(parts)
    if rest:
        yield first, split_lines(rest)


def split_lines(data: bytes) -> list[bytes]:
    """Lines without their ends; a last line end does not start another line."""
    if b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def text_lines(path: Path, *, may_be_empty: bool = False) -> list[str]:
    """The lines of a UTF-8 file; only LF and CRLF end a line, other Unicode separators are part of it."""
    text = decode(read_bytes(path, may_be_empty=may_be_empty), path)
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def text_stream(path: Path) -> io.StringIO:
    """The file as text with its line ends untouched, which is what the csv module asks for."""
    return io.StringIO(decode(read_bytes(path), path), newline="")


def decode(data: bytes, path: Path, first_line: int = 1) -> str:
    """Bytes as UTF-8; a fault is told by file:line."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as fault:
        line = first_line + data.count(b"\n", 0, fault.start)
        raise not_utf8(path, line, data[fault.start]) from fault


def not_utf8(path: Path, line: int, byte: int | None = None) -> DataError:
    """The error for text in another encoding."""
    which = "" if byte is None else f" (byte 0x{byte:02x})"
    return DataError(f"the text is not UTF-8{which}", where=f"{path}:{line}", remedy="Save the file again as UTF-8")


def empty_file(path: Path) -> DataError:
    """The error for a file that holds nothing."""
    return DataError("the file is empty", where=str(path), remedy="Give a file with at least one row")


def _without_mark(data: bytes, path: Path) -> bytes:
    """Bytes after the UTF-8 byte-order mark; UTF-16 is refused by name, for Windows tools write it."""
    if data.startswith(UTF8_MARK):
        return data[len(UTF8_MARK) :]
    if data.startswith(UTF16_MARKS):
        raise DataError("the text is UTF-16", where=f"{path}:1", remedy="Save the file again as UTF-8")
    return data

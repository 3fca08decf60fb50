"""Reads word vectors from text files as GloVe, word2vec and fastText write them."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from deepxc.errors import DataError, UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_ABSENT, _FOLDED, _EXACT = 0, 1, 2  # how a token's vector was found


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Vectors for a vocabulary.

    Attributes:
        vectors: One row a token, float32.
        found: Which rows came from the file; the others are a random start.
    """

    vectors: np.ndarray
    found: np.ndarray

    @property
    def coverage(self) -> float:
        """Share of the vocabulary that the file had."""
        return float(self.found.mean()) if len(self.found) else 0.0


def read_word_vectors(
    path: str | Path,
    vocabulary: Mapping[str, int],
    *,
    dim: int | None = None,
    seed: int = 0,
    fold_case: bool = True,
    spread: float = 0.25,
) -> WordVectors:
    """Vectors of a vocabulary's tokens; only their lines are parsed into numbers.

    Args:
        path: A text file, gzipped or not: a word and its numbers a line, with or without a first line that gives
            the number of words and of dimensions.
        vocabulary: Row of each token (`BagOfTokens.vocabulary`).
        dim: Dimensions to insist on; None takes the file's.
        seed: Seed of the random start of tokens that the file lacks.
        fold_case: Let a word in the file stand for its lower-case form where that form has no line of its own.
        spread: The random start is uniform between minus and plus this.
    """
    rows = {word.encode(): row for word, row in vocabulary.items()}
    how = np.zeros(len(rows), dtype=np.int8)
    lines = _VectorLines(Path(path), dim)
    vectors: np.ndarray | None = None
    for number, word, rest in lines:
        if vectors is None:
            rng = np.random.default_rng(seed)
            vectors = rng.uniform(-spread, spread, (len(rows), lines.dim)).astype(np.float32)
        row, kind = rows.get(word), _EXACT
        if row is None and fold_case:
            row, kind = rows.get(word.decode(errors="replace").lower().encode()), _FOLDED
        if row is not None and kind > how[row]:
            vectors[row] = lines.numbers(rest, number)
            how[row] = kind
    if vectors is None:
        raise DataError("no word vectors in it", where=str(path), remedy="Give a GloVe, word2vec or .vec text file")
    return WordVectors(vectors, how > _ABSENT)


class _VectorLines:
    """Goes through the lines of a vector file: number of the line, word, and the rest as bytes.

    Every line is checked to hold `dim` fields after its word, whether its word is wanted or not.
    """

    def __init__(self, path: Path, dim: int | None) -> None:
        self._path = path
        self.dim = dim or 0

    def __iter__(self) -> Iterator[tuple[int, bytes, bytes]]:
        try:
            with _opened(self._path) as file:
                yield from self._parts(file)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"damaged gzip ({error})", where=str(self._path), remedy="Fetch it again") from None
        except OSError as error:
            raise UserError(error.strerror or str(error), where=str(self._path), remedy="Check the path") from None

    def _parts(self, file: Iterable[bytes]) -> Iterator[tuple[int, bytes, bytes]]:
        promised, read = None, 0
        for number, line in enumerate(file, 1):
            text = line.replace(b"\t", b" ").rstrip(b" \r\n")
            if number == 1:
                promised = self._header(text.removeprefix(b"\xef\xbb\xbf").split())
                if promised is not None:
                    continue
            if not text:
                continue
            word, _, rest = text.partition(b" ")
            if rest.count(b" ") != self.dim - 1 or not rest:
                word, rest = self._uneven(text, number)
            read += 1
            yield number, word, rest
        if promised is not None and promised != read:
            raise DataError(
                f"{read} words where the first line promises {promised}",
                where=str(self._path),
                remedy="Fetch it again: it looks cut off",
            )

    def _header(self, fields: list[bytes]) -> int | None:
        """Number of words if the first line gives it; takes the dimensions from that line either way."""
        header = len(fields) == 2 and all(field.isdigit() for field in fields)
        given = int(fields[1]) if header else len(fields) - 1
        if self.dim and self.dim != given:
            raise DataError(f"{given} dimensions where {self.dim} were asked for", where=f"{self._path}:1")
        self.dim = given
        return int(fields[0]) if header else None

    def _uneven(self, text: bytes, number: int) -> tuple[bytes, bytes]:
        """Word and numbers of a line with doubled spaces, or whose word holds spaces as some published ones do."""
        fields = text.split()
        extra = len(fields) - 1 - self.dim
        if self.dim < 1 or extra < 0 or (extra > 0 and all(map(_is_number, fields[1 : -self.dim]))):
            raise DataError(
                f"{len(fields) - 1} numbers where {self.dim} belong",
                where=f"{self._path}:{number}",
                remedy="Mend or drop the line",
            )
        return b" ".join(fields[: -self.dim]), b" ".join(fields[-self.dim :])

    def numbers(self, rest: bytes, number: int) -> np.ndarray:
        """The parsed numbers of one line."""
        try:
            values = np.array(list(map(float, rest.split(b" "))), dtype=np.float32)
        except ValueError as error:
            raise DataError(str(error), where=f"{self._path}:{number}", remedy="Mend or drop the line") from None
        if not np.isfinite(values).all():
            raise DataError("not a finite number", where=f"{self._path}:{number}", remedy="Mend or drop the line")
        return values


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if zipped else path.open("rb")  # type: ignore[return-value]


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True

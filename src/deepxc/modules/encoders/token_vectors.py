"""Where an encoder's token vectors start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deepxc.errors import UserError
from deepxc.modules.encoders.stored import GIVEN

if TYPE_CHECKING:
    from scipy import sparse

    from deepxc.text.definition import TokenDefinition

Start = str | Path | np.ndarray | Callable[[Sequence[str]], np.ndarray]
"""A name of `STARTS`, a file of word vectors, an array with a row a token, or a function from tokens to such an array.

`random` draws short vectors that training is meant to overwrite, `kaiming` longer ones by the rule of He et al.,
`projection` unit Gaussian ones that keep the angles between texts, `spectral` factors the text-by-token matrix.
"""

STARTS = ("random", "kaiming", "projection", "spectral")


def start_vectors(
    start: Start,
    matrix: Callable[[], sparse.csr_matrix],
    n_tokens: int,
    definition: TokenDefinition | None,
    dim: int,
    seed: int,
    threads: int | None,
) -> np.ndarray:
    """Vectors for a vocabulary, `(n_tokens, dim)`, float32, in memory of their own.

    Args:
        start: Where they start.
        matrix: Makes the train rows as a bag of tokens; called only where they are needed.
        n_tokens: Rows.
        definition: The vocabulary; None where features were given, whose columns have no names.
        dim: Columns.
        seed: Seed.
        threads: Threads; None takes all cores.
    """
    if isinstance(start, np.ndarray):
        return _checked(start, n_tokens, dim)
    if isinstance(start, str) and start in STARTS:
        return _from_texts(start, matrix, n_tokens, dim, seed, threads)
    if start == GIVEN:
        raise UserError("these token vectors were an array or a function", where="start", remedy="Give it again")
    if definition is None:
        raise UserError(
            "feature columns have no words to look up", where="start", remedy=f"Use one of {', '.join(STARTS)}"
        )
    if isinstance(start, str | Path):
        return _from_file(Path(start), definition, dim, seed)
    return _checked(np.asarray(start(list(definition.vocabulary))), n_tokens, dim)


def _from_texts(
    start: str, matrix: Callable[[], sparse.csr_matrix], n_tokens: int, dim: int, seed: int, threads: int | None
) -> np.ndarray:
    from deepxc.text.word_vectors import random_projection, spectral

    if start == "spectral":
        return spectral(matrix(), dim, seed, threads=threads)
    if start == "projection":
        return random_projection(n_tokens, dim, seed, normalize=True, threads=threads)
    bound = np.float32(((6 if start == "kaiming" else 1) / dim) ** 0.5)
    return np.random.default_rng(seed).uniform(-bound, bound, (n_tokens, dim)).astype(np.float32)


def _from_file(path: Path, definition: TokenDefinition, dim: int, seed: int) -> np.ndarray:
    from deepxc.text.vector_files import read_word_vectors

    if not path.is_file():
        raise UserError(
            f"{str(path)!r} is neither a file of word vectors nor one of {', '.join(STARTS)}",
            where="start",
            remedy="Check the spelling or the path",
        )
    return read_word_vectors(path, definition.vocabulary, dim=dim, seed=seed).vectors


def _checked(vectors: np.ndarray, n_tokens: int, dim: int) -> np.ndarray:
    if vectors.shape != (n_tokens, dim):
        raise UserError(
            f"token vectors of shape {vectors.shape} where ({n_tokens}, {dim}) belong",
            where="start",
            remedy="Give a row for every token, in the order of the vocabulary, and set dim to their length",
        )
    if not np.isfinite(vectors).all():
        raise UserError("token vectors that are not finite", where="start", remedy="Mend or drop them")
    return np.array(vectors, dtype=np.float32, order="C")

"""Token vectors to start from, one row per column of the bag, and dense text vectors made of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from deepxc.errors import UserError
from deepxc.text.spectral import spectral
from deepxc.text.vector_files import WordVectors, read_word_vectors
from deepxc.threads import thread_count

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["WordVectors", "embed", "random_projection", "read_word_vectors", "spectral"]

_ROWS_AT_ONCE = 4_096
_FEW_ROWS = 512  # up to here scipy's one thread is done before the compiled loop would be loaded


def random_projection(
    n_tokens: int, dim: int, seed: int = 0, *, normalize: bool = False, threads: int | None = None
) -> np.ndarray:
    """Gaussian token vectors of unit variance: texts keep their angles, about, in `dim` numbers.

    Each block of rows has a stream of its own: a larger vocabulary under the same seed begins with the same rows, and
    the number of threads changes nothing.

    Args:
        n_tokens: Rows.
        dim: Columns.
        seed: Seed.
        normalize: Scale each row to unit length.
        threads: Threads; None takes all cores.
    """
    if n_tokens < 0 or dim < 1:
        raise UserError(f"no vectors of shape ({n_tokens}, {dim})", where="dim", remedy="Give sizes above 0")
    vectors = np.empty((n_tokens, dim), dtype=np.float32)

    def fill(start: int) -> None:
        block = vectors[start : start + _ROWS_AT_ONCE]
        full = np.random.default_rng([seed, start // _ROWS_AT_ONCE])
        full.standard_normal(out=block, dtype=np.float32)
        if normalize:
            block /= np.linalg.norm(block, axis=1, keepdims=True)

    with ThreadPoolExecutor(thread_count(threads)) as pool:
        list(pool.map(fill, range(0, n_tokens, _ROWS_AT_ONCE)))
    return vectors


def embed(
    X: sparse.csr_matrix, vectors: np.ndarray, *, normalize: bool = True, threads: int | None = None
) -> np.ndarray:
    """Dense text vectors: the weighted sum of each text's token vectors.

    Args:
        X: One row a text, one column a token.
        vectors: One row a token.
        normalize: Scale each text vector to unit length; a text without known tokens stays zero.
        threads: Threads; None takes all cores. The result does not depend on it.

    Returns:
        `(n_texts, dim)`, float32.
    """
    if X.shape[1] != vectors.shape[0]:
        raise UserError(f"{X.shape[1]} columns meet {vectors.shape[0]} token vectors", where="vectors")
    X, dense = X.tocsr(), np.ascontiguousarray(vectors, dtype=np.float32)
    if X.shape[0] <= _FEW_ROWS:
        out = np.asarray(X.astype(np.float32, copy=False) @ dense)
        return _to_unit_length(out) if normalize else out
    from deepxc.text.sparse_kernels import product_rows

    bounds, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False)
    values = np.ascontiguousarray(X.data, dtype=np.float32)
    out = np.empty((X.shape[0], dense.shape[1]), dtype=np.float32)

    def fill(start: int) -> None:
        stop = min(start + _ROWS_AT_ONCE, len(out))
        product_rows(bounds, indices, values, dense, out, start, stop)
        if normalize:
            _to_unit_length(out[start:stop])

    with ThreadPoolExecutor(thread_count(threads)) as pool:
        list(pool.map(fill, range(0, len(out), _ROWS_AT_ONCE)))
    return out


def _to_unit_length(rows: np.ndarray) -> np.ndarray:
    """Scale each row to unit length in place; zero rows stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    lengths[lengths == 0] = 1
    rows /= lengths[:, None]
    return rows

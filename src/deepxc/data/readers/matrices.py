"""One matrix from a file, sparse text, scipy's `.npz` or numpy's `.npy`, checked as it comes in."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepxc.data.dataset import Source
from deepxc.data.label_matrix import label_matrix, row_of
from deepxc.data.sparse_text import read_sparse_text
from deepxc.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from scipy import sparse


@dataclass(frozen=True)
class FileMatrix:
    """A matrix and where its rows came from."""

    matrix: sparse.csr_matrix
    source: Source


def read_features(path: Path) -> FileMatrix:
    """A feature matrix; every value must be finite."""
    if _stored(path):
        matrix = _load(path)
        source = Source(str(path), first_line=0)
        wrong = np.flatnonzero(~np.isfinite(matrix.data))
        if len(wrong):
            where = source.at(row_of(matrix.indptr, int(wrong[0])))
            raise DataError("a feature value is not finite", where=where, remedy="Give it a finite value")
        return FileMatrix(matrix, source)
    text = read_sparse_text(path)
    return FileMatrix(text.matrix, _source(path, text.lines))


def read_label_matrix(path: Path) -> FileMatrix:
    """A label matrix in canonical form."""
    if _stored(path):
        matrix, source = _load(path), Source(str(path), first_line=0)
    else:
        text = read_sparse_text(path, signed=False)
        matrix, source = text.matrix, _source(path, text.lines)
    Y = label_matrix(matrix.indptr, matrix.indices, matrix.data, matrix.shape[1], source.at)
    return FileMatrix(Y, source)


def _source(path: Path, lines: np.ndarray) -> Source:
    """Lines by their first where they are consecutive, which they are unless there are comments."""
    if not len(lines) or lines[-1] - lines[0] + 1 == len(lines):
        return Source(str(path), first_line=int(lines[0]) if len(lines) else 2)
    return Source(str(path), lines)


def _stored(path: Path) -> bool:
    return path.name.endswith((".npz", ".npy"))


def _load(path: Path) -> sparse.csr_matrix:
    """A stored matrix as CSR float32; pickled contents are refused by numpy itself."""
    from scipy import sparse

    try:
        if path.name.endswith(".npy"):
            dense = np.load(path, allow_pickle=False)
            if dense.ndim != 2:
                raise DataError(f"{dense.ndim}-dimensional array", where=str(path), remedy="Store rows x columns")
            matrix = sparse.csr_matrix(dense)
        else:
            matrix = sparse.csr_matrix(sparse.load_npz(path))
        matrix.check_format(full_check=True)
        return matrix.astype(np.float32)
    except DataError:
        raise
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as fault:
        reason = str(fault).split("\n")[0].rstrip(".")
        raise DataError(
            f"not a readable sparse matrix ({reason})", where=str(path), remedy="Write it with scipy.sparse.save_npz"
        ) from None

"""Embeddings of many texts on disk, for encoders that take minutes over them: mapped when they are there already.

A file belongs to one encoder with its present weights and one list of texts. Rows are written block by block, longest
texts first; a process that was killed goes on with the block that was under way.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deepxc.modules.encoders.chosen_rows import ChosenRows
from deepxc.modules.encoders.encoding import encode

if TYPE_CHECKING:
    from deepxc.modules.protocols import Inputs

logger = logging.getLogger(__name__)

_BLOCK = 8_192
_TYPE = np.dtype("<f2")


def encode_cached(encoder: Any, inputs: Inputs, folder: str | Path, threads: int | None = None) -> np.ndarray:  # noqa: ANN401
    """What `encode` gives, in half precision, as a read-only map of a file in this folder.

    Args:
        encoder: A `StoredEncoder`; its weights are part of the file's name.
        inputs: What its `learn` or `read` gave; their content is too.
        folder: Where the files are, made if missing.
        threads: Threads; None takes all cores.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    n, dim = len(inputs), encoder.dim
    if n == 0:
        return np.empty((0, dim), _TYPE)
    name = fingerprint(encoder, inputs)
    path, progress = folder / f"{name}.f16", folder / f"{name}.json"
    done = _blocks_done(path, progress, n * dim * _TYPE.itemsize)
    lengths = getattr(inputs, "lengths", None)
    order = np.arange(n) if lengths is None else np.argsort(-np.asarray(lengths), kind="stable")
    starts = range(done * _BLOCK, n, _BLOCK)
    if starts:
        logger.info("%d of %d texts are encoded into %s", n - done * _BLOCK, n, path)
        table = np.memmap(path, _TYPE, "r+" if path.exists() else "w+", shape=(n, dim))
        for start in starts:
            rows = order[start : start + _BLOCK]
            table[rows] = encode(encoder, ChosenRows(inputs, rows), threads=threads)
            table.flush()
            done += 1
            _note(progress, done)
        del table
    return np.memmap(path, _TYPE, "r", shape=(n, dim))


def fingerprint(encoder: Any, inputs: Inputs) -> str:  # noqa: ANN401
    """The same for the same weights, settings and texts."""
    digest = hashlib.sha256(json.dumps(encoder.settings(), sort_keys=True, default=str).encode())
    for name, tensor in sorted(encoder.state().items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensor).data)
    fields: Any = dataclasses.fields(inputs)  # pyrefly: ignore[bad-argument-type] (inputs of our encoders are such)
    for field in fields:
        value: Any = getattr(inputs, field.name)
        parts = [value] if not hasattr(value, "indptr") else [value.indptr, value.indices, value.data]
        for part in parts:
            whole = isinstance(part, np.ndarray)
            digest.update(np.ascontiguousarray(part).data if whole else str(part).encode())
    return digest.hexdigest()[:24]


def _blocks_done(path: Path, progress: Path, size: int) -> int:
    if not progress.exists() or not path.exists() or path.stat().st_size != size:
        path.unlink(missing_ok=True)
        return 0
    try:
        return int(json.loads(progress.read_text(encoding="utf-8"))["blocks"])
    except (ValueError, KeyError):
        return 0


def _note(progress: Path, blocks: int) -> None:
    fresh = progress.with_suffix(".new")
    fresh.write_text(json.dumps({"blocks": blocks}), encoding="utf-8")
    fresh.replace(progress)

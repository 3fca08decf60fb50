"""Named arrays in one safetensors file: written through the library, read back as a memory map.

The library copies a tensor when it hands it out as NumPy; a model that is opened to answer one query should touch
only the pages it needs, so reading maps the file and cuts views out of it by the header's offsets.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save_file
from scipy import sparse

from deepxc.errors import ModelFolderError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# What a name stands for: a NumPy array or a SciPy CSR matrix. A caller knows which it wrote.
Array = Any

_DTYPES = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "U16": np.uint16,
    "I16": np.int16,
    "U32": np.uint32,
    "I32": np.int32,
    "U64": np.uint64,
    "I64": np.int64,
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
}
_CSR_PARTS = ("data", "indices", "indptr", "shape")


def write_tensors(path: Path, tensors: Mapping[str, Array]) -> None:
    """Write named arrays; a sparse matrix becomes four of them, `name.data` and so on."""
    flat: dict[str, np.ndarray] = {}
    for name, value in tensors.items():
        if sparse.issparse(value):
            csr = sparse.csr_matrix(value)
            parts = (csr.data, csr.indices, csr.indptr, np.asarray(csr.shape, np.int64))
            flat |= {f"{name}.{part}": np.ascontiguousarray(a) for part, a in zip(_CSR_PARTS, parts, strict=True)}
        else:
            flat[name] = np.ascontiguousarray(value)
    save_file(flat, path)


def read_tensors(path: Path, *, mmap: bool = True) -> dict[str, Array]:
    """Read named arrays, by default as read-only views of the mapped file."""
    flat = _views(path, mmap=mmap)
    tensors: dict[str, Array] = {}
    for name in flat:
        stem, _, part = name.rpartition(".")
        if part == "shape" and all(f"{stem}.{p}" in flat for p in _CSR_PARTS):
            data, indices, indptr, shape = (flat[f"{stem}.{p}"] for p in _CSR_PARTS)
            tensors[stem] = sparse.csr_matrix((data, indices, indptr), shape=tuple(shape.tolist()), copy=False)
    taken = {f"{stem}.{part}" for stem in tensors for part in _CSR_PARTS}
    return tensors | {name: view for name, view in flat.items() if name not in taken}


def _views(path: Path, *, mmap: bool) -> dict[str, np.ndarray]:
    broken = ModelFolderError(
        "not a whole safetensors file", where=str(path), remedy="Save or copy the model folder again"
    )
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
        length = int.from_bytes(head, "little")
        if len(head) < 8 or length > size - 8:
            raise broken
        try:
            header = json.loads(file.read(length))
        except ValueError as fault:
            raise broken from fault
    if size == 8 + length:
        raw = np.empty(0, np.uint8)
    else:
        raw = (
            np.memmap(path, np.uint8, "r", offset=8 + length)
            if mmap
            else np.fromfile(path, np.uint8, offset=8 + length)
        )
    views = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        start, stop = entry["data_offsets"]
        if stop > len(raw) or entry["dtype"] not in _DTYPES:
            raise broken
        views[name] = np.asarray(raw[start:stop]).view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return views

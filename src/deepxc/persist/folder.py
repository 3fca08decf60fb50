"""The model folder: `manifest.json` beside one directory of data, and nothing half-written under a final name.

A save writes a new data directory, then replaces the manifest in one step, then removes the data that the old
manifest pointed to. Whatever stops a save, the manifest in place and all that it lists are whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepxc.errors import ModelFolderError, UserError
from deepxc.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

MANIFEST = "manifest.json"
FORMAT = "deepxc-model"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Manifest:
    """What a model is, in words and numbers; everything else in the folder is its data.

    Attributes:
        system: Class name of the system that reads this folder.
        settings: The parameters of its constructor.
        data: Fingerprint and sizes of the train data.
        metrics: Figures measured when the model was trained, if any.
        facts: What else the system wants to tell or to remember.
    """

    system: str
    settings: dict[str, Any]
    data: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenFolder:
    """A model folder that has been checked: its manifest and where its data lies."""

    manifest: Manifest
    data: Path
    library_version: str
    bytes: int


def save_folder(path: str | Path, manifest: Manifest, write: Callable[[Path], None]) -> None:
    """Save a model: `write(directory)` puts the data files into a fresh directory.

    Args:
        path: The model folder; made if missing, and if it holds a model already that one is replaced at the end.
        manifest: What to say of the model.
        write: Called once with an empty directory.
    """
    root = Path(path)
    if root.exists() and (not root.is_dir() or (any(root.iterdir()) and not _is_ours(root))):
        raise UserError("exists and is not a model folder", where=str(root), remedy="Give a new or an empty folder")
    data = root / f"data-{secrets.token_hex(4)}"
    try:
        data.mkdir(parents=True)
        write(data)
        _replace_manifest(root, manifest, data)
    except BaseException as fault:
        shutil.rmtree(data, ignore_errors=True)
        (root / f"{MANIFEST}.new").unlink(missing_ok=True)
        if isinstance(fault, OSError):
            raise UserError(
                f"the model could not be saved ({fault.strerror or fault})",
                where=str(root),
                remedy="Free some space or give another folder; a model that was there before is still whole",
            ) from fault
        raise
    for old in root.glob("data-*"):
        if old != data:
            shutil.rmtree(old, ignore_errors=True)


def open_folder(path: str | Path, *, verify: bool = True) -> OpenFolder:
    """Check a model folder and say where its data is.

    Args:
        path: The model folder.
        verify: Compare the checksum of every file, not only its size. Costs one pass over the data.
    """
    root = Path(path)
    where = str(root / MANIFEST)
    if not root.is_dir():
        raise ModelFolderError("there is no model folder", where=str(root), remedy="Check the path, or train a model")
    try:
        document = json.loads((root / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelFolderError(
            f"not a model folder: it has no {MANIFEST}",
            where=str(root),
            remedy="Give the folder that `save` wrote",
        ) from None
    except ValueError as fault:
        raise ModelFolderError(f"damaged ({fault})", where=where, remedy="Save or copy the model again") from fault
    _check_version(document, where)
    if document.get("checksum") != _checksum(document):
        raise ModelFolderError(
            "its checksum is wrong: it was edited or damaged",
            where=where,
            remedy="Restore the file, or train and save the model again",
        )
    data = root / document["directory"]
    for name, entry in document["files"].items():
        _check_file(data / name, entry, verify=verify)
    known = {key: document[key] for key in ("system", "settings", "data", "metrics", "facts")}
    size = sum(entry["bytes"] for entry in document["files"].values())
    return OpenFolder(Manifest(**known), data, document["deepxc_version"], size)


def _is_ours(root: Path) -> bool:
    """Whether a folder holds nothing but what saves write, whole or broken off."""
    return all(
        entry.name in (MANIFEST, f"{MANIFEST}.new") or entry.name.startswith("data-") for entry in root.iterdir()
    )


def _replace_manifest(root: Path, manifest: Manifest, data: Path) -> None:
    files = {}
    for file in sorted(p for p in data.rglob("*") if p.is_file()):
        _sync(file)
        files[file.relative_to(data).as_posix()] = {"bytes": file.stat().st_size, "sha256": _digest(file)}
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "deepxc_version": __version__,
        **manifest.__dict__,
        "directory": data.name,
        "files": files,
    }
    document["checksum"] = _checksum(document)
    fresh = root / f"{MANIFEST}.new"
    fresh.write_text(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    _sync(fresh)
    fresh.replace(root / MANIFEST)
    _sync(root)


def _check_version(document: dict[str, Any], where: str) -> None:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFolderError(
            "not the manifest of a deepxc model", where=where, remedy="Give a folder that `save` wrote"
        )
    version = document.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ModelFolderError(
            f"format version {version} is newer than {FORMAT_VERSION}, the newest that deepxc {__version__} reads",
            where=where,
            remedy=f"Upgrade deepxc (the model was written by {document.get('deepxc_version')})",
        )


def _check_file(path: Path, entry: dict[str, Any], *, verify: bool) -> None:
    size = path.stat().st_size if path.is_file() else None
    if size is None:
        raise ModelFolderError("missing from the model folder", where=str(path), remedy="Copy the whole folder again")
    if size != entry["bytes"]:
        raise ModelFolderError(
            f"{size} bytes where the manifest says {entry['bytes']}: truncated or edited",
            where=str(path),
            remedy="Copy the whole folder again",
        )
    if verify and _digest(path) != entry["sha256"]:
        raise ModelFolderError(
            "its content does not match the manifest's checksum: edited or damaged",
            where=str(path),
            remedy="Copy the whole folder again",
        )


def _checksum(document: dict[str, Any]) -> str:
    body = {key: value for key, value in document.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    """Ask the disk to keep what was written before the next step is taken."""
    with contextlib.suppress(OSError):  # some file systems cannot sync a directory; the order of writes still holds
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

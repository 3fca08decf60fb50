"""Shortlisters on disk: a small JSON file that says which and with what settings, arrays, and indexes in folders."""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepxc.errors import ModelFolderError, UserError

if TYPE_CHECKING:
    from deepxc.modules.protocols import Shortlister

FILE = "shortlister.json"
ARRAYS = "shortlister.safetensors"
_VERSION = 1

_CLASSES = {
    "centroids": ("deepxc.modules.shortlists.centroids", "Centroids"),
    "texts": ("deepxc.modules.shortlists.texts", "Texts"),
    "token_texts": ("deepxc.modules.shortlists.token_texts", "TokenTexts"),
    "hybrid": ("deepxc.modules.shortlists.hybrid", "Hybrid"),
    "classifiers": ("deepxc.modules.shortlists.classifiers", "ClassifierSearch"),
    "clusters": ("deepxc.modules.shortlists.cluster_beam", "ClusterBeam"),
    "label_tree": ("deepxc.modules.shortlists.label_tree", "TreeBeam"),
    "uniform": ("deepxc.modules.shortlists.uniform", "Uniform"),
    "unigram": ("deepxc.modules.shortlists.unigram", "Unigram"),
    "in_batch": ("deepxc.modules.shortlists.in_batch", "InBatch"),
}


@dataclass(frozen=True)
class Description:
    """What the JSON file says."""

    kind: str
    settings: dict[str, Any] = field(default_factory=dict)
    n_labels: int = 0
    format_version: int = _VERSION

    def write(self, folder: Path) -> None:
        """Save into an existing folder."""
        text = json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"
        (Path(folder) / FILE).write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, folder: Path, kind: str | None = None) -> Description:
        """Read and check; of the given kind, if one is given."""
        path = Path(folder) / FILE
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ModelFolderError("no saved shortlister here", where=str(path), remedy="Save it again") from None
        except (OSError, ValueError) as error:
            raise damaged(path, str(error)) from error
        if not isinstance(found, dict) or not isinstance(found.get("format_version"), int):
            raise damaged(path, "no format version")
        if found["format_version"] > _VERSION:
            raise ModelFolderError(
                f"shortlister format {found['format_version']} is newer than the {_VERSION} known here",
                where=str(path),
                remedy="Update deepxc",
            )
        try:
            description = cls(**found)
        except TypeError as error:
            raise damaged(path, str(error)) from error
        if description.kind not in _CLASSES or kind not in {None, description.kind}:
            raise damaged(path, f"kind {description.kind!r}")
        if not isinstance(description.settings, dict) or not isinstance(description.n_labels, int):
            raise damaged(path, "settings or n_labels")
        return description

    def make(self, known: type, folder: Path) -> Any:  # noqa: ANN401 - an instance of `known`
        """A shortlister of the class with the saved settings, not fitted."""
        try:
            return known(**self.settings)
        except (TypeError, UserError) as error:
            raise damaged(Path(folder) / FILE, f"settings: {error}") from error


def open_shortlister(folder: Path) -> Shortlister:
    """Open a saved shortlister of any kind."""
    module, name = _CLASSES[Description.read(folder).kind]
    return getattr(importlib.import_module(module), name).read_from(folder)


def damaged(path: Path, reason: str) -> ModelFolderError:
    """The error for a file that is there but cannot be a shortlister's."""
    return ModelFolderError(f"damaged shortlister ({reason})", where=str(path), remedy="Save it again")


def not_fitted(what: object) -> UserError:
    """The error for using a shortlister before it has learnt anything."""
    return UserError(f"{type(what).__name__} is not fitted", where="shortlister", remedy="Call fit first")

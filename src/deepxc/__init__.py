"""Extreme classification of short text: from raw strings to the few right labels out of millions.

Public names are imported on first use, so that `import deepxc` and the command line start at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from deepxc.version import __version__

if TYPE_CHECKING:
    from deepxc.data.dataset import Dataset, Split
    from deepxc.data.label_space import LabelSpace
    from deepxc.errors import DeepxcError, UserError
    from deepxc.predict.topk import TopK
    from deepxc.systems.astec import Astec
    from deepxc.systems.decaf import Decaf
    from deepxc.systems.dexa import Dexa
    from deepxc.systems.estimator import load
    from deepxc.systems.inception_xml import InceptionXML, InceptionXMLPlus
    from deepxc.systems.mach import Mach
    from deepxc.systems.nearest import NearestLabels

_HOME = {
    "Astec": "deepxc.systems.astec",
    "Dataset": "deepxc.data.dataset",
    "Decaf": "deepxc.systems.decaf",
    "DeepxcError": "deepxc.errors",
    "InceptionXML": "deepxc.systems.inception_xml",
    "InceptionXMLPlus": "deepxc.systems.inception_xml",
    "Dexa": "deepxc.systems.dexa",
    "LabelSpace": "deepxc.data.label_space",
    "Mach": "deepxc.systems.mach",
    "NearestLabels": "deepxc.systems.nearest",
    "Split": "deepxc.data.dataset",
    "TopK": "deepxc.predict.topk",
    "UserError": "deepxc.errors",
    "load": "deepxc.systems.estimator",
}

__all__ = [
    "Astec",
    "Dataset",
    "Decaf",
    "DeepxcError",
    "Dexa",
    "InceptionXML",
    "InceptionXMLPlus",
    "LabelSpace",
    "Mach",
    "NearestLabels",
    "Split",
    "TopK",
    "UserError",
    "__version__",
    "load",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'deepxc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

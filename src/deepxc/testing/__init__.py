"""Checks that any implementation of one of our protocols must pass, for your own parts as for ours.

Each check raises AssertionError with one sentence on what is wrong. In a test:

    from deepxc.testing import check_encoder

    def test_my_encoder(split):
        check_encoder(MyEncoder, split)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepxc.testing.classifiers import check_classifier
    from deepxc.testing.encoders import check_encoder
    from deepxc.testing.shortlists import check_shortlister
    from deepxc.testing.surrogates import check_surrogate
    from deepxc.testing.transfers import check_transfer

__all__ = ["check_classifier", "check_encoder", "check_shortlister", "check_surrogate", "check_transfer"]

_HOME = {
    "check_classifier": "classifiers",
    "check_encoder": "encoders",
    "check_shortlister": "shortlists",
    "check_surrogate": "surrogates",
    "check_transfer": "transfers",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)

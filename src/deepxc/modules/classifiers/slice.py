"""Slice: one-versus-all classifiers on fixed features, taught with the labels whose centroids are nearest.

It needs no code of its own: it is the framework's parts put together.
"""

from __future__ import annotations

from typing import NamedTuple

from deepxc.modules.classifiers.one_vs_all import OneVsAll
from deepxc.modules.shortlists.centroids import Centroids
from deepxc.modules.surrogates.unsupervised import Unsupervised
from deepxc.modules.transfers.freeze import Freeze


class SliceParts(NamedTuple):
    """The four modules of Slice, in order."""

    surrogate: Unsupervised
    shortlister: Centroids
    transfer: Freeze
    classifier: OneVsAll


def slice_parts() -> SliceParts:
    """Features are given and stay; negatives are the labels of the nearest means, one mean a label."""
    return SliceParts(Unsupervised(), Centroids(head_threshold=None), Freeze(), OneVsAll())

"""What a trained model is made of and what an answer takes, counted rather than timed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepxc.modules.tables import RowTable
from deepxc.systems.clustered_member import ClusteredMember

if TYPE_CHECKING:
    from deepxc.systems.estimator import XmcEstimator


def parameter_counts(model: XmcEstimator) -> dict[str, int]:
    """Numbers that training chose, of all learners together; nothing for a system without learners.

    Token and label vectors grow with the data; the rest, which papers call the size of a model, is `layers`.
    """
    members: list[Any] = getattr(model, "members_", [])
    counts = {"token vectors": 0, "layers": 0, "label vectors": 0}
    for member in members:
        for part in member.encoder.modules():
            if isinstance(part, RowTable):
                counts["token vectors"] += part.weight.numel()
        blocks = [member.block, getattr(member, "meta_block", None)]
        small = [part for part in (member.encoder, *blocks) if part is not None]
        counts["layers"] += sum(parameter.numel() for part in small for parameter in part.parameters())
        counts["label vectors"] += member.vectors.size
        if isinstance(member, ClusteredMember):
            counts["label vectors"] += member.meta_vectors.size
    return counts if members else {}


def flops_per_text(model: XmcEstimator, text: str) -> dict[str, int]:
    """Floating-point operations for one text, as PyTorch counts them; a multiplication and an addition are two.

    Products of matrices are counted, look-ups and what is done number by number are not. Label vectors count as if
    each candidate were scored: all labels, or those of the shortlisted clusters.
    """
    members: list[Any] = getattr(model, "members_", [])
    counts = {"encoder": 0, "classifiers": 0}
    for member in members:
        inputs = member.encoder.read([text])
        with torch.no_grad():
            counts["encoder"] += _counted(lambda: member.encoder(inputs.take(np.array([0]))))  # noqa: B023
            features = member.encoder(inputs.take(np.array([0])))
            counts["classifiers"] += _counted(lambda: _score(member, features))  # noqa: B023
    return counts if members else {}


def _score(member: Any, features: torch.Tensor) -> None:
    """What `search` does, as products of matrices that can be counted."""
    vectors = torch.from_numpy(member.vectors[:, :-1])
    final = member.block(features)
    if isinstance(member, ClusteredMember):
        torch.mm(member.meta_block(features), torch.from_numpy(member.meta_vectors[:, :-1]).T)
        vectors = vectors[: min(len(vectors), member.top * member.groups.largest)]
    torch.mm(final, vectors.T)


def _counted(work: Any) -> int:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()

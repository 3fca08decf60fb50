"""How good a learner is on rows that it does not learn from, while it learns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse

from deepxc.data.checks.reciprocal import own_labels, reversed_pairs
from deepxc.modules.encoders.encoding import encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepxc.data.dataset import Split
    from deepxc.modules.classifiers.one_vs_all import OneVsAll
    from deepxc.training.synchronised import SynchronisedLearner

_MOST_ROWS = 2_000
_CELLS = 1 << 24  # scores held at once


def judged(held: Split, train: Split) -> Split:
    """Held-out documents as documents are judged: neither themselves nor a train pair turned round counts.

    Both leave the labels and become filter pairs, as in the test parts of data sets whose labels are documents.
    """
    own = own_labels(held)
    known = np.flatnonzero(own >= 0)
    pairs = np.concatenate((np.column_stack((known, own[known])), reversed_pairs(held, train, own)))
    drop = sparse.csr_matrix((np.ones(len(pairs), np.float32), pairs.T), shape=held.Y.shape)
    kept = sparse.csr_matrix(held.Y - held.Y.multiply(drop > 0))
    kept.eliminate_zeros()
    return replace(held, Y=kept, filter_pairs=np.concatenate((held.filter_pairs, pairs)))


def precision_of(
    encoder: Any,
    block: torch.nn.Module,
    classifier: OneVsAll,
    held: Split,
    threads: int,
) -> Callable[[object], dict[str, float]]:
    """What measures P@1 of the classifiers on held-out rows, every label scored."""
    few = held.take(np.arange(min(len(held), _MOST_ROWS)))
    inputs = encoder.read(few.inputs) if len(few) else None

    def measure(_learner: object) -> dict[str, float]:
        if inputs is None:
            return {"P@1": 0.0}
        device = classifier.table.weight.device
        weights = torch.from_numpy(classifier.vectors()).to(device)
        bias = 0.0 if classifier.bias is None else classifier.bias.weight[:, 0]
        final = block(torch.from_numpy(encode(encoder, inputs, threads=threads)).to(device))
        step = max(1, _CELLS // len(weights))
        best = torch.cat([(part @ weights.T + bias).argmax(1) for part in final.split(step)]).cpu().numpy().copy()
        hits = np.asarray(few.Y[np.arange(len(few)), best]).ravel() > 0
        return {"P@1": 100 * float(hits.mean())}

    return measure


def precision_of_shortlists(
    learner: SynchronisedLearner, top: int, held: Split, threads: int
) -> Callable[[object], dict[str, float]]:
    """What measures P@1 of a learner with two heads on held-out rows, and the recall of its shortlists."""
    few = held.take(np.arange(min(len(held), _MOST_ROWS)))
    inputs = learner.encoder.read(few.inputs) if len(few) else None  # pyrefly: ignore[not-callable]

    def measure(_learner: object) -> dict[str, float]:
        if inputs is None:
            return {"P@1": 0.0}
        encoder: Any = learner.encoder
        features = torch.from_numpy(encode(encoder, inputs, threads=threads)).to(learner.meta.classifier.table.weight)
        truth_of: Any = few.Y
        hits = found = 0
        step = max(1, _CELLS // few.Y.shape[1])
        for start in range(0, len(few), step):
            part = features[start : start + step]
            truth = truth_of[start : start + step].toarray() > 0
            best = torch.topk(learner.meta.scores(learner.meta.block(part)), top, dim=1).indices.cpu().numpy()
            candidates = learner.groups.candidates(best)
            listed = np.zeros((len(part), truth.shape[1] + 1), np.bool_)
            np.put_along_axis(listed, candidates.astype(np.int64) % (truth.shape[1] + 1), True, axis=1)
            scores = learner.extreme.scores(learner.extreme.block(part)).cpu().numpy()
            chosen = np.where(listed[:, :-1], scores, -np.inf).argmax(axis=1)
            hits += truth[np.arange(len(part)), chosen].sum()
            found += (truth & listed[:, :-1]).sum()
        return {"P@1": 100 * float(hits) / len(few), "shortlist recall": 100 * float(found) / max(1, few.Y.nnz)}

    return measure

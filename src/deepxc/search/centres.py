"""Spherical k-means in few rounds: the centres of inverted lists."""

from __future__ import annotations

import faiss
import numpy as np

from deepxc.search.blocks import nearest
from deepxc.search.faiss_index import TRAINABLE, own_parts
from deepxc.search.short_codes import learn_codes

_ROUNDS = 4
_SCORED = 3  # centres scored exactly, for each list that is read


def list_centres(drawn: np.ndarray, count: int, seed: int, threads: int) -> faiss.Index:
    """Centres of length 1, in the index that finds the nearest to a query.

    A centre that no vector is nearest to starts anew at a vector drawn at random.
    """
    rng = np.random.default_rng(seed)
    centres = _unit(drawn[np.sort(rng.choice(len(drawn), count, replace=False))])
    for _ in range(_ROUNDS):
        index = _as_index(centres)
        chosen = nearest(index, drawn, threads)
        order = np.argsort(chosen, kind="stable")
        filled, starts = np.unique(chosen[order], return_index=True)
        centres = drawn[rng.choice(len(drawn), count)]
        centres[filled] = np.add.reduceat(drawn[order], starts, axis=0)
        centres = _unit(centres)
    return _as_index(centres)


def quick_lookup(centres: faiss.Index, code_dims: int, seed: int) -> faiss.Index:
    """The centres as an index that reads codes of all and scores the likeliest: a third of the time of scoring all.

    A few centres are not worth the codes and stay as they are.
    """
    if centres.ntotal < TRAINABLE:
        return centres
    codes = faiss.IndexPQFastScan(centres.d, centres.d // code_dims, 4, faiss.METRIC_INNER_PRODUCT)
    rows = centres.reconstruct_n(0, centres.ntotal)
    learn_codes(codes, rows, seed)
    codes.add(rows)
    quick = faiss.IndexRefine(codes, centres)
    quick.k_factor = _SCORED
    return own_parts(quick, codes, centres)


def _as_index(centres: np.ndarray) -> faiss.Index:
    index = faiss.IndexFlatIP(centres.shape[1])
    index.add(centres)
    return index


def _unit(rows: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)

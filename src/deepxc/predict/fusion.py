"""Voices that err differently add up: scores of several sources become one ranked answer.

Each source is turned into a distribution over its own candidates (a softmax at its own temperature), so that scores
of different scales can be averaged. Nothing here grows with texts x labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepxc.modules.shortlists.row_blocks import over_rows

if TYPE_CHECKING:
    from scipy import sparse


def softmax_rows(scores: np.ndarray, temperature: float) -> np.ndarray:
    """Softmax of each row; places with score -inf get 0, and so does a row that has no other."""
    from deepxc.predict.kernels_fusion import softmax_into

    shares = np.empty(scores.shape, np.float32)
    softmax_into(np.asarray(scores, np.float32), np.float32(temperature), shares)
    return shares


def blend_with_neighbours(
    label_ids: np.ndarray,
    label_shares: np.ndarray,
    text_ids: np.ndarray,
    text_shares: np.ndarray,
    Y: sparse.csr_matrix,
    *,
    k: int,
    allowed: np.ndarray | None = None,
    threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """The k best labels of each text by what the labels themselves and the nearest train texts say together.

    Args:
        label_ids: Candidate labels of each text, -1 where there is none, shape (n, a).
        label_shares: Their shares (`softmax_rows` of their scores), times what the labels' own voice weighs.
        text_ids: Nearest train texts, -1 where there is none, shape (n, b).
        text_shares: Their shares, times what their voice weighs; each of a text's labels gets the whole of it.
        Y: Labels of the train texts.
        k: Labels wanted.
        allowed: True for each label that may be an answer; None allows all.
        threads: Threads for a batch.

    Returns:
        Ids (int64, -1 where a row has fewer than k) and scores (float32), best first, ties to the smaller id.
    """
    from deepxc.predict.kernels_fusion import blend_votes

    ids = np.empty((len(label_ids), k), np.int64)
    scores = np.empty((len(label_ids), k), np.float32)
    votes = (
        np.asarray(label_ids, np.int64),
        np.asarray(label_shares, np.float32),
        np.asarray(text_ids, np.int64),
        np.asarray(text_shares, np.float32),
    )
    mask = np.empty(0, np.bool_) if allowed is None else allowed

    def blend(start: int, stop: int) -> None:
        part = slice(start, stop)
        ours, our_shares, theirs, their_shares = (vote[part] for vote in votes)
        # Y as it is: a copy of a number for each train text would cost more than the whole answer
        blend_votes(ours, our_shares, theirs, their_shares, Y.indptr, Y.indices, mask, ids[part], scores[part])

    over_rows(len(ids), threads, blend)
    return ids, scores

"""InceptionXML+ answers, computed again from the saved tensors by the paper's equations, in float64 and plain loops."""

import numpy as np
import pytest
from scipy.special import erf

from deepxc import InceptionXMLPlus
from deepxc.systems.fused_answers import _CANDIDATES as CANDIDATES

STRIDE = 4


@pytest.fixture(scope="module")
def model(zipf):
    small = {"word_dim": 64, "channels": 4, "length": 6, "batch": 64, "clusters": 20, "shortlist": 5}
    return InceptionXMLPlus("paper", **small, epochs=3, rate=0.02, stop_words="none", threads=1).fit(
        zipf.train.take(np.arange(600))
    )


def gelu(x):
    return x * 0.5 * (1 + erf(x / np.sqrt(2)))


def settle(x, state, stage):
    """GELU and batch normalisation with the statistics of training, channels last."""
    mean, variance = (state[f"norms.{stage}.running_{name}"].astype(float) for name in ("mean", "var"))
    scale, shift = (state[f"norms.{stage}.{name}"].astype(float) for name in ("weight", "bias"))
    return (gelu(x) - mean) / np.sqrt(variance + 1e-5) * scale + shift


def convolve(x, filters, *, circular):
    """Windows along the first axis of (positions, channels)."""
    out_channels, _, width = filters.shape
    around = (width - STRIDE) // 2 if circular else 0
    starts = range(-around, len(x) - around, STRIDE) if circular else range(0, len(x) - width + 1, STRIDE)
    return np.array(
        [
            [sum(filters[c, :, t] @ x[(start + t) % len(x)] for t in range(width)) for c in range(out_channels)]
            for start in starts
        ]
    )


def features_of(encoder, text):
    """h_f of a text."""
    state = {name: value.astype(float) for name, value in encoder.state().items()}
    read = encoder.read([text])
    E = np.zeros((encoder.enhancement.length, encoder.word_dim))
    for place in range(int(read.lengths[0])):
        E[place] = state["table.weight"][read.ids[0, place]]
    root = np.sqrt(encoder.word_dim)
    of_words, of_dimensions = state["enhancement.amounts"]
    attended = E + of_words * (E @ E.T / root) @ (E @ state["enhancement.of_words"])
    attended = attended + of_dimensions * ((attended.T @ E / root) @ (E.T @ state["enhancement.of_dimensions"])).T
    enhanced = attended.T @ state["enhancement.projection.weight"].T + state["enhancement.projection.bias"]
    x = settle(enhanced, state, 0)
    branches = [convolve(x, state[f"branches.filters.{i}"], circular=True) for i in range(3)]
    x = settle(np.concatenate(branches, axis=1), state, 1)
    return settle(convolve(x, state["last.filters.0"], circular=False), state, 2).ravel()


def head(block, vectors, h):
    """W (relu(R h) + h)."""
    final = np.maximum(block.matrix().astype(float) @ h, 0) + h
    return vectors[:, :-1].astype(float) @ final + vectors[:, -1]


def test_answers_follow_from_the_equations(model, zipf):
    member = model.members_[0]
    texts = [*list(zipf.test.texts)[:6], "", "unheard of words only", "baba " * 40]
    top = model.predict_topk(texts, 5)
    for i, text in enumerate(texts):
        h = features_of(member.encoder, text)
        of_clusters = head(member.meta_block, member.meta_vectors, h)
        best = np.argsort(-of_clusters)[: member.top]
        listed = np.flatnonzero(np.isin(member.groups.clusters, best))
        scores = head(member.block, member.vectors, h)[listed]
        order = np.argsort(-scores, kind="stable")[:5]
        assert top.ids[i].tolist() == listed[order].tolist(), text
        shares = np.exp(scores - scores.max())
        kept = np.sort(shares)[::-1][:CANDIDATES]  # of more candidates than that, the rest has no share
        np.testing.assert_allclose(top.scores[i], shares[order] / kept.sum(), rtol=1e-3)


def test_the_heads_are_bounded(model):
    for block in (model.members_[0].block, model.members_[0].meta_block):
        assert np.linalg.norm(block.matrix().astype(float), 2) <= 1 + 1e-6

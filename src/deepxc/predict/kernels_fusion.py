"""The compiled inner loop of `fusion`."""

from __future__ import annotations

import numpy as np
from numba import njit

from deepxc.search.kernels_postings import keep_best


@njit(cache=True, nogil=True)
def blend_votes(label_ids, label_shares, text_ids, text_shares, indptr, labels, allowed, ids, scores):
    """Add up what the labels' own scores and the labels of the nearest texts say, and keep the best labels.

    A neighbour gives its share to each of its labels. `allowed` has one place a label, or none: then all are allowed.
    Works on the few hundred candidates of a text, never on an array as long as the label space.
    """
    for i in range(len(label_ids)):
        room = label_ids.shape[1]
        for text in text_ids[i]:
            if text >= 0:
                room += indptr[text + 1] - indptr[text]
        candidates = np.empty(room, np.int64)
        shares = np.empty(room, np.float32)
        n = 0
        for j in range(label_ids.shape[1]):
            if label_ids[i, j] >= 0:
                candidates[n] = label_ids[i, j]
                shares[n] = label_shares[i, j]
                n += 1
        for j in range(text_ids.shape[1]):
            text = text_ids[i, j]
            if text >= 0:
                for p in range(indptr[text], indptr[text + 1]):
                    candidates[n] = labels[p]
                    shares[n] = text_shares[i, j]
                    n += 1
        order = np.argsort(candidates[:n], kind="mergesort")
        distinct = 0
        merged = np.empty(n, np.int64)
        totals = np.empty(n, np.float32)
        for o in order:
            label = candidates[o]
            if len(allowed) > 0 and not allowed[label]:
                continue
            if distinct > 0 and merged[distinct - 1] == label:
                totals[distinct - 1] += shares[o]
            else:
                merged[distinct] = label
                totals[distinct] = shares[o]
                distinct += 1
        keep_best(totals, np.arange(distinct), distinct, ids[i], scores[i])
        for j in range(len(ids[i])):
            if ids[i, j] >= 0:
                ids[i, j] = merged[ids[i, j]]


@njit(cache=True, nogil=True)
def gather_candidates(
    label_ids, label_shares, voice_of_label, text_ids, text_shares, voice_of_text, indptr, labels, allowed, ids, votes
):
    """The labels that any voice names, and what each voice gives to each.

    Places of `label_ids` and `text_ids` belong to voices, whose numbers stand in `voice_of_label` and `voice_of_text`;
    a text gives its share to each of its labels. Where there are more candidates than room, those that all voices
    together give the most are kept. `allowed` has one place a label, or none: then all are allowed.
    """
    n_voices = votes.shape[2]
    for i in range(len(label_ids)):
        room = label_ids.shape[1]
        for text in text_ids[i]:
            if text >= 0:
                room += indptr[text + 1] - indptr[text]
        candidates = np.empty(room, np.int64)
        shares = np.empty(room, np.float32)
        voices = np.empty(room, np.int64)
        n = 0
        for j in range(label_ids.shape[1]):
            if label_ids[i, j] >= 0:
                candidates[n] = label_ids[i, j]
                shares[n] = label_shares[i, j]
                voices[n] = voice_of_label[j]
                n += 1
        for j in range(text_ids.shape[1]):
            text = text_ids[i, j]
            if text >= 0:
                for p in range(indptr[text], indptr[text + 1]):
                    candidates[n] = labels[p]
                    shares[n] = text_shares[i, j]
                    voices[n] = voice_of_text[j]
                    n += 1
        order = np.argsort(candidates[:n], kind="mergesort")
        distinct = 0
        merged = np.empty(n, np.int64)
        given = np.zeros((n, n_voices), np.float32)
        totals = np.zeros(n, np.float32)
        for o in order:
            label = candidates[o]
            if len(allowed) > 0 and not allowed[label]:
                continue
            if distinct == 0 or merged[distinct - 1] != label:
                merged[distinct] = label
                distinct += 1
            given[distinct - 1, voices[o]] += shares[o]
            totals[distinct - 1] += shares[o]
        best = np.argsort(-totals[:distinct], kind="mergesort")
        for c in range(ids.shape[1]):
            if c < distinct:
                ids[i, c] = merged[best[c]]
                for v in range(n_voices):
                    votes[i, c, v] = given[best[c], v]
            else:
                ids[i, c] = -1
                for v in range(n_voices):
                    votes[i, c, v] = 0

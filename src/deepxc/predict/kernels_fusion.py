"""The compiled inner loops of `fusion`: they work on the few hundred candidates of a text, never on all labels."""

from __future__ import annotations

import numpy as np
from numba import njit

from deepxc.search.kernels_postings import keep_best


@njit(cache=True, nogil=True)
def _said_by_all(label_ids, label_shares, text_ids, text_shares, indptr, labels, allowed):
    """What one text's voices say: labels in order (those that several name stand side by side), shares, and places.

    Labels and texts of id -1 say nothing; a text gives its share to each of its labels. A place counts the label ids
    first, then the text ids. `allowed` has one place a label, or none: then all are allowed.
    """
    width, room = len(label_ids), len(label_ids)
    for text in text_ids:
        if text >= 0:
            room += indptr[text + 1] - indptr[text]
    named = np.empty(room, np.int64)
    shares = np.empty(room, np.float32)
    places = np.empty(room, np.int64)
    n = 0
    for j in range(width):
        if label_ids[j] >= 0 and (len(allowed) == 0 or allowed[label_ids[j]]):
            named[n], shares[n], places[n] = label_ids[j], label_shares[j], j
            n += 1
    for j in range(len(text_ids)):
        if text_ids[j] >= 0:
            for p in range(indptr[text_ids[j]], indptr[text_ids[j] + 1]):
                if len(allowed) == 0 or allowed[labels[p]]:
                    named[n], shares[n], places[n] = labels[p], text_shares[j], width + j
                    n += 1
    order = np.argsort(named[:n], kind="mergesort")
    return named[order], shares[order], places[order]


@njit(cache=True, nogil=True)
def softmax_into(scores, temperature, shares):
    """Softmax of each row; places with score -inf get 0, and so does a row that has no other."""
    for i in range(len(scores)):
        best = np.float32(-np.inf)
        for score in scores[i]:
            best = max(best, score)
        total = np.float32(0.0)
        for j in range(scores.shape[1]):
            shares[i, j] = np.exp((scores[i, j] - best) / temperature) if best > -np.inf else np.float32(0.0)
            total += shares[i, j]
        for j in range(scores.shape[1]):
            shares[i, j] /= max(total, np.float32(1e-30))


@njit(cache=True, nogil=True)
def keep_best_of_mixed(ids, scores, told, share, best_ids, best_scores):
    """The best of each row when `told` has this share of the score, and the score before the rest of it."""
    for i in range(len(ids)):
        totals = np.empty(ids.shape[1], np.float32)
        named = np.empty(ids.shape[1], np.int64)
        n = 0
        for j in range(ids.shape[1]):
            if ids[i, j] >= 0:
                named[n] = ids[i, j]
                totals[n] = (np.float32(1.0) - share) * scores[i, j] + share * told[i, j]
                n += 1
        order = np.argsort(named[:n])
        keep_best(totals[order], np.arange(n), n, best_ids[i], best_scores[i])
        for j in range(best_ids.shape[1]):
            if best_ids[i, j] >= 0:
                best_ids[i, j] = named[order[best_ids[i, j]]]


@njit(cache=True, nogil=True)
def blend_votes(label_ids, label_shares, text_ids, text_shares, indptr, labels, allowed, ids, scores):
    """Add up what the labels' own scores and the labels of the nearest texts say, and keep the best labels."""
    for i in range(len(label_ids)):
        named, shares, _ = _said_by_all(
            label_ids[i], label_shares[i], text_ids[i], text_shares[i], indptr, labels, allowed
        )
        totals = np.empty(len(named), np.float32)
        distinct = 0
        for o in range(len(named)):
            if distinct > 0 and named[distinct - 1] == named[o]:
                totals[distinct - 1] += shares[o]
            else:
                named[distinct] = named[o]
                totals[distinct] = shares[o]
                distinct += 1
        keep_best(totals, np.arange(distinct), distinct, ids[i], scores[i])
        for j in range(len(ids[i])):
            if ids[i, j] >= 0:
                ids[i, j] = named[ids[i, j]]


@njit(cache=True, nogil=True)
def gather_candidates(
    label_ids, label_shares, voice_of_label, text_ids, text_shares, voice_of_text, indptr, labels, allowed, ids, votes
):
    """The labels that any voice names, and what each voice gives to each.

    Places of `label_ids` and `text_ids` belong to voices, whose numbers stand in `voice_of_label` and `voice_of_text`.
    Where there are more candidates than room, those that all voices together give the most are kept.
    """
    width, n_voices = label_ids.shape[1], votes.shape[2]
    for i in range(len(label_ids)):
        named, shares, places = _said_by_all(
            label_ids[i], label_shares[i], text_ids[i], text_shares[i], indptr, labels, allowed
        )
        given = np.zeros((len(named), n_voices), np.float32)
        totals = np.zeros(len(named), np.float32)
        distinct = 0
        for o in range(len(named)):
            if distinct == 0 or named[distinct - 1] != named[o]:
                named[distinct] = named[o]
                distinct += 1
            place = places[o]
            voice = voice_of_label[place] if place < width else voice_of_text[place - width]
            given[distinct - 1, voice] += shares[o]
            totals[distinct - 1] += shares[o]
        best = np.argsort(-totals[:distinct], kind="mergesort")
        for c in range(ids.shape[1]):
            ids[i, c] = named[best[c]] if c < distinct else -1
            for v in range(n_voices):
                votes[i, c, v] = given[best[c], v] if c < distinct else 0

from __future__ import annotations

import math

import numpy as np
import plain_loops
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import ndcg_score, precision_score, recall_score

from deepxc.data.label_space import LabelSpace
from deepxc.errors import UserError
from deepxc.evaluate.metrics import evaluate
from deepxc.evaluate.ranking import best_stored, needed_k
from deepxc.predict.topk import TopK

D2, D3 = 1 / math.log2(3), 1 / 2  # discounts of ranks 2 and 3; rank 1 counts 1


# Two texts, four labels. Text 0 has labels 0 and 2 and is answered 2, 1, 0: hits at ranks 1 and 3.
# Text 1 has label 3 and is answered 0, 3, 1: a hit at rank 2.
ANSWERS = [[2, 1, 0], [0, 3, 1]]
TRUTH = [[0, 2], [3]]
WEIGHTS = np.array([1.0, 2.0, 3.0, 5.0])
BY_HAND = {
    "P@1": (1 + 0) / 2,
    "P@2": (1 / 2 + 1 / 2) / 2,
    "P@3": (2 / 3 + 1 / 3) / 2,
    "R@1": (1 / 2 + 0) / 2,
    "R@2": (1 / 2 + 1) / 2,
    "R@3": (2 / 2 + 1) / 2,
    # Ideal gains: text 0 has two labels (1 at k=1, 1 + D2 after), text 1 one (1 always).
    "nDCG@1": (1 + 0) / 2,
    "nDCG@2": (1 / (1 + D2) + D2) / 2,
    "nDCG@3": ((1 + D3) / (1 + D2) + D2) / 2,
    # Weights found: text 0 finds 3 at rank 1 and 1 at rank 3, text 1 finds 5 at rank 2. Best: text 0 3, then 3 + 1;
    # text 1 5.
    "PSP@1": (3 + 0) / (3 + 5),
    "PSP@2": (3 + 5) / (4 + 5),
    "PSP@3": (4 + 5) / (4 + 5),
    "PSnDCG@1": (3 + 0) / (3 + 5),
    "PSnDCG@2": (3 / (1 + D2) + 5 * D2) / ((3 + D2) / (1 + D2) + 5),
    "PSnDCG@3": ((3 + D3) / (1 + D2) + 5 * D2) / ((3 + D2) / (1 + D2) + 5),
    # The truth holds labels 0, 2, 3: found are 2 at k=1; 2, 3 at k=2; all at k=3.
    "C@1": 1 / 3,
    "C@2": 2 / 3,
    "C@3": 3 / 3,
}


def test_every_metric_by_hand(topk, truth):
    report = evaluate(topk(ANSWERS, 4), truth(TRUTH, 4), ks=(1, 2, 3), inverse_propensity=WEIGHTS)
    assert report.values == pytest.approx({key: 100 * value for key, value in BY_HAND.items()})
    assert list(report.values)[:4] == ["P@1", "P@2", "P@3", "nDCG@1"]
    assert report["P@1"] == report.as_dict()["P@1"] == 50.0


def test_all_forms_of_predictions_agree(topk, truth):
    top = topk(ANSWERS, 4)
    Y = truth(TRUTH, 4)
    scores = top.to_csr()
    wanted = evaluate(top, Y, ks=(1, 2, 3), inverse_propensity=WEIGHTS).values
    forms = [
        scores,
        scores.astype(np.float64),
        scores.astype(np.int64),
        scores.tocoo(),
        scores.tocsc(),
        sparse.csr_array(scores),
        top.ids,
        top.ids.astype(np.int32),
        top.ids.tolist(),
    ]
    for form in forms:
        assert evaluate(form, Y, ks=(1, 2, 3), inverse_propensity=WEIGHTS).values == wanted
    for other in (sparse.csr_array(Y), Y.tocsc(), Y.astype(bool)):
        assert evaluate(top, other, ks=(1, 2, 3), inverse_propensity=WEIGHTS).values == wanted


def test_propensity_metrics_need_propensities(topk, truth):
    keys = evaluate(topk(ANSWERS, 4), truth(TRUTH, 4)).values
    assert {key.split("@")[0] for key in keys} == {"P", "nDCG", "R", "C"}


def test_texts_without_true_labels_count_zero_in_every_mean(topk, truth):
    report = evaluate(topk([*ANSWERS, [1, 2, 3]], 4), truth([*TRUTH, []], 4), ks=(1, 3), inverse_propensity=WEIGHTS)
    for key in ("P@1", "P@3", "R@1", "R@3", "nDCG@1", "nDCG@3"):
        assert report[key] == pytest.approx(100 * BY_HAND[key] * 2 / 3)
    for key in ("PSP@1", "PSP@3", "PSnDCG@3", "C@3"):  # ratios do not feel them
        assert report[key] == pytest.approx(100 * BY_HAND[key])


def test_a_truth_without_any_label_gives_zeros(topk, truth):
    report = evaluate(topk(ANSWERS, 4), truth([[], []], 4), inverse_propensity=WEIGHTS)
    assert set(report.values.values()) == {0.0}


def test_no_answers_give_zeros(truth):
    Y = truth(TRUTH, 4)
    nothing = [sparse.csr_matrix((2, 4)), np.full((2, 5), -1), np.empty((2, 0), np.int64)]
    for empty in nothing:
        report = evaluate(empty, Y, inverse_propensity=WEIGHTS)
        assert set(report.values.values()) == {0.0}
        assert report.short_texts == 2


def test_places_without_answer_are_misses(topk, truth):
    # Three answers stored, k = 10: the hits of k = 3 over ten places; recall and the ideal do not change.
    report = evaluate(topk(ANSWERS, 4), truth(TRUTH, 4), ks=(3, 10), inverse_propensity=WEIGHTS)
    assert report["P@10"] == pytest.approx(report["P@3"] * 3 / 10)
    assert report["R@10"] == report["R@3"]
    assert report["nDCG@10"] == report["nDCG@3"]
    assert report.short_texts == 2
    assert "2 texts have fewer than 10 answers" in report.table()


def test_gaps_in_ids_close_up(truth):
    gapped = np.array([[-1, 2, -1, 1, 0], [0, 3, 1, -1, -1]])
    report = evaluate(gapped, truth(TRUTH, 4), ks=(1, 2, 3), inverse_propensity=WEIGHTS)
    assert report["nDCG@3"] == pytest.approx(100 * BY_HAND["nDCG@3"])


def test_weights_of_the_truth_do_not_count(topk, truth):
    Y = truth(TRUTH, 4)
    wanted = evaluate(topk(ANSWERS, 4), Y, inverse_propensity=WEIGHTS)
    heavy = Y.copy()
    heavy.data[:] = [0.1, 7, 3]
    assert evaluate(topk(ANSWERS, 4), heavy, inverse_propensity=WEIGHTS).values == wanted.values
    with_zero = sparse.csr_matrix((np.array([1, 0, 1, 1.0]), np.array([0, 1, 2, 3]), np.array([0, 3, 4])), shape=(2, 4))
    assert evaluate(topk(ANSWERS, 4), with_zero, inverse_propensity=WEIGHTS).values == wanted.values
    assert with_zero.nnz == 4  # the caller's matrix is left alone


def test_unsorted_truth_with_repeats(topk):
    Y = sparse.csr_matrix((np.ones(4), np.array([2, 0, 2, 3]), np.array([0, 3, 4])), shape=(2, 4))
    report = evaluate(topk(ANSWERS, 4), Y, ks=(3,), inverse_propensity=WEIGHTS)
    assert report["R@3"] == pytest.approx(100 * BY_HAND["R@3"])
    assert Y.indices.tolist() == [2, 0, 2, 3]


def test_ties_go_to_the_smaller_label(truth):
    scores = sparse.csr_matrix(np.array([[0, 1.0, 1.0, 1.0, 2.0]]))
    for label, rank in ((4, 1), (1, 2), (2, 3), (3, 4)):
        report = evaluate(scores, truth([[label]], 5), ks=(1, 2, 3, 4))
        assert [report[f"R@{k}"] for k in (1, 2, 3, 4)] == [100.0 * (k >= rank) for k in (1, 2, 3, 4)]


def test_ties_in_a_wide_row_go_to_the_smaller_label(truth):
    # More ties than places, and rows wide enough to be pruned before sorting.
    values = np.full((1, 500), 0.5, np.float32)
    values[0, [40, 300]] = 0.9
    ids = best_stored(sparse.csr_matrix(values), 5)
    assert ids.tolist() == [[40, 300, 0, 1, 2]]
    values[0, 10:480] = 0.1
    values[0, [40, 300]] = 0.9
    assert best_stored(sparse.csr_matrix(values), 5).tolist() == [[40, 300, 0, 1, 2]]


def test_stored_zeros_are_ranked_and_absent_labels_never():
    # Stored: label 1 at 0, label 2 at -1. Labels 0 and 3 are no answers, though 0 > -1.
    scores = sparse.csr_matrix((np.array([0.0, -1.0]), np.array([1, 2]), np.array([0, 2])), shape=(1, 4))
    assert best_stored(scores, 4).tolist() == [[1, 2, -1, -1]]


def test_float64_scores_are_not_rounded(truth):
    close = sparse.csr_matrix(np.array([[1.0, 1.0 + 1e-12]]))
    assert evaluate(close, truth([[1]], 2), ks=(1,))["P@1"] == 100.0


def test_rows_of_very_different_width():
    rng = np.random.default_rng(5)
    dense = np.zeros((40, 3000))
    for i in range(40):
        width = int(rng.choice([0, 1, 3, 50, 3000]))
        dense[i, rng.choice(3000, width, replace=False)] = rng.integers(1, 4, width)
    scores = sparse.csr_matrix(dense)
    wanted = TopK.from_csr(scores, 7, LabelSpace.numbered(3000))
    assert np.array_equal(best_stored(scores, 7), wanted.ids)


# --- filter pairs ---------------------------------------------------------------------------------------------------


def test_filtered_answers_leave_and_the_others_move_up(truth):
    # Text 0 loses label 1 at rank 2, so its hit on label 0 moves from rank 3 to 2.
    Y = truth(TRUTH, 4)
    pairs = np.array([[0, 1]])
    report = evaluate(np.array(ANSWERS), Y, ks=(1, 2), filter_pairs=pairs)
    assert report["P@2"] == pytest.approx(100 * (2 / 2 + 1 / 2) / 2)
    assert report["nDCG@2"] == pytest.approx(100 * (1 + D2) / 2)


def test_filtering_is_the_same_in_every_form(zipf):
    answers, Y, _ = zipf
    rng = np.random.default_rng(0)
    pairs = np.column_stack((rng.integers(0, 2000, 900), answers[rng.integers(0, 2000, 900), 0]))
    pairs[:500, 1] = answers[pairs[:500, 0], rng.integers(0, 10, 500)]
    top = TopK(answers, np.tile(np.arange(10, 0, -1, dtype=np.float32), (2000, 1)), LabelSpace.numbered(300))
    k = 10 - (needed_k(1, pairs) - 1)
    assert k >= 5
    by_top = evaluate(top, Y, ks=(1, k), filter_pairs=pairs)
    by_csr = evaluate(top.to_csr(), Y, ks=(1, k), filter_pairs=pairs)
    assert by_top.values == by_csr.values == evaluate(answers, Y, ks=(1, k), filter_pairs=pairs).values
    assert by_top.values != evaluate(top, Y, ks=(1, k)).values


def test_answers_cut_before_filtering_are_refused(topk, truth):
    Y = truth(TRUTH, 4)
    with pytest.raises(UserError, match=r"row 0 was cut at 3 answers, of which filter pairs leave 2"):
        evaluate(topk(ANSWERS, 4), Y, ks=(3,), filter_pairs=[[0, 1]])
    short = np.array([[2, 1, -1], [0, 3, 1]])  # text 0 has no more answers to give
    evaluate(short, Y, ks=(3,), filter_pairs=[[0, 1]])
    every = np.array([[2, 1, 0, 3], [0, 3, 1, 2]])  # nor is there a fifth label
    evaluate(every, Y, ks=(4,), filter_pairs=[[0, 1]])
    evaluate(every[:, :3], Y, ks=(3,), filter_pairs=[[0, 3]])  # the pair is no answer: nothing is lost
    evaluate(every[:, :3], Y, ks=(3, 9), filter_pairs=[[0, 3]])  # nine were never stored: still nothing lost to pairs


def test_truth_is_filtered_on_demand(truth):
    Y = truth(TRUTH, 4)
    pairs = [[0, 0]]
    answers = np.array([[2, 1, 0, 3], [0, 3, 1, 2]])
    kept = evaluate(answers, Y, ks=(3,), filter_pairs=pairs)
    assert kept["R@3"] == pytest.approx(100 * (1 / 2 + 1) / 2)
    gone = evaluate(answers, Y, ks=(3,), filter_pairs=pairs, filter_truth=True)
    assert gone["R@3"] == pytest.approx(100 * (1 / 1 + 1) / 2)
    assert gone.truth != kept.truth


def test_needed_k_covers_the_most_filtered_text():
    assert needed_k(5) == needed_k(5, np.empty((0, 2))) == 5
    assert needed_k(5, [[0, 1], [3, 1], [3, 2], [3, 2]]) == 7


def test_a_flat_pair_counts_as_one(truth):
    Y = truth(TRUTH, 4)
    flat = evaluate(np.array(ANSWERS), Y, ks=(2,), filter_pairs=np.array([0, 1]))
    assert flat.values == evaluate(np.array(ANSWERS), Y, ks=(2,), filter_pairs=[[0, 1]]).values


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predictions", "options", "message"),
    [
        (np.array([[0, 1, 0], [1, 2, 3]]), {}, "row 0 names label 0 twice"),
        (np.array([[0, 4], [1, 2]]), {}, "row 0 names label 4, but the truth has 4 labels"),
        (np.array([[0, 1], [-2, 2]]), {}, "row 1 names label -2"),
        (np.array([[0, 1]]), {}, r"predictions are 1 rows x 4 labels but the truth is 2 x 4"),
        (sparse.csr_matrix((2, 5)), {}, r"predictions are 2 rows x 5 labels but the truth is 2 x 4"),
        (sparse.csr_matrix((3, 4)), {}, r"predictions are 3 rows x 4 labels but the truth is 2 x 4"),
        (sparse.csr_matrix(np.array([[0, np.nan], [1, 0]])), {}, "predictions are 2 rows x 2 labels"),
        (
            sparse.csr_matrix(np.array([[0, 0, 0, 0], [1, np.nan, 0, 0]])),
            {},
            "row 1 holds a score that is not",
        ),
        (
            sparse.csr_matrix((np.ones(2), np.array([3, 3]), np.array([0, 0, 2])), shape=(2, 4)),
            {},
            "row 1 names label 3 twice",
        ),
        (np.array([[0.5, 0.1], [0.2, 0.3]]), {}, "is not a table of label ids"),
        ([[1, 2], [3]], {}, "is not a table of label ids"),
        (np.array([0, 1]), {}, "is not a table of label ids"),
        (np.array([[0], [1]]), {"ks": ()}, "no cut-offs"),
        (np.array([[0], [1]]), {"ks": (0, 1)}, "no cut-offs"),
        (np.array([[0], [1]]), {"ks": (1.5,)}, "no cut-offs"),
        (np.array([[0], [1]]), {"inverse_propensity": np.ones(3)}, "inverse propensities for 4 labels"),
        (
            np.array([[0], [1]]),
            {"inverse_propensity": np.array([1, 1, np.nan, 1])},
            "label 2 has inverse propensity",
        ),
        (np.array([[0], [1]]), {"filter_pairs": [[0, 4]]}, r"pair \(row 0, label 4\) lies outside 2 rows x 4 labels"),
        (np.array([[0], [1]]), {"filter_pairs": [[2, 0]]}, r"pair \(row 2, label 0\) lies outside"),
        (np.array([[0], [1]]), {"filter_pairs": [[0, 1, 2]]}, r"holds no \(row, label\) pairs"),
        (np.array([[0], [1]]), {"filter_pairs": [[0.0, 1.0]]}, r"holds no \(row, label\) pairs"),
    ],
)
def test_bad_arguments_are_named(predictions, options, message, truth):
    with pytest.raises(UserError, match=message):
        evaluate(predictions, truth(TRUTH, 4), **options)


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (np.eye(2), "ndarray is not a sparse matrix"),
        (sparse.csr_matrix((0, 4)), "the truth is 0 rows x 4 labels"),
        (sparse.csr_matrix((2, 0)), "the truth is 2 rows x 0 labels"),
        (sparse.csr_matrix(np.array([[0, 1, 0, 0], [0, 0, -1, 0]])), "row 1 gives label 2 the weight -1"),
        (sparse.csr_matrix(np.array([[0, np.nan, 0, 0], [0, 0, 1, 0]])), "row 0 gives label 1 the weight nan"),
    ],
)
def test_bad_truths_are_named(Y, message):
    with pytest.raises(UserError, match=message):
        evaluate(np.array([[0], [1]]), Y)


def test_a_topk_of_another_label_space_is_refused(topk, truth):
    with pytest.raises(UserError, match="predictions know 7 labels but the truth has 4"):
        evaluate(topk(ANSWERS, 7), truth(TRUTH, 4))


def test_unranked_scores_are_refused(topk, truth):
    top = topk(ANSWERS, 4)
    for value, shown in ((9.0, "9.0"), (np.nan, "nan")):
        scores = top.scores.copy()
        scores[1, 2] = value
        with pytest.raises(UserError, match=f"row 1 is not ranked: the score at rank 3 is {shown}"):
            evaluate(TopK(top.ids, scores, top.labels), truth(TRUTH, 4))


# --- against independent implementations ----------------------------------------------------------------------------


@st.composite
def problems(draw):
    n, n_labels = draw(st.integers(1, 6)), draw(st.integers(1, 30))
    label = st.integers(0, n_labels - 1)
    score = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 0.5, 1.0]) | st.floats(-5, 5, width=32)
    scores = draw(st.lists(st.dictionaries(label, score, max_size=n_labels), min_size=n, max_size=n))
    truth = draw(st.lists(st.sets(label, max_size=8), min_size=n, max_size=n))
    weights = draw(st.lists(st.floats(1, 50), min_size=n_labels, max_size=n_labels))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), label), max_size=8))
    ks = draw(st.sets(st.integers(1, 12), min_size=1, max_size=4))
    return scores, truth, weights, pairs, tuple(sorted(ks))


@settings(max_examples=300, deadline=None)
@given(problems(), st.booleans())
def test_agrees_with_plain_loops(problem, filter_truth):
    scores, true, weights, pairs, ks = problem
    n, n_labels = len(true), len(weights)
    rows = [i for i, row in enumerate(scores) for _ in row]
    csr = sparse.csr_matrix(
        ([s for row in scores for s in row.values()], (rows, [label for row in scores for label in row])),
        shape=(n, n_labels),
        dtype=np.float64,
    )
    Y = sparse.csr_matrix(
        (np.ones(sum(map(len, true))), ([i for i, r in enumerate(true) for _ in r], [x for r in true for x in r])),
        shape=(n, n_labels),
    )
    filter_pairs = np.array(pairs, np.int64).reshape(-1, 2)
    found = evaluate(csr, Y, ks=ks, inverse_propensity=weights, filter_pairs=filter_pairs, filter_truth=filter_truth)
    answers = plain_loops.ranked(scores, set(pairs))
    if filter_truth:
        true = [{label for label in row if (i, label) not in set(pairs)} for i, row in enumerate(true)]
    assert found.values == pytest.approx(plain_loops.metrics(answers, true, ks, weights), abs=1e-9)
    assert all(0 <= value <= 100 + 1e-9 for value in found.values.values())
    for key, row in found.rows.items():
        assert row.value() == found[key]
    whole = TopK.from_csr(csr, n_labels, LabelSpace.numbered(n_labels))
    again = evaluate(whole, Y, ks=ks, inverse_propensity=weights, filter_pairs=filter_pairs, filter_truth=filter_truth)
    assert again.values == found.values


def test_agrees_with_sklearn(zipf):
    answers, Y, _ = zipf
    k = 5
    predicted = np.zeros(Y.shape, np.int64)
    np.put_along_axis(predicted, answers[:, :k], 1, axis=1)
    true = Y.toarray().astype(np.int64)
    report = evaluate(answers, Y, ks=(k,))
    assert report["P@5"] == pytest.approx(100 * precision_score(true, predicted, average="samples", zero_division=0))
    assert report["R@5"] == pytest.approx(100 * recall_score(true, predicted, average="samples", zero_division=0))
    scores = np.zeros(Y.shape)
    np.put_along_axis(scores, answers, np.arange(10, 0, -1.0)[None].repeat(len(answers), axis=0), axis=1)
    assert report["nDCG@5"] == pytest.approx(100 * ndcg_score(true, scores, k=k))


def test_perfect_answers_reach_100(zipf):
    _, Y, frequencies = zipf
    weights = 1 / np.log(frequencies + 2.0)
    valued = sparse.csr_matrix((weights[Y.indices], Y.indices, Y.indptr), shape=Y.shape)
    report = evaluate(valued, Y, ks=(1, 5), inverse_propensity=weights)
    for key in ("PSP@1", "PSP@5", "PSnDCG@1", "PSnDCG@5", "C@5"):
        assert report[key] == pytest.approx(100)
    assert report["R@5"] == pytest.approx(100 * (np.diff(Y.indptr) > 0).mean())


def test_the_table_shows_every_value(topk, truth):
    report = evaluate(topk(ANSWERS, 4), truth(TRUTH, 4), ks=(1, 3), inverse_propensity=WEIGHTS)
    lines = report.table().splitlines()
    assert lines[0].split() == ["@1", "@3"]
    shown = {line.split()[0]: line.split()[1:] for line in lines[1:7]}
    assert shown["PSP"] == [f"{report['PSP@1']:.2f}", f"{report['PSP@3']:.2f}"]
    assert set(shown) == {"P", "nDCG", "PSP", "PSnDCG", "R", "C"}
    assert lines[7] == "2 texts, percent"


def test_nothing_as_large_as_texts_times_labels_is_made():
    import tracemalloc

    n, n_labels = 5_000, 1_000_000
    rng = np.random.default_rng(0)
    base = rng.integers(0, n_labels - 10, n)
    answers = base[:, None] + np.arange(10)
    Y = sparse.csr_matrix((np.ones(n), base.astype(np.int32), np.arange(n + 1)), shape=(n, n_labels))
    tracemalloc.start()
    report = evaluate(answers, Y, inverse_propensity=np.ones(n_labels))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert report["P@1"] == 100.0
    assert peak < 60e6  # a dense bool array would take 5 GB

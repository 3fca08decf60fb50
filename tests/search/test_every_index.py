"""What every kind of index over dense vectors promises."""

import threading

import numpy as np
import pytest

from deepxc.errors import ModelFolderError, UserError
from deepxc.search.choose import build_index, load_index
from deepxc.search.protocol import VectorIndex


def truth(vectors, queries, metric, k):
    """Answers in float64 by a full sort."""
    vectors, queries = vectors.astype(np.float64), queries.astype(np.float64)
    if metric == "cosine":
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        queries = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    scores = queries @ vectors.T
    ids = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return ids, np.take_along_axis(scores, ids, axis=1)


def recall(found, true):
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found.tolist(), true.tolist(), strict=True)])


def test_is_a_vector_index(built, kind, metric, planted):
    assert isinstance(built, VectorIndex)
    assert (built.kind, built.metric, len(built), built.dim) == (kind, metric, 3000, 24)


@pytest.mark.parametrize("k", [1, 10, 100])
def test_recall_and_scores(built, kind, metric, planted, k):
    vectors, queries = planted
    ids, scores = built.search(queries, k)
    assert ids.dtype == np.int64
    assert scores.dtype == np.float32
    assert ids.shape == scores.shape == (100, k)
    true_ids, true_scores = truth(vectors, queries, metric, k)
    assert recall(ids, true_ids) >= (1.0 if kind == "exact" else 0.97)
    tolerance = 1e-5 if kind == "exact" else 2e-3  # a store of 16 bits
    np.testing.assert_allclose(scores[:, 0], true_scores[:, 0], rtol=tolerance)
    assert (np.diff(scores, axis=1) <= 0).all()


def test_single_query_equals_batch(built, planted):
    _, queries = planted
    ids, scores = built.search(queries, 7)
    for row, query in enumerate(queries):
        one_ids, one_scores = built.search(query, 7)
        assert one_ids.shape == (7,)
        np.testing.assert_array_equal(one_ids, ids[row])
        np.testing.assert_array_equal(one_scores, scores[row])


def test_threads_change_no_answer(built, planted):
    many = np.repeat(planted[1], 4, axis=0)
    for one, two in zip(built.search(many, 9), built.search(many, 9, threads=2), strict=True):
        np.testing.assert_array_equal(one, two)


def test_searches_may_run_together(built, planted):
    expected, _ = built.search(planted[1], 5)
    answers = []
    searches = [threading.Thread(target=lambda: answers.append(built.search(planted[1], 5)[0])) for _ in range(4)]
    for one in searches:
        one.start()
    for one in searches:
        one.join()
    assert len(answers) == 4
    for ids in answers:
        np.testing.assert_array_equal(ids, expected)


def test_thread_settings_stay_as_they_were(built, planted):
    import faiss
    from threadpoolctl import threadpool_info

    def settings():
        return [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()], faiss.omp_get_max_threads()

    before = settings()
    built.search(planted[1], 5, threads=1)
    built.search(planted[1], 5, threads=2)
    assert settings() == before


def test_saved_and_mapped_index_answers_the_same(built, planted, tmp_path):
    built.save(tmp_path)
    opened = load_index(tmp_path)
    assert type(opened) is type(built)
    assert (opened.metric, len(opened), opened.dim) == (built.metric, len(built), built.dim)
    for saved, found in zip(built.search(planted[1], 20), opened.search(planted[1], 20), strict=True):
        np.testing.assert_array_equal(saved, found)


def test_same_seed_builds_the_same_index(planted, built, kind, metric, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, index in ((first, built), (second, build_index(planted[0], metric, kind=kind, seed=5, threads=1))):
        folder.mkdir()
        index.save(folder)
    files = sorted(path.name for path in first.iterdir())
    assert files == sorted(path.name for path in second.iterdir())
    for name in files:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


@pytest.mark.parametrize("size", [3, 1500])
def test_k_beyond_the_size_pads(planted, kind, metric, size):
    index = build_index(planted[0][:size], metric, kind=kind)
    ids, scores = index.search(planted[1][:4], size + 5)
    assert (ids[:, size:] == -1).all()
    assert (scores[:, size:] == -np.inf).all()
    np.testing.assert_array_equal(np.sort(ids[:, :size], axis=1), np.tile(np.arange(size), (4, 1)))


def test_empty_index(kind, metric, tmp_path):
    index = build_index(np.empty((0, 8), np.float32), metric, kind=kind)
    index.save(tmp_path)
    for one in (index, load_index(tmp_path)):
        assert (len(one), one.dim) == (0, 8)
        ids, scores = one.search(np.ones((2, 8)), 3)
        assert (ids == -1).all()
        assert (scores == -np.inf).all()


def test_no_queries(built):
    ids, scores = built.search(np.empty((0, 24), np.float32), 3)
    assert ids.shape == scores.shape == (0, 3)


def test_zero_query_gets_the_smallest_ids(built, planted):
    queries = planted[1][:3].copy()
    queries[1] = 0
    ids, scores = built.search(queries, 6)
    assert ids[1].tolist() == [0, 1, 2, 3, 4, 5]
    assert (scores[1] == 0).all()
    np.testing.assert_array_equal(ids[0], built.search(planted[1][0], 6)[0])


def test_zero_vectors_score_zero(planted, kind, metric):
    vectors = planted[0].copy()
    vectors[[5, 17]] = 0
    index = build_index(vectors, metric, kind=kind)
    ids, scores = index.search(planted[1], len(vectors))
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores[(ids == 5) | (ids == 17)], 0)
    assert ((ids == 5).sum(axis=1) == 1).all()


def test_duplicates_tie_to_the_smaller_id(planted, kind, metric):
    vectors = np.concatenate([planted[0][:1500]] * 2)
    ids, scores = build_index(vectors, metric, kind=kind).search(planted[1], 10)
    np.testing.assert_array_equal(ids[:, 1::2], ids[:, ::2] + 1500)
    np.testing.assert_array_equal(scores[:, 1::2], scores[:, ::2])


def test_many_equal_vectors(kind, metric):
    index = build_index(np.ones((2000, 6)), metric, kind=kind)
    ids, scores = index.search(np.ones(6), 5)
    assert len(set(ids.tolist())) == 5
    assert len(set(scores.tolist())) == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32])
def test_other_number_types(planted, kind, metric, dtype):
    whole = np.round(planted[0][:1500] * 8)
    expected = build_index(whole, metric, kind=kind).search(whole[:20], 5)
    given = np.asfortranarray(whole.astype(dtype))
    for one, other in zip(expected, build_index(given, metric, kind=kind).search(given[:20], 5), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("scale", [1e-20, 1e18])
def test_very_small_and_large_values(planted, kind, scale):
    vectors = planted[0] * np.float32(scale)
    ids, _ = build_index(vectors, "cosine", kind=kind).search(planted[1] * np.float32(scale), 10)
    assert recall(ids, truth(planted[0], planted[1], "cosine", 10)[0]) >= 0.97


def test_odd_dimensions(planted, kind, metric):
    vectors, queries = planted[0][:, :23], planted[1][:, :23]
    ids, _ = build_index(vectors, metric, kind=kind).search(queries, 10)
    assert recall(ids, truth(vectors, queries, metric, 10)[0]) >= 0.97


def test_vectors_stay_as_they_were(planted, kind):
    vectors = planted[0].copy()
    build_index(vectors, "cosine", kind=kind)
    np.testing.assert_array_equal(vectors, planted[0])


@pytest.mark.parametrize(
    ("queries", "where"),
    [
        (np.ones((2, 23)), "queries"),
        (np.ones(25), "queries"),
        (np.ones((1, 2, 24)), "queries"),
        (np.full((2, 24), np.nan), "queries, row 0"),
        (np.array([["a"] * 24]), "queries"),
    ],
)
def test_bad_queries(built, queries, where):
    with pytest.raises(UserError) as caught:
        built.search(queries, 3)
    assert caught.value.where == where
    assert caught.value.remedy


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_bad_vectors_name_their_row(kind, metric, bad):
    vectors = np.ones((4, 3))
    vectors[2, 1] = bad
    with pytest.raises(UserError, match="vectors, row 2: NaN or infinity"):
        build_index(vectors, metric, kind=kind)


@pytest.mark.parametrize("k", [0, -1, 2.5, True])
def test_bad_k(built, k):
    with pytest.raises(UserError, match="k"):
        built.search(np.ones(24), k)


def test_bad_threads(built):
    with pytest.raises(UserError, match="threads"):
        built.search(np.ones(24), 1, threads=0)


def test_flat_vectors_are_refused(kind):
    with pytest.raises(UserError, match="table of vectors"):
        build_index(np.ones(5), kind=kind)


def test_truncated_file_is_refused(built, tmp_path):
    built.save(tmp_path)
    data = next(path for path in tmp_path.iterdir() if path.name != "index.json")
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    with pytest.raises(ModelFolderError, match="damaged index"):
        load_index(tmp_path)


def test_missing_file_is_refused(built, tmp_path):
    built.save(tmp_path)
    next(path for path in tmp_path.iterdir() if path.name != "index.json").unlink()
    with pytest.raises(ModelFolderError, match="damaged index"):
        load_index(tmp_path)

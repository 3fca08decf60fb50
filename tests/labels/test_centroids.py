from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from deepxc.errors import DataError, UserError
from deepxc.labels.centroids import label_centroids
from deepxc.labels.head_centroids import head_centroids
from deepxc.labels.weighted_sums import unit_rows, weighted_sums


def unit(dense):
    lengths = np.linalg.norm(dense, axis=1, keepdims=True)
    return np.divide(dense, lengths, out=np.zeros_like(dense), where=lengths > 0)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize(("how", "normalise"), [("sum", False), ("mean", False), ("sum", True), ("mean", True)])
def test_equals_the_plain_product(label_matrix, features, kind, how, normalise):
    Y = label_matrix.multiply(0.5).tocsr()
    dense = features.toarray().astype(np.float64)
    expected = Y.toarray().T @ dense
    if how == "mean":
        expected /= np.maximum(Y.toarray().sum(axis=0), 1e-9)[:, None]
    if normalise:
        expected = unit(expected)
    X = features if kind == "sparse" else features.toarray()
    found = label_centroids(Y, X, how=how, normalise=normalise)
    assert found.dtype == np.float32
    assert sparse.issparse(found) == (kind == "sparse")
    found = found.toarray() if kind == "sparse" else found
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert not found[59].any()


def test_sparse_centroids_are_canonical_whatever_the_width(label_matrix):
    for width in (1, 63, 64, 65, 1000):
        X = sparse.random(300, width, density=0.1, format="csr", dtype=np.float32, rng=np.random.default_rng(width))
        found = label_centroids(label_matrix, X, normalise=False)
        assert all(
            (np.diff(found.indices[a:b]) > 0).all() for a, b in zip(found.indptr, found.indptr[1:], strict=False)
        )
        np.testing.assert_allclose(found.toarray(), label_matrix.T @ X.toarray(), atol=1e-5)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_threads_do_not_change_a_bit(label_matrix, features, kind):
    X = features if kind == "sparse" else features.toarray()
    one, four = (label_centroids(label_matrix, X, threads=n) for n in (1, 4))
    if kind == "sparse":
        np.testing.assert_array_equal(one.indices, four.indices)
        one, four = one.data, four.data
    np.testing.assert_array_equal(one, four)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32])
def test_other_types_are_converted_in_pieces(label_matrix, dtype, monkeypatch):
    monkeypatch.setattr("deepxc.labels.weighted_sums._CHUNK_BYTES", 4 * 10 * 7)  # seven rows of ten at a time
    X = np.random.default_rng(0).integers(-5, 5, size=(300, 10)).astype(dtype)
    np.testing.assert_array_equal(weighted_sums(label_matrix.T.tocsr(), X), label_matrix.T @ X.astype(np.float32))


def test_reads_an_array_mapped_from_a_file(tmp_path, label_matrix, features):
    np.save(tmp_path / "x.npy", features.toarray())
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.testing.assert_array_equal(
        label_centroids(label_matrix, mapped), label_centroids(label_matrix, features.toarray())
    )


def test_no_texts_and_no_labels():
    assert label_centroids(sparse.csr_matrix((0, 3)), np.empty((0, 4), np.float32)).tolist() == [[0.0] * 4] * 3
    assert label_centroids(sparse.csr_matrix((5, 0)), sparse.csr_matrix((5, 4))).shape == (0, 4)
    assert label_centroids(sparse.csr_matrix((5, 3)), sparse.csr_matrix((5, 4))).nnz == 0


def test_errors(label_matrix, features):
    with pytest.raises(DataError, match="300 rows of labels for 10"):
        label_centroids(label_matrix, features[:10])
    with pytest.raises(UserError, match="median"):
        label_centroids(label_matrix, features, how="median")


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_unit_rows_leaves_zeros_alone(kind):
    rows = np.array([[3, 4], [0, 0], [0, -2]], np.float32)
    vectors = sparse.csr_matrix(rows) if kind == "sparse" else rows
    unit_rows(vectors)
    found = vectors.toarray() if kind == "sparse" else vectors
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [0, -1]])


@pytest.mark.parametrize("kind", ["sparse", "dense"])
class TestHeadCentroids:
    def test_finds_the_meanings_of_a_label(self, kind):
        # Label 1 has three far-apart meanings of unequal size, label 0 is rare, label 2 has one meaning twice over.
        rng = np.random.default_rng(2)
        meanings = np.eye(3, 12)[np.repeat([0, 1, 2], [60, 25, 15])] + 0.02 * np.abs(rng.normal(size=(100, 12)))
        X = meanings.astype(np.float32)
        Y = np.zeros((100, 3), np.float32)
        Y[:4, 0], Y[:, 1], Y[:50, 2] = 1, 1, 1
        found = head_centroids(
            sparse.csr_matrix(Y), sparse.csr_matrix(X) if kind == "sparse" else X, threshold=50, n_centres=3, seed=1
        )
        assert found.labels.tolist() == [1, 1, 1, 2, 2, 2]
        vectors = found.vectors.toarray() if kind == "sparse" else found.vectors
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
        best = (unit(X) @ vectors[:3].T).max(axis=1)
        assert best.min() > 0.99
        assert (unit(X) @ unit(X.mean(axis=0, keepdims=True)).T).min() < 0.5  # which the mean alone does not reach

    def test_more_centres_than_texts_and_no_heads(self, kind, label_matrix, features):
        X = features if kind == "sparse" else features.toarray()
        count = int(np.bincount(label_matrix.indices).max())
        found = head_centroids(label_matrix, X, threshold=count, n_centres=10_000)
        assert 1 < len(found.labels) <= count
        assert found.vectors.shape == (len(found.labels), 500)
        none = head_centroids(label_matrix, X, threshold=count + 1)
        assert none.vectors.shape == (0, 500)
        assert none.labels.tolist() == []

    def test_threads_do_not_change_the_centres(self, kind, label_matrix, features):
        X = features if kind == "sparse" else features.toarray()
        one, three = (head_centroids(label_matrix, X, threshold=30, n_centres=5, threads=n) for n in (1, 3))
        np.testing.assert_array_equal(one.labels, three.labels)
        assert abs(one.vectors - three.vectors).max() == 0

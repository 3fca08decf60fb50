"""Token vectors: shapes, seeds, accuracy against dense algebra, and files of word vectors."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from deepxc.errors import DataError, UserError
from deepxc.text.word_vectors import embed, random_projection, read_word_vectors, spectral

if TYPE_CHECKING:
    from pathlib import Path

VOCABULARY = {"algebra": 0, "of": 1, "logic": 2, "unseen": 3}
LINES = ["of 1 2 3", "Logic 7 8 9", "algebra -.5 1e-3 0", "logic 4 5 6", "other 0 0 0"]


def random_rows(rows: int, columns: int, seed: int = 0) -> sparse.csr_matrix:
    made = sparse.random(rows, columns, density=0.05, random_state=seed, format="csr", dtype=np.float32)
    made.sort_indices()
    return made


@pytest.mark.parametrize("normalize", [False, True])
def test_random_projection(normalize: bool) -> None:
    vectors = random_projection(9_000, 32, 5, normalize=normalize, threads=1)
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, random_projection(9_000, 32, 5, normalize=normalize, threads=3))
    np.testing.assert_array_equal(vectors[:5_000], random_projection(5_000, 32, 5, normalize=normalize))
    assert not np.array_equal(vectors, random_projection(9_000, 32, 6, normalize=normalize))
    assert not np.array_equal(vectors[:4_096], vectors[4_096:8_192])
    if normalize:
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    else:
        assert abs(vectors.mean()) < 0.01
        assert abs(vectors.std() - 1) < 0.01


@given(
    rows=st.integers(0, 40) | st.just(600),
    columns=st.integers(1, 30),
    dim=st.integers(1, 70),
    seed=st.integers(0, 99),
)
def test_embed_is_the_dense_product(rows: int, columns: int, dim: int, seed: int) -> None:
    X, vectors = random_rows(rows, columns, seed), random_projection(columns, dim, seed)
    expected = X.toarray() @ vectors
    np.testing.assert_allclose(embed(X, vectors, normalize=False), expected, atol=1e-4)
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    unit = np.divide(expected, lengths, out=np.zeros_like(expected), where=lengths > 0)
    np.testing.assert_allclose(embed(X, vectors), unit, atol=1e-4)


def test_embed_of_many_rows_in_threads() -> None:
    X, vectors = random_rows(10_000, 300), random_projection(300, 40)
    vectors.flags.writeable = False  # as when mapped from disk
    one = embed(X, vectors, threads=1)
    np.testing.assert_array_equal(one, embed(X, vectors, threads=4))
    np.testing.assert_allclose(embed(X, vectors, normalize=False), X @ vectors, atol=1e-4)
    np.testing.assert_allclose(embed(X[:7], vectors), one[:7], rtol=1e-6, atol=1e-7)  # few rows go another way
    np.testing.assert_array_equal(embed(X.tocsc(), vectors), one)
    with pytest.raises(UserError, match="300 columns"):
        embed(X, vectors[:5])


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_spectral_finds_the_singular_vectors(power: float) -> None:
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((300, 20)) * 0.7 ** np.arange(20) @ rng.standard_normal((20, 80))
    dense[abs(dense) < 1.0] = 0
    X = sparse.csr_matrix(dense.astype(np.float32))
    _, values, right = np.linalg.svd(X.toarray().astype(np.float64))
    found = spectral(X, 6, seed=3, power=power, passes=8, weighting="given", normalize=False).astype(np.float64)
    expected = right[:6].T * values[:6] ** power
    expected /= np.sqrt((expected**2).sum() / len(expected))
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found * signs, expected, atol=0.02 * abs(expected).max())


@pytest.mark.parametrize("weighting", ["given", "ppmi"])
def test_spectral_repeats_itself_on_any_number_of_threads(weighting: str) -> None:
    X = random_rows(400, 9_000, 1)
    one = spectral(X, 70, seed=4, weighting=weighting, threads=1)  # type: ignore[arg-type]
    np.testing.assert_array_equal(one, spectral(X, 70, seed=4, weighting=weighting, threads=3))  # type: ignore[arg-type]
    assert one.shape == (9_000, 70)
    assert np.isfinite(one).all()


@pytest.mark.parametrize("shape", [(3, 50), (50, 3), (1, 1), (5, 5)])
def test_spectral_of_a_small_matrix_fills_up_with_zeros(shape: tuple[int, int]) -> None:
    X = sparse.csr_matrix(np.ones(shape, dtype=np.float32))  # rank one
    found = spectral(X, 8, weighting="given")
    assert found.shape == (shape[1], 8)
    assert abs(found[:, 1:]).max() < 1e-2
    np.testing.assert_allclose(found[:, 0], found[0, 0], rtol=1e-3)
    assert not spectral(sparse.csr_matrix(shape, dtype=np.float32), 8).any()


def test_ppmi_brings_words_of_one_topic_together() -> None:
    topics = [["forest", "fungi", "moss"], ["logic", "proof", "lemma"]]
    names = sorted(topics[0] + topics[1])
    rng = np.random.default_rng(1)
    rows = [[names.index(w) for w in rng.choice(topics[i % 2], 2, replace=False)] for i in range(200)]
    X = sparse.csr_matrix((np.ones(400, np.float32), (np.repeat(np.arange(200), 2), np.ravel(rows))), (200, 6))
    vectors = spectral(X, 2, weighting="ppmi")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    near = vectors @ vectors.T
    forest = names.index("forest")
    assert near[forest, names.index("moss")] > 0.9
    assert near[forest, names.index("proof")] < 0.2


def write(path: Path, lines: list[str], zipped: bool = False) -> Path:
    content = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if zipped else content)
    return path


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("end", ["", " ", "\r"])
def test_word_vectors_are_read(zipped: bool, header: bool, end: str, tmp_path: Path) -> None:
    lines = [line + end for line in (["5 3", *LINES] if header else LINES)]
    read = read_word_vectors(write(tmp_path / "v.vec", lines, zipped), VOCABULARY, seed=3)
    assert read.vectors.dtype == np.float32
    np.testing.assert_allclose(read.vectors[:3], [[-0.5, 0.001, 0], [1, 2, 3], [4, 5, 6]])  # exact case wins
    assert read.found.tolist() == [True, True, True, False]
    assert read.coverage == 0.75
    assert abs(read.vectors[3]).max() <= 0.25
    again = read_word_vectors(tmp_path / "v.vec", VOCABULARY, seed=3)
    np.testing.assert_array_equal(read.vectors, again.vectors)
    assert not np.array_equal(read.vectors[3], read_word_vectors(tmp_path / "v.vec", VOCABULARY).vectors[3])


def test_case_folds_only_where_asked(tmp_path: Path) -> None:
    path = write(tmp_path / "v.txt", ["ALGEBRA 1 1", "École 2 2"])
    vocabulary = {"algebra": 0, "école": 1}
    assert read_word_vectors(path, vocabulary).found.tolist() == [True, True]
    assert read_word_vectors(path, vocabulary, fold_case=False).found.tolist() == [False, False]


def test_words_that_hold_spaces_are_skipped_not_mistaken(tmp_path: Path) -> None:
    path = write(tmp_path / "v.txt", ["of 1 2 3", ". . . 4 5 6", "at name@place 4 5 6", "logic  7 8 9"])
    read = read_word_vectors(path, VOCABULARY)
    assert read.vectors[1].tolist() == [1, 2, 3]
    assert read.vectors[2].tolist() == [7, 8, 9]


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        (["of 1 2 3", "other 1 2"], r"v\.txt:2: 2 numbers where 3"),
        (["of 1 2 3", "logic 1 2 3 4"], r"v\.txt:2: 4 numbers where 3"),
        (["of 1 2 3", "logic 1 x 3"], r"v\.txt:2: .*float"),
        (["of 1 2 3", "logic 1 nan 3"], r"v\.txt:2: not a finite"),
        (["of 1 2 3", "logic"], r"v\.txt:2: 0 numbers"),
        (["3 3", "of 1 2 3", "other 1 2 3"], r"v\.txt: 2 words where the first line promises 3"),
        (["2 4", "of 1 2 3"], r"v\.txt:2: 3 numbers where 4"),
        ([], r"v\.txt: no word vectors"),
        (["just words"], r"v\.txt:1"),
    ],
)
def test_damaged_files_are_named_with_the_line(lines: list[str], where: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=where):
        read_word_vectors(write(tmp_path / "v.txt", lines), VOCABULARY | {"words": 4, "just": 5})


def test_other_files_are_refused(tmp_path: Path) -> None:
    whole = write(tmp_path / "v.gz", LINES * 400, zipped=True).read_bytes()
    (tmp_path / "v.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damaged gzip"):
        read_word_vectors(tmp_path / "v.gz", VOCABULARY)
    with pytest.raises(UserError, match="absent"):
        read_word_vectors(tmp_path / "absent", VOCABULARY)
    with pytest.raises(DataError, match="3 dimensions where 300"):
        read_word_vectors(write(tmp_path / "v.txt", LINES), VOCABULARY, dim=300)

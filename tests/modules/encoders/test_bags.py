"""The token bag and MACH's layers against their equations, worked by hand."""

import numpy as np
import pytest
import torch
from scipy import sparse

from deepxc.errors import UserError
from deepxc.modules.encoders import MachMLP, TokenBag, encode, open_encoder
from deepxc.modules.encoders.mach_mlp import hash_columns
from deepxc.text.bag import BagOfTokens
from deepxc.text.definition import TokenSettings

RAW = TokenSettings(min_df=1, idf=False, normalize=False)


def learned(encoder, split):
    return encoder, encoder.learn(split)


def test_a_text_is_the_rectified_sum_of_its_weighted_token_vectors(splits):
    split = splits["texts"].take([3, 8])  # "forest fungi", "the birds"
    words = {"forest": [1.0, -2.0], "fungi": [2.0, 1.0], "the": [-1.0, 0.5], "birds": [0.0, 3.0]}
    start = lambda tokens: np.array([words[token] for token in tokens])  # noqa: E731
    encoder, inputs = learned(TokenBag(2, start=start, tokens=RAW), split)
    assert encode(encoder, inputs).tolist() == [[3.0, 0.0], [0.0, 3.5]]
    encoder, inputs = learned(TokenBag(2, start=start, tokens=RAW, activation="none"), split)
    assert encode(encoder, inputs).tolist() == [[3.0, -1.0], [-1.0, 3.5]]


def test_weights_are_those_of_the_bag(splits):
    split = splits["texts"]
    encoder, inputs = learned(TokenBag(16, start="projection", activation="none"), split)
    X = BagOfTokens().fit_transform(split.texts)
    expected = X @ encoder.table.weight.numpy()
    np.testing.assert_allclose(encode(encoder, inputs), expected, rtol=1e-5, atol=1e-6)


def test_unknown_tokens_give_nothing(splits):
    encoder, _ = learned(TokenBag(8), splits["texts"])
    assert not encode(encoder, encoder.read(["zzqx", ""])).any()


@pytest.mark.parametrize("start", ["random", "projection", "spectral"])
def test_starts(start, splits):
    vectors = learned(TokenBag(8, start=start, seed=3), splits["texts"])[0].table.weight
    again = learned(TokenBag(8, start=start, seed=3, threads=1), splits["texts"])[0].table.weight
    other = learned(TokenBag(8, start=start, seed=4), splits["texts"])[0].table.weight
    assert torch.equal(vectors, again)
    assert start == "spectral" or not torch.equal(vectors, other)
    if start != "random":
        torch.testing.assert_close(vectors.norm(dim=1), torch.ones(len(vectors)))


def test_start_from_a_file_of_word_vectors(splits, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("history 1 2 3\nbirds -1 0 1\n", encoding="utf-8")
    encoder, _ = learned(TokenBag(3, start=path), splits["texts"])
    row = encoder.reader.definition.vocabulary["history"]
    assert encoder.table.weight[row].tolist() == [1, 2, 3]
    encoder.write(tmp_path / "saved")
    path.unlink()
    assert torch.equal(open_encoder(tmp_path / "saved").table.weight, encoder.table.weight)


def test_given_vectors_are_copied_and_survive_saving(splits, tmp_path):
    split = splits["sparse"]
    vectors = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
    encoder, _ = learned(TokenBag(4, start=vectors), split)
    kept = vectors.copy()
    encoder.table.weight += 1
    assert np.array_equal(vectors, kept)
    encoder.write(tmp_path)
    opened = open_encoder(tmp_path)
    assert np.array_equal(opened.state()["table.weight"], vectors + 1)
    with pytest.raises(UserError, match="Give it again"):
        opened.learn(split)


def test_features_are_scaled_to_unit_rows_unless_told_not_to(splits):
    split, vectors = splits["sparse"], np.eye(30, dtype=np.float32)
    lengths = lambda encoder: np.linalg.norm(encode(*learned(encoder, split)), axis=1)  # noqa: E731
    filled = np.diff(split.X.indptr) > 0
    np.testing.assert_allclose(lengths(TokenBag(30, start=vectors)), filled, rtol=1e-5)
    raw = TokenBag(30, start=vectors, tokens={"normalize": False})
    np.testing.assert_allclose(encode(*learned(raw, split)), split.X.toarray(), rtol=1e-6)


def test_mach_is_its_layers_over_the_bag(splits):
    encoder, inputs = learned(MachMLP(3, hidden=(5, 4)), splits["texts"])
    with torch.no_grad():
        encoder.bias += torch.randn(5, generator=torch.Generator().manual_seed(0))
    first, second = encoder.layers[0], encoder.layers[2]
    x = np.maximum(inputs.matrix @ encoder.table.weight.numpy() + encoder.bias.detach().numpy(), 0)
    for layer in (first, second):
        x = np.maximum(x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy(), 0)
    np.testing.assert_allclose(encode(encoder, inputs), x, rtol=1e-4, atol=1e-6)


def test_hashing_adds_up_the_columns_that_meet():
    X = sparse.random(20, 50, 0.2, "csr", rng=np.random.default_rng(1), dtype=np.float32)
    hashed = hash_columns(X, 7, seed=2)
    assert hashed.shape == (20, 7)
    np.testing.assert_allclose(hashed.sum(axis=1), X.sum(axis=1), rtol=1e-5)
    each = hash_columns(sparse.csr_matrix(sparse.eye_array(50, dtype=np.float32)), 7, seed=2)
    assert each.data.tolist() == [1] * 50
    np.testing.assert_allclose(hashed.toarray(), (X @ each).toarray(), rtol=1e-5)
    assert len(set(each.indices.tolist())) == 7


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda s: TokenBag(activation="tanh"), "neither 'relu' nor 'none'"),
        (lambda s: TokenBag().read(["x"]), "Call learn first"),
        (lambda s: TokenBag(start="spectrl").learn(s["texts"]), "neither a file .* nor one of random"),
        (lambda s: TokenBag(start="words.vec").learn(s["sparse"]), "no words to look up"),
        (lambda s: TokenBag(3, start=np.ones((2, 3))).learn(s["texts"]), r"shape \(2, 3\) where"),
        (lambda s: TokenBag(1, start=np.full((30, 1), np.nan)).learn(s["sparse"]), "not finite"),
        (lambda s: TokenBag().learn(s["dense"]), "dense features where a sparse matrix belongs"),
        (lambda s: learned(TokenBag(), s["sparse"])[0].read(["x"]), "texts, but the encoder learned from features"),
        (
            lambda s: learned(TokenBag(), s["texts"])[0].read(s["sparse"].X),
            "matrix, but the encoder learned from texts",
        ),
        (lambda s: learned(TokenBag(), s["sparse"])[0].read(s["sparse"].X[:, :9]), "9 columns where 30"),
        (lambda s: MachMLP(hidden=()), "at least one width"),
        (lambda s: MachMLP(hashed=9, start="spectral"), "start='random'"),
    ],
)
def test_mistakes_are_told(attempt, message, splits):
    with pytest.raises(UserError, match=message):
        attempt(splits)

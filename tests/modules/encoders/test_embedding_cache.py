"""Embeddings on disk: what `encode` gives, once only, taken up after a kill, never those of other weights or texts."""

import numpy as np
import pytest

from deepxc.modules.encoders import TokenBag, encode
from deepxc.modules.encoders import embedding_cache as cache
from deepxc.modules.encoders.embedding_cache import encode_cached, fingerprint


@pytest.fixture
def bag(splits):
    encoder = TokenBag(8, start="random")
    return encoder, encoder.learn(splits["texts"])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(cache, "_BLOCK", 3)


def test_the_same_embeddings_and_mapped(bag, tmp_path):
    found = encode_cached(*bag, tmp_path)
    assert isinstance(found, np.memmap)
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, encode(*bag).astype(np.float16))


def counted(monkeypatch):
    calls = []
    monkeypatch.setattr(cache, "encode", lambda *given, **named: calls.append(1) or encode(*given, **named))
    return calls


def test_encoded_once(bag, tmp_path, monkeypatch):
    before = encode_cached(*bag, tmp_path)
    calls = counted(monkeypatch)
    np.testing.assert_array_equal(encode_cached(*bag, tmp_path), before)
    assert not calls


def test_goes_on_where_it_was_killed(bag, tmp_path, monkeypatch):
    done = []

    def dies(*given, **named):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(1)
        return encode(*given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(cache, "encode", dies)
        with pytest.raises(KeyboardInterrupt):
            encode_cached(*bag, tmp_path)
    calls = counted(monkeypatch)
    found = encode_cached(*bag, tmp_path)
    np.testing.assert_array_equal(found, encode(*bag).astype(np.float16))
    assert len(calls) == -(-len(bag[1]) // 3) - 2


def test_other_weights_or_texts_are_other_files(bag, splits):
    encoder, inputs = bag
    name = fingerprint(encoder, inputs)
    assert fingerprint(encoder, encoder.read(list(splits["texts"].texts)[1:])) != name
    encoder.table.weight[0, 0] += 1
    assert fingerprint(encoder, inputs) != name


def test_a_damaged_file_is_made_anew(bag, tmp_path):
    before = np.array(encode_cached(*bag, tmp_path))
    (file,) = tmp_path.glob("*.f16")
    file.write_bytes(b"short")
    np.testing.assert_array_equal(encode_cached(*bag, tmp_path), before)


def test_no_texts(bag, tmp_path):
    encoder, _ = bag
    assert encode_cached(encoder, encoder.read([]), tmp_path).shape == (0, 8)

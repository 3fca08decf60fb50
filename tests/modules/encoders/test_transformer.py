"""The transformer encoder on a tiny BERT made on the spot; skipped where the package transformers is missing."""

import sys

import numpy as np
import pytest
import torch

from deepxc.errors import UserError
from deepxc.modules.encoders import TransformerEncoder, encode, open_encoder
from deepxc.testing.encoders import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_conforms(check, pooling, tiny_transformer, splits):
    check(lambda: TransformerEncoder(tiny_transformer, max_length=16, pooling=pooling), splits["texts"])


def test_a_frozen_one_does_not_train(tiny_transformer, splits):
    encoder = TransformerEncoder(str(tiny_transformer), trained=False)
    inputs = encoder.learn(splits["texts"])
    assert not encoder(inputs.take(np.arange(3))).requires_grad


def test_mean_pooling_is_that_of_the_models_own_output(tiny_transformer, splits):
    transformers = pytest.importorskip("transformers")
    encoder = TransformerEncoder(tiny_transformer)
    inputs = encoder.learn(splits["texts"])
    model = transformers.AutoModel.from_pretrained(tiny_transformer).eval()
    batch = inputs.take(np.array([3]))
    with torch.no_grad():
        states = model(input_ids=torch.from_numpy(batch.ids)).last_hidden_state
    np.testing.assert_allclose(encode(encoder, inputs)[3], states[0].mean(0).numpy(), rtol=1e-4, atol=1e-5)


def test_opens_without_its_source(tiny_transformer, splits, tmp_path):
    import shutil

    source = shutil.copytree(tiny_transformer, tmp_path / "source")
    encoder = TransformerEncoder(source)
    before = encode(encoder, encoder.learn(splits["texts"]))
    encoder.write(tmp_path / "saved")
    shutil.rmtree(source)
    opened = open_encoder(tmp_path / "saved")
    assert np.array_equal(encode(opened, opened.read(splits["texts"].texts)), before)


def test_a_folder_without_a_model(tiny_transformer, splits, tmp_path):
    (tmp_path / "tokenizer.json").write_bytes((tiny_transformer / "tokenizer.json").read_bytes())
    with pytest.raises(UserError, match="no model found"):
        TransformerEncoder(tmp_path).learn(splits["texts"])


def test_without_the_package_the_extra_is_named(monkeypatch, splits):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match=r"pip install 'deepxc\[transformers\]'"):
        TransformerEncoder("anything").learn(splits["texts"])


def test_buckets_of_like_length_change_nothing(tiny_transformer, splits, monkeypatch):
    from deepxc.modules.encoders import transformer

    encoder = TransformerEncoder(tiny_transformer).eval()
    encoder.learn(splits["texts"])
    inputs = encoder.read(["one", "", "a longer text of several words", "two words", "three plain words", "one more"])
    batch = inputs.take(np.arange(6))
    with torch.no_grad():
        whole = encoder(batch)
        monkeypatch.setattr(transformer, "_BUCKET", 2)
        np.testing.assert_allclose(encoder(batch), whole, atol=1e-5)


def test_native_precision_is_close(tiny_transformer, splits):
    exact, native = (
        encode(encoder, encoder.learn(splits["texts"]))
        for encoder in (TransformerEncoder(tiny_transformer, precision=p) for p in ("float32", "native"))
    )
    cosines = (exact * native).sum(1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(native, axis=1)
    assert cosines.min() > 0.999
    with pytest.raises(UserError, match="neither"):
        TransformerEncoder(tiny_transformer, precision="half")


def test_a_hub_name_without_network_names_the_local_way(splits, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match="local folder"):
        TransformerEncoder("sentence-transformers/all-MiniLM-L12-v2").learn(splits["texts"])

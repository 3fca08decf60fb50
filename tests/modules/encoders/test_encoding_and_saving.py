"""All rows at once, saved folders, dense features and images."""

import json

import numpy as np
import pytest
import torch

from deepxc.errors import ModelFolderError, UserError
from deepxc.modules.encoders import DenseFeatures, ImageResNet, StoredEncoder, TokenBag, WordGRU, encode, open_encoder
from deepxc.modules.encoders.stored import ABOUT, KINDS, TENSORS

TOKENS = {"min_df": 1}


@pytest.fixture
def gru(splits):
    encoder = WordGRU(6, word_dim=4, tokens=TOKENS)
    return encoder, encoder.learn(splits["texts"])


def test_rows_of_like_length_share_a_batch_and_come_back_in_order(gru):
    encoder, inputs = gru
    seen = []
    forward = encoder.forward
    encoder.forward = lambda batch: seen.append(batch.lengths.tolist()) or forward(batch)
    features = encode(encoder, inputs, batch_size=4)
    flat = [length for batch in seen for length in batch]
    assert flat == sorted(inputs.lengths.tolist(), reverse=True)
    np.testing.assert_allclose(features, encode(encoder, inputs, batch_size=100), rtol=1e-5, atol=1e-6)
    assert features.dtype == np.float32


def test_threads_and_modes_are_as_before(gru):
    encoder, inputs = gru
    encoder.train()
    encoder.gru.eval()
    torch.set_num_threads(1)
    one = encode(encoder, inputs, threads=1)
    two = encode(encoder, inputs, threads=2)
    np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
    assert torch.get_num_threads() == 1
    assert encoder.training
    assert not encoder.gru.training
    assert not encoder.table.pending


def test_no_rows(gru):
    encoder, _ = gru
    assert encode(encoder, encoder.read([])).shape == (0, 6)
    with pytest.raises(UserError, match="threads"):
        encode(encoder, encoder.read(["x"]), threads=0)


def test_dense_features_pass_through(splits, tmp_path):
    split = splits["dense"]
    encoder = DenseFeatures()
    assert np.array_equal(encode(encoder, encoder.learn(split)), split.X)
    np.save(tmp_path / "x.npy", split.X.astype(np.float16))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.array_equal(encode(encoder, encoder.read(mapped)), split.X.astype(np.float16).astype(np.float32))
    with pytest.raises(UserError, match="5 features a row where 6"):
        encoder.read(split.X[:, :5])
    with pytest.raises(UserError, match="no dense features"):
        DenseFeatures().learn(splits["texts"])


def test_images_are_normalised_by_what_train_images_had(splits):
    split = splits["images"]
    encoder = ImageResNet((4, 4, 4, 4), small=True)
    inputs = encoder.learn(split)
    np.testing.assert_allclose(encoder.mean.numpy(), split.X.mean(axis=(0, 2, 3)), rtol=1e-5)
    np.testing.assert_allclose(encoder.deviation.numpy(), split.X.std(axis=(0, 2, 3)), rtol=1e-4)
    assert inputs.take(np.array([0])).dtype == np.uint8
    assert encode(encoder, encoder.read(split.X[:, :, :12, :9])).shape == (10, 4)
    with pytest.raises(UserError, match="1 channels where 3"):
        encoder.read(split.X[:, :1])
    with pytest.raises(UserError, match="no images"):
        encoder.read(split.X[0])


def test_the_image_network_is_resnet_18(splits):
    encoder = ImageResNet()
    encoder.learn(splits["images"])
    assert sum(p.numel() for p in encoder.parameters()) == 11_689_512 - 513_000  # less the usual last layer of 1,000
    assert {"conv1.weight", "layer1.1.bn2.running_var", "layer4.0.downsample.0.weight"} <= encoder.state().keys()


def saved(splits, folder):
    encoder = TokenBag(4, tokens=TOKENS)
    encoder.learn(splits["texts"])
    encoder.write(folder)


def about(folder, **changes):
    document = json.loads((folder / ABOUT).read_text())
    (folder / ABOUT).write_text(json.dumps(document | changes))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / ABOUT).unlink(), "no saved encoder"),
        (lambda folder: (folder / ABOUT).write_text("{"), "damaged"),
        (lambda folder: (folder / ABOUT).write_text("{}"), "parts are missing"),
        (lambda folder: about(folder, format=99), "Update deepxc"),
        (lambda folder: about(folder, kind="mine"), "Import the module that defines it"),
        (lambda folder: about(folder, settings={"colour": "red"}), "damaged .*colour"),
        (lambda folder: about(folder, sizes={"n_tokens": 3}), "do not fit this encoder: table.weight"),
        (lambda folder: (folder / TENSORS).unlink(), "tensors are missing"),
        (lambda folder: (folder / TENSORS).write_bytes(b"xx"), "not a whole safetensors file"),
    ],
)
def test_damaged_folders_are_told(damage, message, splits, tmp_path):
    saved(splits, tmp_path)
    damage(tmp_path)
    with pytest.raises(ModelFolderError, match=message):
        open_encoder(tmp_path)


def test_nothing_is_saved_before_learning(tmp_path):
    with pytest.raises(UserError, match="Call learn first"):
        TokenBag().write(tmp_path)


def test_a_kind_of_ones_own_is_opened_too(splits, tmp_path):
    class Doubled(DenseFeatures):
        kind = "test-doubled"

        def forward(self, batch):
            return 2 * super().forward(batch)

    try:
        encoder = Doubled()
        encoder.learn(splits["dense"])
        encoder.write(tmp_path)
        opened = open_encoder(tmp_path)
        assert isinstance(opened, Doubled)
        assert np.array_equal(encode(opened, opened.read(splits["dense"].X)), 2 * splits["dense"].X)
        with pytest.raises(TypeError, match=r"has the kind .*Doubled"):
            type("Other", (StoredEncoder,), {"kind": "test-doubled"})
        with pytest.raises(ModelFolderError, match="not 'dense'"):
            DenseFeatures.read_from(tmp_path)
    finally:
        KINDS.pop("test-doubled")


def test_taking_over_a_state_keeps_the_parameters_that_optimisers_hold(gru):
    encoder, inputs = gru
    before, held = encode(encoder, inputs), next(encoder.gru.parameters())
    state = {name: array.copy() for name, array in encoder.state().items()}
    with torch.no_grad():
        held += 1
        encoder.table.weight += 1
    encoder.load_state(state)
    assert next(encoder.gru.parameters()) is held
    assert np.array_equal(encode(encoder, inputs), before)

"""InceptionXML's encoder: the paper's sizes, its equations written out, what depends on what, texts of any length."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deepxc.errors import UserError
from deepxc.modules.dropout import byte_dropout
from deepxc.modules.encoders.enhancement import EmbeddingEnhancement
from deepxc.modules.encoders.inception import InceptionEncoder
from deepxc.modules.encoders.strided import StridedConvolutions

TOKENS = {"min_df": 1}


@pytest.fixture(scope="module")
def paper(splits):
    """The paper's sizes."""
    encoder = InceptionEncoder(tokens=TOKENS, start="projection")
    encoder.learn(splits["texts"])
    return encoder.eval()


def test_the_paper_s_sizes(paper):
    words = torch.randn(2, 32, 300)
    enhanced = paper.enhancement(words)
    assert enhanced.shape == (2, 300, 32)
    seen = paper.branches(enhanced)
    assert seen.shape == (2, 75, 96)
    assert paper.last(seen).shape == (2, 15, 32)
    assert paper.dim == 480


def test_as_many_parameters_as_the_paper_counts(paper):
    """400 K in InceptionXML with one square layer over the features, 630 K in InceptionXML+ with two."""
    own = sum(parameter.numel() for parameter in paper.parameters())
    assert round(own + 480 * 480, -4) == 400_000
    assert round(own + 2 * 480 * 480, -4) == 630_000


def test_a_feature_sees_a_quarter_of_the_dimensions(paper):
    enhanced = torch.randn(1, 300, 32, requires_grad=True)
    responses = paper.last(paper.branches(enhanced))
    responses[0, 7].sum().backward()
    seen = torch.nonzero(enhanced.grad[0].abs().sum(1)).ravel()
    assert len(seen) == 16 * 4 + 16 - 4  # 16 windows, 4 apart, of 16 dimensions at most
    assert len(seen) / 300 == pytest.approx(0.25, abs=0.01)
    assert int(seen[0]) == 7 * 16 - 6


def test_the_enhancement_is_the_paper_s_equations_written_out():
    torch.manual_seed(0)
    module = EmbeddingEnhancement(12, 5, 4).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    words = torch.randn(3, 5, 12, dtype=torch.float64)
    expected = []
    for E in words:
        attended = E + module.amounts[0] * 12**-0.5 * (E @ E.T) @ (E @ module.of_words)
        weights = attended.T @ E * 12**-0.5  # dimensions x dimensions
        again = (attended.T + module.amounts[1] * weights @ (E.T @ module.of_dimensions)).T
        expected.append((module.projection.weight @ again).T + module.projection.bias)
    torch.testing.assert_close(module(words), torch.stack(expected))
    by_parts = module.attend_dimensions(module.attend_words(words), words).transpose(1, 2)
    torch.testing.assert_close(module.projection(by_parts), torch.stack(expected))


@given(seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_each_attention_treats_what_it_attends_over_as_a_set(seed):
    torch.manual_seed(seed)
    module = EmbeddingEnhancement(8, 6, 3).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    words, attended = torch.randn(2, 2, 6, 8, dtype=torch.float64)
    order = torch.randperm(6)
    torch.testing.assert_close(module.attend_words(words[:, order]), module.attend_words(words)[:, order])
    order = torch.randperm(8)
    turned = module.attend_dimensions(attended[:, :, order], words[:, :, order])
    torch.testing.assert_close(turned, module.attend_dimensions(attended, words)[:, :, order])


@pytest.mark.parametrize("positions", [8, 12, 36])
@pytest.mark.parametrize("widths", [(4,), (4, 8, 16), (6,)])
def test_strided_convolutions_are_pytorch_s_going_round(positions, widths):
    torch.manual_seed(1)
    module = StridedConvolutions(3, 5, widths).double()
    x = torch.randn(2, positions, 3, dtype=torch.float64, requires_grad=True)
    parts = []
    for weight in module.filters:
        around = (weight.shape[2] - 4) // 2
        index = torch.arange(-around, positions + around) % positions
        parts.append(torch.nn.functional.conv1d(x.transpose(1, 2)[:, :, index], weight, stride=4))
    expected = torch.cat(parts, 1).transpose(1, 2)
    out = module(x)
    torch.testing.assert_close(out, expected)
    weights = torch.randn_like(out)
    wanted = [x, *module.filters]
    for ours, theirs in zip(
        torch.autograd.grad((out * weights).sum(), wanted),
        torch.autograd.grad((expected * weights).sum(), wanted),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


def test_predictions_follow_the_filters_as_they_are_now():
    module = StridedConvolutions(3, 5, (4, 8))
    x = torch.randn(2, 12, 3)
    for _ in range(2):
        with torch.no_grad():
            torch.testing.assert_close(module(x), module.requires_grad_()(x))
            for weight in module.filters:
                weight.mul_(2)
        expected = module(x).detach()
        with torch.no_grad():
            torch.testing.assert_close(module(x), expected)


@pytest.mark.parametrize("positions", [16, 19, 23, 32])
def test_strided_convolutions_are_pytorch_s_staying_inside(positions):
    module = StridedConvolutions(3, 5, (16,), circular=False).double()
    x = torch.randn(2, positions, 3, dtype=torch.float64, requires_grad=True)
    expected = torch.nn.functional.conv1d(x.transpose(1, 2), module.filters[0], stride=4).transpose(1, 2)
    out = module(x)
    torch.testing.assert_close(out, expected)
    ours, theirs = (torch.autograd.grad(y.square().sum(), x)[0] for y in (out, expected))
    torch.testing.assert_close(ours, theirs)


def test_texts_of_no_word_one_word_and_five_hundred(paper):
    texts = ["", "algebra", " ".join(["algebra", "logic"] * 250), "algebra logic " * 16]
    inputs = paper.read(texts)
    with torch.no_grad():
        features = paper(inputs.take(np.arange(4)))
    assert torch.isfinite(features).all()
    assert inputs.lengths.tolist() == [0, 1, 32, 32]
    torch.testing.assert_close(features[2], features[3])  # what is beyond the 32nd word is not read
    assert not torch.allclose(features[0], features[1])


def test_the_length_goes_by_the_texts_and_stop_words_are_left_out(splits, tmp_path):
    encoder = InceptionEncoder(word_dim=64, length=0, tokens=TOKENS, stop_words=["the", "of"], start="projection")
    inputs = encoder.learn(splits["texts"])
    assert inputs.ids.shape[1] == 8  # the longest of the titles has seven words but "the" and "of"
    assert encoder.read(["the empire of the birds"]).lengths.tolist() == [2]
    encoder.write(tmp_path)
    opened = InceptionEncoder.read_from(tmp_path)
    assert opened.read(["the empire of the birds"]).lengths.tolist() == [2]
    assert opened.enhancement.length == 8


def test_half_precision_in_training_is_close_to_full(splits):
    made = {}
    for operands in ("float32", "bfloat16"):
        encoder = InceptionEncoder(word_dim=64, word_dropout=0, dropout=0, tokens=TOKENS, operands=operands)
        inputs = encoder.learn(splits["texts"])
        features = encoder.train()(inputs.take(np.arange(len(inputs))))
        features.square().mean().backward()
        assert features.dtype == torch.float32
        made[operands] = features.detach()
    gap = (made["float32"] - made["bfloat16"]).abs().mean()
    assert gap < 0.05 * made["float32"].abs().mean()


def test_byte_dropout_keeps_the_expectation():
    torch.manual_seed(0)
    x = torch.ones(1000, 40)
    dropped = byte_dropout(x, 0.25, training=True)
    assert dropped.unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert dropped.mean().item() == pytest.approx(1, abs=0.02)
    assert byte_dropout(x, 0.25, training=False) is x
    assert byte_dropout(x, 0.0, training=True) is x


@pytest.mark.parametrize("setting", [{"word_dim": 66}, {"word_dim": 32}, {"operands": "float16"}])
def test_sizes_that_cannot_be_are_refused(setting):
    with pytest.raises(UserError):
        InceptionEncoder(**setting)

"""XML-CNN and the recurrent network against plain loops."""

import numpy as np
import pytest
import torch

from deepxc.errors import UserError
from deepxc.modules.encoders import WordGRU, XmlCNN, encode
from deepxc.modules.encoders.gru import packed_sequence
from deepxc.modules.encoders.word_sequences import SequenceInputs
from deepxc.modules.encoders.xml_cnn import parts_of

TOKENS = {"min_df": 1}


def test_a_batch_numbers_its_distinct_words():
    inputs = SequenceInputs(np.array([[7, 5, 7, 99], [99, 99, 99, 99], [5, 99, 99, 99]], np.int32), np.array([3, 0, 1]))
    batch = inputs.take(np.array([0, 1, 2]))
    assert batch.words.tolist() == [5, 7]
    assert batch.places.tolist() == [1, 0, 1, 0]
    assert batch.lengths.tolist() == [3, 0, 1]
    assert inputs.take(np.array([1])).places.tolist() == []


def test_repeated_words_have_one_gradient_row(splits):
    encoder = XmlCNN(4, word_dim=3, filters=2, tokens=TOKENS)
    batch = encoder.learn(splits["texts"]).take(np.array([7]))  # roman roads roman walls roman baths
    encoder.word_vectors(batch).sum().backward()
    rows, gradient = encoder.table.take_gradient()
    roman = encoder.reader.definition.vocabulary["roman"]
    assert gradient[rows.tolist().index(roman)].tolist() == [3, 3, 3]
    assert len(rows) == 4


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_parts_divide_a_texts_own_words(parts):
    lengths = np.arange(9)
    places, sizes = parts_of(lengths, parts)
    assert len(sizes) == 9 * parts
    assert (sizes.reshape(9, parts)[1:] > 0).all()
    text = np.repeat(np.arange(9), lengths)  # of each word
    assert np.array_equal(text[places], np.repeat(np.repeat(np.arange(9), parts), sizes))
    assert np.array_equal(np.unique(places), np.arange(lengths.sum()))
    even = (lengths % parts == 0)[text]
    assert (np.bincount(places)[even] == 1).all()


def test_packed_sequences_are_pytorchs():
    lengths = np.array([2, 5, 1, 5, 3])
    words = torch.randn(16, 4)
    padded = torch.nn.utils.rnn.pad_sequence(list(words.split(lengths.tolist())), batch_first=True)
    expected = torch.nn.utils.rnn.pack_padded_sequence(
        padded, torch.from_numpy(lengths), batch_first=True, enforce_sorted=False
    )
    packed = packed_sequence(words, lengths)
    assert torch.equal(packed.batch_sizes, expected.batch_sizes)
    unpacked = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)[0]
    assert torch.equal(unpacked, padded)


def test_xml_cnn_is_its_filters_over_each_text(splits):
    encoder = XmlCNN(5, word_dim=3, widths=(2, 3), filters=2, parts=2, tokens=TOKENS, seed=4)
    inputs = encoder.learn(splits["texts"])
    features = encode(encoder, inputs)
    table = encoder.table.weight.numpy()
    for row, (ids, length) in enumerate(zip(inputs.ids, inputs.lengths, strict=True)):
        words = table[ids[:length]]
        pooled = []
        for convolution in encoder.convolutions:
            weight, bias = convolution.weight.detach().numpy(), convolution.bias.detach().numpy()
            width = weight.shape[2]
            padded = np.vstack([words, np.zeros((width - 1, 3))])
            responses = [bias + np.einsum("wd,fdw->f", padded[i : i + width], weight) for i in range(length)]
            halves = (responses[: -(-length // 2)], responses[length // 2 :])
            pooled.append([np.maximum(np.max(half, axis=0), 0) if half else np.zeros(2) for half in halves])
        flat = np.concatenate([half for halves in zip(*pooled, strict=True) for half in halves])
        layer = encoder.bottleneck
        expected = np.maximum(layer.weight.detach().numpy() @ flat + layer.bias.detach().numpy(), 0)
        np.testing.assert_allclose(features[row], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_a_recurrent_text_is_the_state_after_its_last_word(bidirectional, splits):
    encoder = WordGRU(4, word_dim=3, bidirectional=bidirectional, tokens=TOKENS)
    inputs = encoder.learn(splits["texts"])
    features = encode(encoder, inputs)
    for row, (ids, length) in enumerate(zip(inputs.ids, inputs.lengths, strict=True)):
        if not length:
            assert not features[row].any()
            continue
        with torch.no_grad():
            outputs, _ = encoder.gru(encoder.table.weight[torch.from_numpy(ids[:length])][None])
        half = 2 if bidirectional else 4
        expected = torch.cat([outputs[0, -1, :half], outputs[0, 0, half:]])
        np.testing.assert_allclose(features[row], expected.numpy(), rtol=1e-4, atol=1e-6)


def test_words_start_from_the_same_vectors_as_a_bags_tokens(splits):
    encoder = XmlCNN(4, word_dim=3, filters=2, start=lambda words: np.array([[len(w), 0, 1] for w in words]))
    encoder.learn(splits["texts"])
    vocabulary = encoder.reader.definition.vocabulary
    assert encoder.table.weight[vocabulary["history"]].tolist() == [7, 0, 1]
    assert not encoder.table.weight[encoder.reader.unknown_id].any()


def test_dropout_only_in_training(splits):
    encoder = XmlCNN(32, word_dim=4, filters=8, tokens=TOKENS)
    batch = encoder.learn(splits["texts"]).take(np.arange(6))
    encoder.train()
    assert not torch.equal(encoder(batch), encoder(batch))
    encoder.eval()
    assert torch.equal(encoder(batch), encoder(batch))


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda s: XmlCNN(widths=()), "above 0"),
        (lambda s: WordGRU(5), "even number"),
        (lambda s: XmlCNN().learn(s["sparse"]), "XmlCNN reads texts"),
        (lambda s: WordGRU().read(["x"]), "Call learn first"),
    ],
)
def test_mistakes_are_told(attempt, message, splits):
    with pytest.raises(UserError, match=message):
        attempt(splits)

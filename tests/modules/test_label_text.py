"""DECAF's parts by hand: embedding block, combination, classifiers from text and refinement, cluster classifiers."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from deepxc.errors import DataError, UserError
from deepxc.modules.classifiers.cluster_text import ClusterText
from deepxc.modules.classifiers.label_text import LabelText
from deepxc.modules.encoders.bags import BagInputs
from deepxc.modules.encoders.token_bag import TokenBag
from deepxc.modules.tables import RowTable
from deepxc.modules.transfers.embedding_block import Combination, EmbeddingBlock
from deepxc.modules.transfers.residual import SpectralResidual
from deepxc.modules.transfers.saving import block_tensors, open_block
from deepxc.modules.transfers.spectral import spectral_norm
from deepxc.testing.classifiers import check_classifier

TEXTS = np.array([[1, 1, 0, 0], [0, 1, 0, 0.5], [0, 0, 0, 0], [0, 1, 0, 0.5], [0, 0, 2, 0]], np.float32)
"""Labels x tokens: labels 0 and 1 share token 1, label 2 says nothing, label 3 says what label 1 says."""
TOKENS = np.array([[1.0, -2.0], [0.5, 4.0], [-3.0, 1.0], [2.0, 2.0]], np.float32)


def encoder(vectors=TOKENS):
    bag = TokenBag(vectors.shape[1], activation="none")
    bag.size(n_tokens=len(vectors))
    bag.table = RowTable(torch.tensor(vectors))
    return bag


def texts(rows=TEXTS):
    return BagInputs(sparse.csr_matrix(np.asarray(rows, np.float32)))


def started(**named):
    labels = named.pop("labels", TEXTS)
    block = EmbeddingBlock(2, dropout=0.0)
    classifier = LabelText(encoder(), texts(labels), block, **named).eval()
    classifier.start(len(labels), 2, 0)
    return classifier


def test_the_combination_by_hand():
    gates = Combination(2)
    a, b = torch.tensor([[2.0, 4.0]]), torch.tensor([[1.0, -1.0]])
    assert gates(a, b).tolist() == [[1.5, 1.5]]  # both gates half open
    with torch.no_grad():
        gates.alpha.copy_(torch.tensor([np.log(3), 0.0]))  # sigmoid 3/4
        gates.beta.copy_(torch.tensor([0.0, -np.log(4)]))  # sigmoid 1/5
    np.testing.assert_allclose(gates(a, b).detach(), [[0.75 * 2 + 0.5, 0.5 * 4 - 0.2]], rtol=1e-6)


def test_the_embedding_block_by_hand():
    block = EmbeddingBlock(2, bound=1.0, dropout=0.0).eval()
    with torch.no_grad():
        block.weight.copy_(torch.tensor([[0.0, 0.5], [0.25, 0.0]]))
        block.combination.alpha.copy_(torch.tensor([np.log(3), 0.0]))
    block.settle()
    r = torch.tensor([[2.0, -4.0], [1.0, 2.0]])
    # R relu(r): (0, .5 * 0) -> row 0: [.5 * 0, .25 * 2]; row 1: [.5 * 2, .25 * 1]
    expected = [[0.75 * 2 + 0.5 * 0, 0.5 * -4 + 0.5 * 0.5], [0.75 * 1 + 0.5 * 1, 0.5 * 2 + 0.5 * 0.25]]
    np.testing.assert_allclose(block(r).detach(), expected, rtol=1e-6)
    block.rectified = True
    np.testing.assert_allclose(block(r).detach(), np.maximum(expected, 0), rtol=1e-6)


def test_a_fresh_block_is_half_the_sum_and_half_its_rectified_self():
    r = torch.tensor([[2.0, -4.0]])
    assert EmbeddingBlock(2, dropout=0.0).eval()(r).tolist() == [[2.0, -2.0]]


def test_training_keeps_the_blocks_norm_at_its_bound():
    block = EmbeddingBlock(12, dropout=0.0)
    optimiser = torch.optim.Adam(block.parameters(), 0.05)
    x = torch.randn(64, 12, generator=torch.Generator().manual_seed(0))
    for _ in range(60):
        optimiser.zero_grad()
        (-block(x).square().mean()).backward()
        optimiser.step()
    assert spectral_norm(block.weight) > 1
    assert spectral_norm(torch.from_numpy(block.matrix())) < 1.1
    block.settle()
    assert spectral_norm(block.weight) <= 1


def test_both_of_a_blocks_relus_have_dropout_behind_them():
    block = EmbeddingBlock(50, rectified=True, dropout=0.5)
    ones = torch.ones(400, 50)
    out = block(ones)
    assert 0.4 < float((out == 0).float().mean()) < 0.6  # the outer one blanks half
    assert set(np.round(out.detach().unique().numpy(), 4)) == {0.0, 1.0, 3.0}  # (.5 + .5 * 0 or 2) * 2


@given(seed=st.integers(0, 99), count=st.integers(1, 6))
@settings(max_examples=20, deadline=None)
def test_the_sum_of_embeddings_is_the_embedding_of_each_summed(seed, count):
    rng = np.random.default_rng(seed)
    block = EmbeddingBlock(4, dropout=0.0, seed=seed).eval()
    with torch.no_grad():
        block.weight.copy_(torch.from_numpy(rng.standard_normal((4, 4)) / 8))
        block.combination.alpha.copy_(torch.from_numpy(rng.standard_normal(4)))
    bags = torch.from_numpy(rng.standard_normal((9, 4)).astype(np.float32))
    owners = torch.from_numpy(rng.integers(count, size=9))
    expected = torch.zeros(count, 4).index_add(0, owners, block(bags))
    assert torch.allclose(block.summed(bags, owners, count), expected, atol=1e-5)


@pytest.mark.parametrize("make", [lambda: EmbeddingBlock(3, rectified=True), lambda: SpectralResidual(3, bound=0.5)])
def test_blocks_are_saved_and_opened(make):
    block = make()
    with torch.no_grad():
        for p in block.parameters():
            p.add_(torch.randn(p.shape, generator=torch.Generator().manual_seed(1)))
    block.settle()
    block.eval()
    r = torch.randn(5, 3)
    assert torch.equal(open_block(block_tensors(block))(r), block(r))


def test_the_identity_has_nothing_to_save_and_a_block_of_ones_own_says_so():
    assert block_tensors(torch.nn.Identity()) == {}
    with pytest.raises(UserError, match="cannot be saved"):
        block_tensors(torch.nn.Linear(2, 2))


def test_refinements_start_at_the_label_texts():
    classifier = started()
    np.testing.assert_array_equal(classifier.table.weight.numpy(), TEXTS @ TOKENS)  # Module III: u_l = E z_l
    sums = TEXTS @ TOKENS
    # R = I and all gates half open: E_L(z) = (r + relu(r)) / 2, w = (E_L(z) + r) / 2
    expected = ((sums + np.maximum(sums, 0)) / 2 + sums) / 2
    np.testing.assert_allclose(classifier.vectors(), expected, rtol=1e-6)


def test_a_label_of_positive_sums_starts_as_its_text():
    classifier = started(labels=np.array([[0, 1, 0, 0.5], [0, 0, 0, 3]], np.float32))
    sums = np.array([[1.5, 5.0], [6.0, 6.0]])
    np.testing.assert_allclose(classifier.vectors(), sums, rtol=1e-6)


def test_one_text_alone_or_the_refinement_alone():
    sums = TEXTS @ TOKENS
    np.testing.assert_allclose(started(parts="text").vectors(), (sums + np.maximum(sums, 0)) / 2)
    np.testing.assert_array_equal(started(parts="refinement").vectors(), sums)
    drawn = started(parts="refinement", start="random").vectors()
    assert np.abs(drawn).max() <= np.sqrt(6 / 7)
    assert not np.array_equal(drawn, sums)


def test_labels_without_text_and_with_the_same_text():
    vectors = started().vectors()
    assert not vectors[2].any()
    np.testing.assert_array_equal(vectors[1], vectors[3])


@pytest.mark.parametrize("scale", [1.0, 15.0])
def test_given_vectors_are_where_classifiers_start(scale):
    wanted = np.random.default_rng(0).standard_normal((5, 2)).astype(np.float32)
    classifier = LabelText(encoder(), texts(), EmbeddingBlock(2), scale=scale)
    classifier.start(5, 2, 0, wanted)
    np.testing.assert_allclose(classifier.vectors(), wanted, atol=1e-5)
    assert classifier.training  # as it was before


def test_text_and_label_side_meet_in_the_tables_gradient():
    """Two bags of the same table: its gradient is the sum of both, row by row."""
    classifier = started()
    bag = classifier._shared[0]
    rows = texts(np.array([[0, 2, 0, 0]]))
    features = bag(rows.take(np.array([0])))
    labels = torch.tensor([1, 4])
    classifier.logits(features, labels).sum().backward()
    assert len(bag.table.pending) == 2
    found, gradient = bag.table.take_gradient()
    assert found.tolist() == [1, 2, 3]  # token 0 is in neither the text nor the labels of the pool
    dense = torch.tensor(TOKENS, requires_grad=True)
    x = torch.tensor([[0.0, 2, 0, 0]]) @ dense
    sums = torch.tensor(TEXTS[[1, 4]]) @ dense
    refinements = torch.tensor((TEXTS @ TOKENS)[[1, 4]])
    weights = 0.5 * (0.5 * sums + 0.5 * torch.relu(sums)) + 0.5 * refinements
    (x @ weights.T).sum().backward()
    assert torch.allclose(gradient, dense.grad[[1, 2, 3]], atol=1e-5)


def test_a_shared_word_moves_the_other_labels_classifier():
    classifier = started()
    bag = classifier._shared[0]
    before = classifier.vectors()
    classifier.logits(torch.tensor([[1.0, 1.0]]), torch.tensor([0])).sum().backward()
    rows, gradient = bag.table.take_gradient()
    bag.table.weight[rows] -= 0.1 * gradient
    moved = np.abs(classifier.vectors() - before).sum(axis=1) > 0
    assert moved.tolist() == [True, True, False, True, False]  # 1 and 3 share token 1 with label 0


def test_the_encoder_is_shared_and_not_owned():
    classifier = started()
    assert all(part is not classifier._shared[0] for part in classifier.modules())
    assert not any("table" in name and "tokens" in name for name in classifier.state_dict())


@pytest.mark.parametrize("parts", ["both", "refinement"])
def test_it_conforms(parts):
    def make():
        rng = np.random.default_rng(3)
        label_texts = texts(rng.random((40, 9)) * (rng.random((40, 9)) < 0.3))
        bag = encoder(rng.standard_normal((9, 7)).astype(np.float32))
        return LabelText(bag, label_texts, EmbeddingBlock(7, dropout=0.0), parts=parts)

    check_classifier(make)


def test_what_cannot_be_is_refused():
    with pytest.raises(DataError, match="texts of 5 labels for 4"):
        LabelText(encoder(), texts()).start(4, 2, 0)
    with pytest.raises(UserError, match="text alone"):
        LabelText(encoder(), texts(), parts="text").start(5, 2, 0, np.zeros((5, 2)))
    with pytest.raises(UserError, match="cannot be added"):
        started().add(np.zeros((1, 2)))


def test_cluster_classifiers_by_hand():
    block = EmbeddingBlock(2, dropout=0.0)
    classifier = ClusterText(encoder(), texts(), block, np.array([1, 0, -1, 1, 0]), 2).eval()
    classifier.start(2, 2, 0)
    sums = TEXTS @ TOKENS
    of_cluster = np.stack((sums[1] + sums[4], sums[0] + sums[3]))
    np.testing.assert_allclose(classifier.table.weight, of_cluster)  # the refinement: sum of E z_l
    embedded = (sums + np.maximum(sums, 0)) / 2
    text_part = np.stack((embedded[1] + embedded[4], embedded[0] + embedded[3]))
    np.testing.assert_allclose(classifier.vectors(), (text_part + of_cluster) / 2, rtol=1e-6)
    some = classifier.weights(torch.tensor([1])).detach()
    np.testing.assert_allclose(some, classifier.vectors()[[1]], rtol=1e-6)

"""Tiny splits of each kind of row, and a tiny transformer made on the spot."""

import json

import numpy as np
import pytest
import torch
from scipy import sparse

from deepxc.data.dataset import Split
from deepxc.data.label_space import LabelSpace

TITLES = [
    "a history of algebra and of the algebra of logic",
    "the history of the roman empire",
    "fungi of the northern forests a field guide",
    "forest fungi",
    "logic algebra and geometry",
    "a field guide to the birds of the northern forests",
    "",
    "roman roads roman walls roman baths",
    "the birds",
    "a history of roman geometry",
    "the northern empire of birds",
    "a guide to logic",
]


def split_of(**rows):
    n = len(next(iter(rows.values())) if "texts" in rows else range(rows["X"].shape[0]))
    Y = sparse.csr_matrix(np.eye(n, 4, dtype=np.float32))
    return Split(labels=LabelSpace.numbered(4), Y=Y, **rows)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tensors this small are slower on more threads, and far slower on cores that others use."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def splits():
    rng = np.random.default_rng(5)
    return {
        "texts": split_of(texts=TITLES),
        "sparse": split_of(X=sparse.random(12, 30, 0.2, "csr", rng=rng, dtype=np.float32)),
        "dense": split_of(X=rng.standard_normal((12, 6)).astype(np.float32)),
        "images": split_of(X=rng.integers(0, 256, (10, 3, 16, 16), dtype=np.uint8)),
    }


@pytest.fixture(scope="session")
def tiny_transformer(tmp_path_factory):
    """A folder with a randomly initialised BERT and its tokenizer."""
    transformers = pytest.importorskip("transformers", reason="the package transformers is not installed")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    folder = tmp_path_factory.mktemp("bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *sorted({word for title in TITLES for word in title.split()})]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    torch.manual_seed(3)
    transformers.BertModel(config).save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text())["model_type"] == "bert"
    return folder

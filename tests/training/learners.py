"""A small learner with all the parts: a bag of tokens, dropout, a dense layer, a table of label vectors."""

import numpy as np
import torch
from scipy import sparse

from deepxc.modules.tables import BagBatch, RowTable
from deepxc.training.learner import LearnerModule
from deepxc.training.losses import pooled_loss
from deepxc.training.pools import PoolSampler


class BagLearner(LearnerModule):
    def __init__(self, X, Y, dim=16, uniform=20, seed=0):
        super().__init__()
        make = torch.Generator().manual_seed(seed)
        self.X = X
        self.sampler = PoolSampler(Y, uniform=uniform)
        self.tokens = RowTable(torch.randn(X.shape[1], dim, generator=make) / dim**0.5)
        self.layer = torch.nn.Linear(dim, dim)
        with torch.no_grad():
            self.layer.weight.copy_(torch.randn(dim, dim, generator=make) / dim**0.5)
            self.layer.bias.zero_()
        self.labels = RowTable(torch.zeros(Y.shape[1], dim))
        self.bias = RowTable(torch.zeros(Y.shape[1], 1))

    def features(self, rows):
        bags = self.tokens.bag(BagBatch.take(self.X, rows))
        return torch.nn.functional.dropout(torch.relu(bags + self.layer(bags)), 0.2, self.training)

    def loss(self, batch):
        pool = self.sampler.make(batch.rows, batch.rng)
        weights, bias = self.labels.rows(pool.labels), self.bias.rows(pool.labels)
        return pooled_loss(self.features(batch.rows), weights, bias, pool.positives, log_q=pool.log_q)


def task(n=400, vocabulary=100, n_labels=60, seed=0):
    """Texts whose label is told by their first token."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, n_labels, n)
    noise = rng.integers(n_labels, vocabulary, (n, 3))
    columns = np.column_stack([label, noise]).ravel()
    X = sparse.csr_matrix((np.ones(4 * n, np.float32), columns, np.arange(0, 4 * n + 1, 4)), shape=(n, vocabulary))
    X.sum_duplicates()
    Y = sparse.csr_matrix((np.ones(n, np.float32), label, np.arange(n + 1)), shape=(n, n_labels))
    return X, Y


def precision(learner, X, Y):
    """How often the best label is the text's only one."""
    with torch.no_grad():
        scores = learner.features(np.arange(X.shape[0])) @ learner.labels.weight.T + learner.bias.weight.T
    return float((scores.argmax(1).numpy() == Y.indices).mean())

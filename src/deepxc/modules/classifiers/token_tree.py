"""Label trees over the tokens themselves, which score candidates that others name.

A node of the tree, and each label under the last of them, learns to tell its texts from its siblings' by a linear
machine over a sparse bag of tokens (Parabel, Bonsai, PECOS). No vectors are shared, so that a rare word which decides
for one label is learnt where the short vectors of an encoder blur it: a voice that errs differently. It looks for no
labels itself, so there is no beam: a candidate's probability is the product of the nodes above it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from deepxc.labels.clusters import balanced_clusters
from deepxc.modules.shortlists.row_blocks import over_rows
from deepxc.persist.tensors import read_tensors, write_tensors
from deepxc.threads import Scratch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_FILE = "token-trees.safetensors"
_ARRAYS = ("bounds", "nodes", "weights", "thresholds", "parents")
_PASSES = 10
_TOLERANCE = 0.3
_MOST_STEPS = 2**15 - 1
_PARTS_A_THREAD = 16  # families differ in size: small parts keep every thread busy to the end


class TokenTree:
    """A balanced label tree with linear machines over sparse bags of tokens.

    Args:
        leaf: About so many labels lie under a node of the lowest level.
        fanout: Children of every other node, a power of 2.
        cost: What an error costs beside the length of the weights (C of support vector machines).
        smallest: Weights up to this size are left out: on held-out titles 0.3 answers as well as 0.1 with half of them.
    """

    def __init__(self, *, leaf: int = 100, fanout: int = 16, cost: float = 1.0, smallest: float = 0.3) -> None:
        self.leaf, self.fanout, self.cost, self.smallest = leaf, fanout, cost, smallest
        self._scratch = Scratch()

    def fit(
        self,
        features: sparse.csr_matrix,
        Y: sparse.csr_matrix,
        centroids: sparse.csr_matrix | np.ndarray,
        *,
        seed: int,
        threads: int,
    ) -> TokenTree:
        """Train every node.

        Args:
            features: Bags of tokens, rows of length 1.
            Y: Labels of the rows.
            centroids: What labels are clustered by, one row a label.
            seed: Of the clusters, and of the order in which texts are visited.
            threads: At most so many.
        """
        self.n_labels, self.n_tokens = Y.shape[1], features.shape[1]
        levels = self._levels(centroids, seed, threads)
        self.parents = _parents(levels, self.n_labels)
        squares = np.asarray(features.multiply(features).sum(axis=1), np.float32).ravel()
        bags = (*_parts_of(features), squares)
        own, learnt = sparse.csr_matrix(Y, dtype=np.bool_), []
        for level in levels:
            above = sparse.csr_matrix(own @ _grouping(level))
            learnt.append(self._learn_level(own, above, level, bags, seed, threads))
            own = above
        everything = sparse.csr_matrix(np.ones((len(squares), 1), np.bool_))
        learnt.append(self._learn_level(own, everything, np.zeros(own.shape[1], np.int32), bags, seed, threads))
        self.thresholds = np.concatenate([part[3] for part in learnt])
        rows = np.concatenate(([0], np.cumsum(np.concatenate([part[0] for part in learnt]))))
        tokens = np.concatenate([part[1] for part in learnt])
        weights = np.concatenate([_in_steps(part[2]) for part in learnt])
        by_token = sparse.csr_matrix((weights, tokens, rows), shape=(len(self.parents), self.n_tokens)).tocsc()
        self.bounds = by_token.indptr.astype(np.int64)
        self.nodes = by_token.indices.astype(np.int32)
        self.weights = by_token.data
        return self

    def _levels(self, centroids: sparse.csr_matrix | np.ndarray, seed: int, threads: int) -> list[np.ndarray]:
        """For the labels and for each level above them but the last, the node above each."""
        count = 1
        while count * self.leaf < self.n_labels:
            count *= 2
        if count == 1:
            return []
        levels = [balanced_clusters(centroids, count, seed=seed, threads=threads)]
        while count > 2 * self.fanout:
            levels.append(np.arange(count, dtype=np.int32) // self.fanout)
            count = -(-count // self.fanout)
        return levels

    def _learn_level(
        self,
        own: sparse.csr_matrix,
        above: sparse.csr_matrix,
        parents: np.ndarray,
        bags: tuple,
        seed: int,
        threads: int,
    ) -> tuple[np.ndarray, ...]:
        """Length of each node's row; the rows one after the other, tokens and weights; and each node's threshold."""
        from deepxc.modules.classifiers.kernels_token_tree import learn_nodes

        own_lists, (above_bounds, above_texts) = _lists_of(own), _lists_of(above)
        settings = (self.cost, _PASSES, _TOLERANCE, self.smallest, self.n_tokens, seed)
        parts = _families(parents, np.diff(above_bounds), threads)
        loop: Any = learn_nodes

        def learn(part: tuple[int, np.ndarray]) -> tuple[np.ndarray, ...]:
            texts = above_texts[above_bounds[part[0]] : above_bounds[part[0] + 1]]
            return loop(texts, part[1], *bags, *own_lists, *settings)

        with ThreadPoolExecutor(threads) as pool:
            learnt = list(pool.map(learn, parts))
        return _in_order(np.concatenate([nodes for _, nodes in parts]), learnt)

    def probabilities(self, features: sparse.csr_matrix, ids: np.ndarray, *, threads: int = 1) -> np.ndarray:
        """The probability of each candidate (-1 for none); 0 for labels that were not trained."""
        from deepxc.modules.classifiers.kernels_token_tree import candidate_losses

        if not features.has_sorted_indices:
            features = features.sorted_indices()
        bounds, tokens, data = _parts_of(features)
        ids = np.ascontiguousarray(ids, np.int64)
        losses = np.empty(ids.shape, np.float32)

        def run(start: int, stop: int) -> None:
            candidate_losses(
                bounds[start : stop + 1], tokens, data, self.bounds, self.nodes, self.weights, self.thresholds,
                self.parents, self.n_labels, self._workspace(), ids[start:stop], losses[start:stop],
            )  # fmt: skip

        over_rows(len(ids), threads, run)
        return np.exp(-losses)

    def _workspace(self) -> np.ndarray:
        """A scratch array of the calling thread."""
        if not hasattr(self._scratch, "places"):
            self._scratch.places = np.zeros(len(self.parents), np.int32)
        return self._scratch.places

    def arrays(self) -> dict[str, np.ndarray]:
        """What the tree is made of."""
        sizes = np.array([self.n_labels, self.n_tokens], np.int64)
        return {"sizes": sizes, **{name: getattr(self, name) for name in _ARRAYS}}

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> TokenTree:
        """The tree again."""
        tree = cls()
        tree.n_labels, tree.n_tokens = (int(size) for size in arrays["sizes"])
        for name in _ARRAYS:
            setattr(tree, name, arrays[name])
        return tree


class TokenForest:
    """Token trees over different clusters of the labels; their probabilities are averaged."""

    def __init__(self, trees: list[TokenTree]) -> None:
        self.trees = trees

    @classmethod
    def fit(
        cls,
        features: sparse.csr_matrix,
        Y: sparse.csr_matrix,
        centroids: sparse.csr_matrix | np.ndarray,
        count: int,
        *,
        seed: int,
        threads: int,
    ) -> TokenForest:
        """Train so many trees; see `TokenTree.fit`."""
        seeds = range(seed, seed + count)
        return cls([TokenTree().fit(features, Y, centroids, seed=each, threads=threads) for each in seeds])

    def probabilities(self, features: sparse.csr_matrix, ids: np.ndarray, *, threads: int = 1) -> np.ndarray:
        """The probability of each candidate (-1 for none); 0 for labels that were not trained."""
        total = self.trees[0].probabilities(features, ids, threads=threads)
        for tree in self.trees[1:]:
            total += tree.probabilities(features, ids, threads=threads)
        return total / np.float32(len(self.trees))

    def write(self, folder: Path) -> None:
        """Save into an existing folder."""
        named = {f"{i}.{name}": array for i, tree in enumerate(self.trees) for name, array in tree.arrays().items()}
        write_tensors(folder / _FILE, named)

    @classmethod
    def read(cls, folder: Path) -> TokenForest | None:
        """Open what was saved, as a memory map; None where there is none."""
        if not (folder / _FILE).exists():
            return None
        arrays = read_tensors(folder / _FILE)
        count = len([name for name in arrays if name.endswith(".sizes")])
        return cls([TokenTree.of({name: arrays[f"{i}.{name}"] for name in ("sizes", *_ARRAYS)}) for i in range(count)])


def _parents(levels: list[np.ndarray], n_labels: int) -> np.ndarray:
    """The node above each: labels come first, then the nodes of each level; -1 under the root."""
    starts = np.cumsum([n_labels, *(int(level.max()) + 1 for level in levels)])
    above = [level + start for level, start in zip(levels, starts, strict=False)]
    under_root = np.full(starts[-1] - (starts[-2] if levels else 0), -1)
    return np.concatenate([*above, under_root]).astype(np.int32)


def _grouping(level: np.ndarray) -> sparse.csr_matrix:
    """What puts together the columns of a matrix that lie under the same node."""
    return sparse.csr_matrix((np.ones(len(level), np.bool_), (np.arange(len(level)), level)))


def _parts_of(features: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (features.indptr.astype(np.int64), features.indices.astype(np.int32), features.data.astype(np.float32))


def _lists_of(own: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """The texts of each node, in order."""
    columns = own.tocsc()
    columns.sort_indices()
    return columns.indptr.astype(np.int64), columns.indices.astype(np.int32)


def _in_steps(weights: np.ndarray) -> np.ndarray:
    from deepxc.modules.classifiers.kernels_token_tree import STEPS

    return np.clip(np.rint(weights * STEPS), -_MOST_STEPS, _MOST_STEPS).astype(np.int16)


def _families(parents: np.ndarray, texts: np.ndarray, threads: int) -> list[tuple[int, np.ndarray]]:
    """Each parent with its nodes, largest first; a parent with much of all work has them in several parts."""
    order = np.argsort(parents, kind="stable")
    there, starts = np.unique(parents[order], return_index=True)
    families = list(zip(there.tolist(), np.split(order, starts[1:]), strict=True))
    work = np.array([texts[parent] * len(nodes) for parent, nodes in families])
    most = max(1.0, work.sum() / (_PARTS_A_THREAD * threads))
    cut = [
        (parent, part)
        for (parent, nodes), own in zip(families, work, strict=True)
        for part in np.array_split(nodes, max(1, min(len(nodes), int(np.ceil(own / most)))))
    ]
    return sorted(cut, key=lambda part: -int(texts[part[0]]) * len(part[1]))


def _in_order(nodes: np.ndarray, learnt: list[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """Rows that were learnt part by part, in the order of their nodes."""
    lengths = np.concatenate([np.diff(part[0], prepend=0) for part in learnt])
    starts = np.cumsum(lengths) - lengths
    order = np.argsort(nodes)
    lengths = lengths[order]
    ends = np.cumsum(lengths)
    source = np.arange(ends[-1]) + np.repeat(starts[order] - (ends - lengths), lengths)
    tokens, weights, thresholds = (np.concatenate([part[i] for part in learnt]) for i in (1, 2, 3))
    return lengths, tokens[source], weights[source], thresholds[order]

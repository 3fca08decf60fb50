"""Where the time of a training step goes, and what it would cost with PyTorch's own parts.

    python benchmarks/training.py [--write]

One synthetic task (Zipf labels, title-like texts): a token bag, a pool of labels per batch, softmax over it. The peer
is the same step written with `torch.nn.EmbeddingBag(sparse=True)`, autograd's cross-entropy over the same pool and
`torch.optim.SparseAdam`, in float32.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from scipy import sparse

from deepxc.modules.tables import BagBatch, RowTable
from deepxc.training.computing import on_threads
from deepxc.training.losses import pooled_loss
from deepxc.training.pools import PoolSampler
from deepxc.training.row_rules import RowAdam
from report import write_result


def synthetic(n: int, vocabulary: int, n_labels: int, seed: int = 0) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Texts of 7 tokens with 3 labels, both by Zipf's law."""
    rng = np.random.default_rng(seed)

    def rows(width: int, each: int) -> sparse.csr_matrix:
        columns = (width ** rng.random((n, each))).astype(np.int32) - 1
        matrix = sparse.csr_matrix(
            (np.ones(n * each, np.float32), columns.ravel(), np.arange(0, n * each + 1, each)), shape=(n, width)
        )
        matrix.sum_duplicates()
        matrix.data[:] = 1
        return matrix

    return rows(vocabulary, 7), rows(n_labels, 3)


class Clock:
    """Adds up the processor seconds of named stages, which a busy machine disturbs least."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.process_time()
        self._begun = time.perf_counter()

    def lap(self, stage: str) -> None:
        """Count the processor's time since the last call as this stage's."""
        now = time.process_time()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now

    def elapsed(self) -> float:
        """Seconds on the wall since the start."""
        return time.perf_counter() - self._begun


def ours(X, Y, hard, dim: int, size: int, uniform: int, steps: int) -> tuple[dict[str, float], float, float]:
    tokens, labels = RowTable(torch.randn(X.shape[1], dim) / dim), RowTable(torch.randn(Y.shape[1], dim) / dim)
    rules = [RowAdam(tokens), RowAdam(labels)]
    sampler = PoolSampler(Y, uniform=uniform)
    rng = np.random.default_rng(1)
    pools = []
    clock = Clock()
    for step in range(steps + 3):
        if step == 3:
            clock, pools = Clock(), []
        rows = rng.integers(X.shape[0], size=size)
        pool = sampler.make(rows, rng, hard[rows])
        pools.append(len(pool))
        clock.lap("pool")
        batch = BagBatch.take(X, rows)
        clock.lap("read")
        features = tokens.bag(batch)
        clock.lap("bag")
        weights = labels.rows(pool.labels)
        clock.lap("gather")
        loss = pooled_loss(features, weights, None, pool.positives)
        clock.lap("loss and its slopes")
        loss.backward()
        clock.lap("bag, backwards")
        rules[0].step(1e-3)
        clock.lap("token Adam")
        rules[1].step(1e-3)
        clock.lap("label Adam")
    return clock.seconds, clock.elapsed(), float(np.mean(pools))


def peer(X, Y, hard, dim: int, size: int, uniform: int, steps: int) -> tuple[float, float]:
    tokens = torch.nn.EmbeddingBag(X.shape[1], dim, mode="sum", sparse=True, include_last_offset=True)
    labels = torch.nn.Embedding(Y.shape[1], dim, sparse=True)
    adam = torch.optim.SparseAdam([tokens.weight, labels.weight], lr=1e-3)
    sampler = PoolSampler(Y, uniform=uniform)
    rng = np.random.default_rng(1)
    clock = Clock()
    for step in range(steps + 1):
        if step == 1:
            clock = Clock()
        rows = rng.integers(X.shape[0], size=size)
        pool = sampler.make(rows, rng, hard[rows])
        batch = BagBatch.take(X, rows)
        features = tokens(
            torch.from_numpy(batch.indices).long(),
            torch.from_numpy(batch.indptr),
            per_sample_weights=None,
        )
        logits = features @ labels(pool.labels).T
        log_p = torch.log_softmax(logits, 1)
        share = 1 / torch.bincount(pool.positives.rows, minlength=size)
        loss = -(log_p[pool.positives.rows, pool.positives.columns] * share[pool.positives.rows]).sum() / size
        adam.zero_grad()
        loss.backward()
        adam.step()
    clock.lap("all")
    return clock.seconds["all"], clock.elapsed()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="save the table in benchmarks/results")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--texts", type=int, default=480_000, help="texts of the epoch that steps are scaled up to")
    args = parser.parse_args()
    X, Y = synthetic(args.texts, 60_000, 27_000)
    hard = np.random.default_rng(2).integers(Y.shape[1], size=(args.texts, 4), dtype=np.int32)
    lines = [
        f"{args.threads} threads, dim {args.dim}, 27,000 labels, 60,000 tokens, an epoch of {args.texts:,} texts",
        "",
    ]
    with on_threads(args.threads):
        for size, few, uniform in ((1024, 4, 2000), (2048, 2, 1000), (4096, 1, 500)):
            stages, wall, pool = ours(X, Y, hard[:, :few], args.dim, size, uniform, args.steps)
            their_cpu, their_wall = peer(X, Y, hard[:, :few], args.dim, size, uniform, 6)
            cpu, steps, each = sum(stages.values()), args.steps, args.texts / size
            lines += [
                (
                    f"batch {size}, pool {pool:.0f}: a step takes {wall / steps * 1e3:.1f} ms "
                    f"({cpu / steps * 1e3:.1f} of processor time), "
                    f"an epoch {wall / steps * each:.1f} s ({cpu / steps * each:.1f})"
                ),
                (
                    f"    PyTorch's parts: {their_wall / 6 * 1e3:.1f} ms ({their_cpu / 6 * 1e3:.1f}), "
                    f"{their_wall / 6 * steps / wall:.1f} times as long ({their_cpu / 6 * steps / cpu:.1f})"
                ),
            ]
            lines += [f"    {100 * s / cpu:5.1f} % {s / steps * 1e3:7.2f} ms  {name}" for name, s in stages.items()]
    print("\n".join(lines))
    if args.write:
        write_result("training", "python benchmarks/training.py --write", lines)


if __name__ == "__main__":
    main()

"""Features of all rows at once, outside of training."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch

from deepxc.modules.tables import RowTable
from deepxc.threads import thread_count, torch_threads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepxc.modules.protocols import Encoder, Inputs


def encode(encoder: Encoder, inputs: Inputs, batch_size: int = 512, threads: int | None = None) -> np.ndarray:
    """Features of every row, (n, dim), float32, in the order of the rows.

    The encoder works as in prediction (no dropout, no gradients) and is left in the mode that it was in. Where the
    inputs know the `lengths` of their rows, rows of like length share a batch, so that little is spent on padding.

    Args:
        encoder: The encoder.
        inputs: What its `learn` or `read` gave.
        batch_size: Rows at once.
        threads: Threads; None takes all cores.
    """
    n = len(inputs)
    answer = getattr(encoder, "answer", None)
    if n == 1 and answer is not None and next(encoder.buffers()).device.type == "cpu":  # pyrefly: ignore
        return answer(inputs)
    lengths = getattr(inputs, "lengths", None)
    order = np.arange(n) if lengths is None else np.argsort(-np.asarray(lengths), kind="stable")
    features = np.empty((n, encoder.dim), np.float32)
    with _evaluating(encoder), _on_threads(encoder, thread_count(threads)), torch.no_grad():
        for start in range(0, n, batch_size):
            rows = order[start : start + batch_size]
            part = encoder.forward(inputs.take(rows)).float().cpu().numpy()
            features[rows] = part
    return features


@contextmanager
def _evaluating(encoder: Encoder) -> Iterator[None]:
    """Every module in evaluation mode inside, and each as it was afterwards."""
    modules = list(encoder.modules()) if isinstance(encoder, torch.nn.Module) else []
    were_training = [module for module in modules if module.training]
    for module in modules:
        module.training = False
    try:
        yield
    finally:
        for module in were_training:
            module.training = True


@contextmanager
def _on_threads(encoder: Encoder, threads: int) -> Iterator[None]:
    """PyTorch's operations and the tables' compiled loops use so many threads inside; what is so already is left."""
    with torch_threads(threads):
        if not isinstance(encoder, torch.nn.Module) or not any(isinstance(m, RowTable) for m in encoder.modules()):
            yield
            return
        import numba

        loops_before = numba.get_num_threads()
        loops = min(threads, numba.config.NUMBA_NUM_THREADS)  # pyrefly: ignore[missing-attribute]
        if loops != loops_before:
            numba.set_num_threads(loops)
        try:
            yield
        finally:
            if loops != loops_before:
                numba.set_num_threads(loops_before)

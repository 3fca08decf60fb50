"""A training that is killed goes on from its checkpoint and ends at the same bits."""

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from learners import BagLearner, task

from deepxc.training.batches import Batches
from deepxc.training.callbacks import EarlyStopping
from deepxc.training.checkpoints import Checkpoint
from deepxc.training.computing import deterministic, on_threads
from deepxc.training.loop import Callback, train
from deepxc.training.optimisers import Optimiser


class Announce(Callback):
    """Says how far training is, so that it can be killed there."""

    def on_batch_end(self, run):
        print(f"batch {run.step}", flush=True)  # noqa: T201


def main(folder):
    X, Y = task(n=2000, vocabulary=500, n_labels=300)
    learner = BagLearner(X, Y)
    callbacks = [Announce(), EarlyStopping("nothing", patience=9), Checkpoint(folder, seconds=0.05)]
    with deterministic(seed=1), on_threads(2):
        history = train(
            learner,
            Batches(2000, 100, seed=2),
            optimiser=Optimiser.of(learner, 0.01),
            epochs=3,
            callbacks=callbacks,
            validate=lambda _: {"nothing": 0.0},
            resume=folder,
        )
    weights = np.concatenate([t.numpy().ravel() for t in learner.state().values()])
    digests = [hashlib.sha256(data).hexdigest() for data in (weights.tobytes(), repr(history.losses).encode())]
    print("weights", *digests)  # noqa: T201


def start(folder):
    quiet = os.environ | {"OMP_WAIT_POLICY": "passive"}  # threads that wait do not keep a busy machine busier
    return subprocess.Popen([sys.executable, __file__, str(folder)], stdout=subprocess.PIPE, text=True, env=quiet)


def to_the_end(folder):
    out, _ = start(folder).communicate(timeout=120)
    lines = out.splitlines()
    assert lines[-1].startswith("weights")
    return lines[-1], lines.count("batch 1"), len(lines) - 1


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_killed_and_resumed_is_the_same_as_never_killed(tmp_path):
    whole, _, batches = to_the_end(tmp_path / "whole")
    assert batches == 60
    process = start(tmp_path / "killed")
    for line in process.stdout:
        if line == "batch 33\n":
            os.kill(process.pid, signal.SIGKILL)
            break
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    resumed, from_the_start, batches = to_the_end(tmp_path / "killed")
    assert from_the_start == 0
    assert 0 < batches < 60
    assert resumed == whole


if __name__ == "__main__":
    main(Path(sys.argv[1]))

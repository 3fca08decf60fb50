"""A fit that is killed goes on from its checkpoints to the same model; histories say what happened."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from deepxc import Astec, UserError, load
from deepxc.data.samples import load_sample
from deepxc.training.loop import Callback

SETTINGS = {
    "preset": "paper",
    "dim": 32,
    "surrogate_epochs": 2,
    "epochs": 3,
    "hard": 20,
    "random": 5,
    "batch": 64,
    "reranker": False,
    "threads": 1,
}


class KillAt(Callback):
    """Kills the process, as a machine that is switched off would, at a batch of the n-th training."""

    last = True

    def __init__(self, training, batch):
        self.training, self.batch, self.seen = training, batch, 0

    def on_train_begin(self, run):
        self.seen += 1

    def on_batch_end(self, run):
        if self.seen == self.training and run.step == self.batch:
            os.kill(os.getpid(), signal.SIGKILL)


def fit(checkpoint=None, callbacks=()):
    data = load_sample("synthetic", labels=60, texts=600, seed=1)
    return Astec(**SETTINGS).fit(data.train, checkpoint=checkpoint, callbacks=callbacks)


def main(folder, training, batch):
    from deepxc.systems import runs

    runs._SECONDS = 0.0  # a checkpoint after every batch
    fit(folder, [KillAt(int(training), int(batch))])


@pytest.mark.parametrize(("training", "batch"), [(1, 5), (2, 4)], ids=["in Module I", "in Module IV"])
def test_a_killed_fit_ends_in_the_same_model(training, batch, tmp_path):
    done = subprocess.run([sys.executable, __file__, tmp_path / "c", str(training), str(batch)], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    whole, resumed = fit(), fit(tmp_path / "c")
    np.testing.assert_array_equal(whole.members_[0].vectors, resumed.members_[0].vectors)
    for one, two in zip(whole.predict_topk(["a"], 5), resumed.predict_topk(["a"], 5), strict=True):
        np.testing.assert_array_equal(one, two)
    losses = [model.history_["member-0-classifiers"]["losses"] for model in (whole, resumed)]
    assert losses[0] == losses[1]


def test_checkpoints_of_another_training_are_refused(tmp_path):
    data = load_sample("synthetic", labels=60, texts=300, seed=1)
    small = {"dim": 16, "epochs": 1}
    Astec(**small).fit(data.train, checkpoint=tmp_path / "c")
    with pytest.raises(UserError, match=r"other settings"):
        Astec(**{**small, "dim": 8}).fit(data.train, checkpoint=tmp_path / "c")
    (tmp_path / "c" / "plan.json").write_text("{")
    with pytest.raises(UserError, match="damaged"):
        Astec(**small).fit(data.train, checkpoint=tmp_path / "c")


def test_the_history_is_saved_with_the_model(tmp_path):
    data = load_sample("synthetic", labels=60, texts=300, seed=1)
    model = Astec(dim=16, epochs=2, patience=1).fit(data.train)
    history = model.history_["member-0-classifiers"]
    assert len(history["epochs"]) == 2
    assert all(0 <= record["P@1"] <= 100 for record in history["epochs"])
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").history_ == json.loads(json.dumps(model.history_))


if __name__ == "__main__":
    main(*sys.argv[1:])

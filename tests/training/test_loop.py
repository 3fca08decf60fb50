"""The loop: events in order, learning, validation, stopping, and going on after a checkpoint."""

import json

import numpy as np
import pytest
import torch
from learners import BagLearner, precision, task

from deepxc.errors import UserError
from deepxc.training.batches import Batches
from deepxc.training.callbacks import EarlyStopping, Progress, TensorBoard, TimeLimit
from deepxc.training.checkpoints import Checkpoint
from deepxc.training.computing import deterministic, on_threads
from deepxc.training.history import History
from deepxc.training.learner import Learner
from deepxc.training.loop import Callback, train
from deepxc.training.optimisers import Optimiser
from deepxc.training.schedules import linear

X, Y = task()


def fit(epochs=3, learner=None, resume=None, n=400, **options):
    learner = learner or BagLearner(X, Y)
    with deterministic(seed=3):
        history = train(
            learner,
            Batches(n, 64, seed=5),
            optimiser=Optimiser.of(learner, 0.02),
            epochs=epochs,
            schedule=linear(0.1),
            resume=resume,
            **options,
        )
    return learner, history


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state().values(), b.state().values(), strict=True))


class Diary(Callback):
    def __init__(self, name="", stop_at=None):
        self.name, self.stop_at, self.events = name, stop_at, []

    def _note(self, event, run):
        self.events.append((event, run.epoch, run.batch))

    def on_train_begin(self, run):
        self._note("train begins", run)

    def on_epoch_begin(self, run):
        self._note("epoch begins", run)

    def on_batch_end(self, run):
        self._note("batch ends", run)
        if run.step == self.stop_at:
            run.stop = "enough"

    def on_epoch_end(self, run):
        self._note("epoch ends", run)

    def on_train_end(self, run):
        self._note("train ends", run)


def test_it_learns():
    learner, history = fit(epochs=12, validate=lambda m: {"P@1": precision(m, X, Y)})
    assert isinstance(learner, Learner)
    assert history.metric("P@1")[-1] > 0.9
    assert history.metric("loss")[-1] < history.metric("loss")[0] / 2
    assert len(history.losses) == 12 * 7
    assert history.metric("loss")[1] == pytest.approx(np.mean(history.losses[7:14]))
    assert learner.training


def test_events_come_in_order():
    diary = Diary()
    fit(epochs=2, n=150, callbacks=[diary])
    epochs = [
        [("epoch begins", e, 0), *(("batch ends", e, b) for b in (1, 2, 3)), ("epoch ends", e, 3)] for e in (0, 1)
    ]
    assert diary.events == [("train begins", 0, 0), *epochs[0], *epochs[1], ("train ends", 1, 3)]


def test_a_callback_stops_training():
    diary = Diary(stop_at=9)
    _, history = fit(epochs=5, callbacks=[diary])
    assert len(history.losses) == 9
    assert len(history.epochs) == 1
    assert history.stopped == "enough"
    assert diary.events[-1] == ("train ends", 1, 2)


def test_validation_sees_the_learner_without_dropout_and_gradients():
    seen = []
    fit(epochs=1, validate=lambda m: seen.append((m.training, torch.is_grad_enabled())) or {})
    assert seen == [(False, False)]


def test_the_same_seed_gives_the_same_bits():
    assert same(fit()[0], fit()[0])


def test_early_stopping_takes_the_best_weights_back():
    values = iter([0.1, 0.5, 0.4, 0.45, 0.9])
    kept = {}

    def validate(learner):
        value = next(values)
        kept[value] = {name: t.clone() for name, t in learner.state().items()}
        return {"P@1": value}

    stopping = EarlyStopping("P@1", patience=2)
    learner, history = fit(epochs=5, validate=validate, callbacks=[stopping])
    assert history.metric("P@1") == [0.1, 0.5, 0.4, 0.45]
    assert (stopping.best, stopping.best_epoch) == (0.5, 2)
    assert "P@1" in history.stopped
    assert all(torch.equal(t, kept[0.5][name]) for name, t in learner.state().items())


def test_early_stopping_on_a_loss_and_on_a_metric_that_is_not_there():
    values = iter([3.0, 2.0, 1.99, 1.98])
    stopping = EarlyStopping("nll", largest_is_best=False, smallest=0.05, restore=False)
    assert len(fit(epochs=4, validate=lambda _: {"nll": next(values)}, callbacks=[stopping])[1].epochs) == 3
    with pytest.raises(UserError, match="no 'P@1', only"):
        fit(epochs=1, callbacks=[EarlyStopping("P@1")])


def test_a_time_limit():
    clock = iter(range(100))
    _, history = fit(epochs=5, callbacks=[TimeLimit(4, clock=lambda: next(clock))])
    assert "time limit of 4 seconds" in history.stopped
    assert 0 < len(history.losses) < 5


@pytest.mark.parametrize("stop_at", [3, 7, 9, 14])
def test_a_stopped_training_goes_on_as_if_nothing_had_happened(tmp_path, stop_at):
    whole, history = fit(epochs=3, validate=lambda m: {"P@1": precision(m, X, Y)})
    folder = tmp_path / "checkpoint"
    first, _ = fit(epochs=3, callbacks=[Checkpoint(folder, epochs=None), Diary(stop_at=stop_at)])
    assert not same(first, whole)
    diary = Diary()
    torch.manual_seed(99)
    resumed, after = fit(
        epochs=3,
        learner=BagLearner(X, Y, seed=8),
        resume=folder,
        callbacks=[diary],
        validate=lambda m: {"P@1": precision(m, X, Y)},
    )
    assert same(resumed, whole)
    assert after.losses == history.losses
    assert after.metric("P@1")[-1] == history.metric("P@1")[-1]
    assert after.metric("loss") == history.metric("loss")
    assert sum(event == "batch ends" for event, *_ in diary.events) == 21 - stop_at


def test_a_finished_training_is_not_trained_again(tmp_path):
    options = {"resume": tmp_path / "c", "callbacks": [Checkpoint(tmp_path / "c")]}
    learner, history = fit(**options)
    again, after = fit(**options)
    assert same(learner, again)
    assert after.losses == history.losses


def test_early_stopping_remembers_over_a_checkpoint(tmp_path):
    values = [0.1, 0.5, 0.4, 0.3, 0.2]
    seen = []

    def validate(learner):
        seen.append({name: t.clone() for name, t in learner.state().items()})
        return {"P@1": values[len(seen) - 1]}

    def callbacks(**options):
        return [EarlyStopping("P@1", patience=2), Checkpoint(tmp_path / "c"), Diary(**options)]

    fit(epochs=5, validate=validate, callbacks=callbacks(stop_at=15))  # epochs 1 and 2, and a batch of the third
    learner, history = fit(epochs=5, validate=validate, callbacks=callbacks(), resume=tmp_path / "c")
    assert history.metric("P@1") == [0.1, 0.5, 0.4, 0.3]
    assert all(torch.equal(t, seen[1][name]) for name, t in learner.state().items())
    _, third = fit(epochs=5, validate=validate, callbacks=callbacks(), resume=tmp_path / "c")
    assert len(third.epochs) == 4  # it had stopped, and stays so


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    fit(epochs=1, callbacks=[Checkpoint(tmp_path / "c")])
    with pytest.raises(UserError, match="epochs 1, now 2"):
        fit(epochs=2, resume=tmp_path / "c")
    with pytest.raises(UserError, match=r"tokens.weight \[100, 16\], now \[100, 8\]"):
        fit(epochs=1, learner=BagLearner(X, Y, dim=8), resume=tmp_path / "c")


class Tied(BagLearner):
    """One table under two names."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.also_tokens = self.tokens


def test_a_table_under_two_names_is_saved_once(tmp_path):
    learner, _ = fit(epochs=1, learner=Tied(X, Y), callbacks=[Checkpoint(tmp_path / "c")])
    again, _ = fit(epochs=1, learner=Tied(X, Y, seed=4), resume=tmp_path / "c")
    assert same(learner, again)
    size = sum(f.stat().st_size for f in (tmp_path / "c").rglob("*.safetensors"))
    assert size < 4 * sum(t.nbytes for t in learner.state().values())


def test_a_loss_that_is_not_finite_ends_training():
    learner = BagLearner(X, Y)
    learner.tokens.weight[:] = torch.inf
    with pytest.raises(UserError, match="batch 1 of epoch 1"):
        fit(learner=learner)


def test_history_as_json(tmp_path):
    _, history = fit(epochs=2)
    history.write(tmp_path / "history.json")
    document = json.loads((tmp_path / "history.json").read_text())
    assert [record["epoch"] for record in document["epochs"]] == [1, 2]
    assert History.from_json((tmp_path / "history.json").read_text()) == history


def test_progress_is_silent_off_a_terminal(capsys):
    fit(epochs=1, callbacks=[Progress()])
    assert capsys.readouterr() == ("", "")


def test_tensorboard_says_when_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(UserError, match="pip install tensorboard"):
        TensorBoard(tmp_path)


def test_tensorboard_writes_events(tmp_path):
    pytest.importorskip("tensorboard")
    fit(epochs=1, callbacks=[TensorBoard(tmp_path, every=1)])
    assert list(tmp_path.glob("events*"))


def test_threads_are_put_back():
    import numba

    torch.set_num_threads(2)
    before = 2, numba.get_num_threads()
    with pytest.raises(ZeroDivisionError), on_threads(1):  # noqa: PT012
        assert (torch.get_num_threads(), numba.get_num_threads()) == (1, 1)
        raise ZeroDivisionError
    assert (torch.get_num_threads(), numba.get_num_threads()) == before
    with on_threads(None):
        assert torch.get_num_threads() == before[0]


def test_the_deterministic_mode_is_put_back():
    state = torch.get_rng_state()
    with deterministic(5):
        first = torch.rand(3)
        assert torch.are_deterministic_algorithms_enabled()
    with deterministic(5):
        assert torch.equal(torch.rand(3), first)
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.equal(torch.get_rng_state(), state)

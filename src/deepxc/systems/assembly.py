"""What assemblies of the four modules share: members that learn, and voices that answer.

A system says in `_learn` how one member comes out of its four modules; everything after that stands here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from deepxc.systems.estimator import XmcEstimator
from deepxc.systems.fused_answers import FusedAnswers
from deepxc.systems.member import Member
from deepxc.systems.new_labels import extended, fresh_labels
from deepxc.systems.shortlist_answers import ShortlistAnswers
from deepxc.systems.training_rows import held_out
from deepxc.training.computing import on_threads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from deepxc.data.dataset import Split
    from deepxc.systems.inputs import Features
    from deepxc.systems.runs import TrainingRuns


class Assembly(XmcEstimator):
    """A system of members, each an encoder with its label vectors, and of answers from what they say.

    Its settings hold at least `members`, `validation` and `answers`, beside what the kind of answers reads.
    """

    member_type: ClassVar[Any] = Member
    """What a member is opened with."""

    device: str | None
    members_: list[Member]
    answers_: Any

    def _fit(self, split: Split, runs: TrainingRuns) -> None:
        settings = self.settings_
        held = held_out(split, settings.validation, self.seed)
        rest = np.setdiff1d(np.arange(len(split)), held)
        train_rows, held_rows = split.take(rest), split.take(held)
        with on_threads(self.n_threads):
            trained = self._learn_all(train_rows, held_rows, runs)
            self.members_ = [member for member, _ in trained]
            self.answers_ = self._answer([found for _, found in trained], train_rows, held_rows, split, runs)

    def _learn_all(self, train: Split, held: Split, runs: TrainingRuns) -> list[tuple[Member, Any]]:
        """Every member of the ensemble, each with a seed of its own."""
        seeds = [self.seed + i for i in range(self._n_members())]
        return [self._learn(f"member-{i}", train, held, seed, runs) for i, seed in enumerate(seeds)]

    def _n_members(self) -> int:
        return self.settings_.members

    def _answer(self, found: list[Any], train: Split, held: Split, whole: Split, runs: TrainingRuns) -> Any:
        """What answers from the members; `found` is what `_learn` gave beside each of them."""
        if self.settings_.answers == "shortlist":
            return ShortlistAnswers.fit(self, found, train, held, runs)
        return FusedAnswers.fit(self, train, held, whole)

    def _kind_of_answers(self) -> Any:
        """The class that opens the saved answers."""
        return ShortlistAnswers if self.settings_.answers == "shortlist" else FusedAnswers

    def _learn(
        self, name: str, split: Split, held: Split, seed: int, runs: TrainingRuns, hard: np.ndarray | None = None
    ) -> tuple[Member, Any]:
        """One learner, through the four modules, and what `_answer` needs of them beside it (a shortlister, say).

        `hard` takes the place of what Module II would mine.
        """
        raise NotImplementedError

    def _device(self) -> str:
        return self.device or ("cuda" if torch.cuda.is_available() else "cpu")

    def add_labels(self, labels: Mapping[str, str | Sequence[str]]) -> None:
        """Teach the model labels that it did not know, without training; they are found at once.

        Args:
            labels: Each new label's name, and a text that says what it is or some texts that have it.
        """
        fresh = fresh_labels(self, labels)
        for member in self.members_:
            member.add(fresh, self.n_threads)
        self.answers_.add(self, fresh)
        self.labels_ = extended(self.labels_, fresh)

    def _rank(self, inputs: list[str] | Features, k: int, allowed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        return self.answers_.rank(self, inputs, k, allowed)

    def _write(self, folder: Path) -> None:
        for i, member in enumerate(self.members_):
            (folder / f"member-{i}").mkdir()
            member.write(folder / f"member-{i}")
        (folder / "answers").mkdir()
        self.answers_.write(folder / "answers")

    def _read(self, folder: Path) -> None:
        places = sorted(folder.glob("member-*"), key=lambda place: int(place.name.rpartition("-")[2]))
        self.members_ = [self.member_type.read(place) for place in places]
        self.answers_ = self._kind_of_answers().read(folder / "answers", self.labels_)

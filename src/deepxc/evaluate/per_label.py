"""How well each label is answered: support, hits, misses, precision, recall and F1 at k."""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deepxc.errors import UserError
from deepxc.evaluate.judging import checked_ks, judge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from deepxc.data.label_space import LabelSpace
    from deepxc.evaluate.ranking import Predictions, Sparse

_COLUMNS = ("label", "id", "name", "train_texts", "support", "tp", "fp", "fn", "precision", "recall", "f1")


@dataclass(frozen=True, eq=False)
class PerLabel:
    """Counts per label when each text is answered with its k best labels; every array has shape (L,).

    Attributes:
        k: Answers per text.
        support: Texts whose truth has the label.
        tp: Texts answered with the label, rightly.
        fp: Texts answered with the label, wrongly.
        fn: Texts that have the label and were not answered with it.
    """

    k: int
    support: np.ndarray
    tp: np.ndarray
    fp: np.ndarray
    fn: np.ndarray

    @property
    def precision(self) -> np.ndarray:
        """Right answers among the answers, in percent; 0 for a label that is never answered."""
        return 100.0 * self.tp / np.maximum(self.tp + self.fp, 1)

    @property
    def recall(self) -> np.ndarray:
        """Right answers among the texts that have the label, in percent; 0 for a label without support."""
        return 100.0 * self.tp / np.maximum(self.support, 1)

    @property
    def f1(self) -> np.ndarray:
        """Harmonic mean of precision and recall, in percent; 0 where both are."""
        return 200.0 * self.tp / np.maximum(2 * self.tp + self.fp + self.fn, 1)

    def macro(self) -> dict[str, float]:
        """Plain means over the labels that occur in the truth, as `macro-P@k`, `macro-R@k`, `macro-F1@k`."""
        seen = self.support > 0
        parts = (("P", self.precision), ("R", self.recall), ("F1", self.f1))
        return {f"macro-{name}@{self.k}": float(part[seen].mean()) if seen.any() else 0.0 for name, part in parts}

    def write_tsv(self, path: str | Path, labels: LabelSpace, *, unseen: bool = False) -> None:
        """Write one line a label, in label order, percentages with two digits.

        The file appears under its name only when it is whole. Tabs and line breaks in ids and names become spaces;
        the first column, the label's row number, stays exact.

        Args:
            path: The file to write or replace.
            labels: The label space, for ids, names and train frequencies (empty cells where those are not counted).
            unseen: Write labels too that neither the truth nor the answers hold.
        """
        if len(labels) != len(self.support):
            raise UserError(
                f"{len(labels)} labels given but {len(self.support)} measured",
                where="labels",
                remedy="Give the label space of the truth",
            )
        target = Path(path)
        try:
            handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        except OSError as fault:
            raise UserError(
                f"cannot be written ({fault.strerror})", where=str(target), remedy="Give a file in an existing folder"
            ) from fault
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
                stream.writelines(self._lines(labels, unseen=unseen))
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).chmod(0o666 & ~_umask())
            Path(temporary).replace(target)
        except BaseException as fault:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            if isinstance(fault, OSError):
                raise UserError(
                    f"could not be written ({fault.strerror})",
                    where=str(target),
                    remedy="Free some space or give another place; a file that was there before is still whole",
                ) from fault
            raise

    def _lines(self, labels: LabelSpace, *, unseen: bool) -> Iterator[str]:
        yield "\t".join(_COLUMNS) + "\n"
        chosen = np.arange(len(labels)) if unseen else np.flatnonzero(self.support + self.tp + self.fp)
        train = labels.frequencies
        columns = [part[chosen].tolist() for part in (self.support, self.tp, self.fp, self.fn)]
        columns += [part[chosen].tolist() for part in (self.precision, self.recall, self.f1)]
        for label, support, tp, fp, fn, precision, recall, f1 in zip(chosen.tolist(), *columns, strict=True):
            count = "" if train is None else int(train[label])
            yield (
                f"{label}\t{_one_cell(labels.ids[label])}\t{_one_cell(labels.names[label])}\t{count}\t"
                f"{support}\t{tp}\t{fp}\t{fn}\t{precision:.2f}\t{recall:.2f}\t{f1:.2f}\n"
            )


def per_label(
    predictions: Predictions,
    Y: Sparse,
    *,
    k: int = 5,
    filter_pairs: ArrayLike | None = None,
    filter_truth: bool = False,
) -> PerLabel:
    """Count right and wrong answers per label.

    Args:
        predictions: As for `deepxc.evaluate.metrics.evaluate`.
        Y: Sparse truth.
        k: Answers per text.
        filter_pairs: (row, label) pairs that are no answers.
        filter_truth: Take the pairs out of the truth too.
    """
    (k,) = checked_ks((k,))
    judged = judge(predictions, Y, k, filter_pairs=filter_pairs, filter_truth=filter_truth)
    support = np.bincount(judged.truth.indices, minlength=judged.n_labels)
    tp = np.bincount(judged.ids[judged.hits], minlength=judged.n_labels)
    answered = np.bincount(judged.ids[judged.ids >= 0], minlength=judged.n_labels)
    return PerLabel(k, support, tp, answered - tp, support - tp)


def _one_cell(text: str) -> str:
    return " ".join(text.splitlines()).replace("\t", " ")


def _umask() -> int:
    """The permissions new files go without; a temporary file is made private and must be opened up again."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

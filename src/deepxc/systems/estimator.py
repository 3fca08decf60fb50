"""What every system is to its user: a scikit-learn estimator that ranks labels, saves itself and loads again."""

from __future__ import annotations

import dataclasses
import json
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from deepxc.data.fingerprint import describe
from deepxc.errors import ModelFolderError, UserError
from deepxc.persist.folder import Manifest, open_folder, save_folder
from deepxc.persist.label_table import LABELS_FILE, read_labels, write_labels
from deepxc.predict.topk import TopK
from deepxc.systems.inputs import Features, as_inputs, as_split, label_row
from deepxc.systems.presets import resolve
from deepxc.systems.training_rows import labels_are_documents, without_own
from deepxc.threads import thread_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from sklearn.utils import Tags  # pyrefly: ignore[missing-module-attribute] (the stubs are older)

    from deepxc.data.dataset import Split
    from deepxc.data.label_space import LabelSpace
    from deepxc.systems.runs import TrainingRuns
    from deepxc.training.loop import Callback

SYSTEMS = {
    "Astec": "deepxc.systems.astec",
    "Decaf": "deepxc.systems.decaf",
    "InceptionXML": "deepxc.systems.inception_xml",
    "InceptionXMLPlus": "deepxc.systems.inception_xml",
    "Dexa": "deepxc.systems.dexa",
    "Mach": "deepxc.systems.mach",
    "NearestLabels": "deepxc.systems.nearest",
}
_HISTORY_FILE = "history.json"
_DECISION_K = 100
_PLAIN = (str, int, float, bool, type(None))  # parameters that a manifest holds; parts of the user's own are data


class XmcEstimator(BaseEstimator):
    """Base of the systems: input in any form, answers as `TopK`, presets, saving and loading.

    A system gives its settings' dataclass, the name of its preset file, and four methods: `_fit`, `_rank`, `_write`
    and `_read`. Constructor parameters are stored as they are; a parameter left at None takes its preset's value.
    """

    preset: str
    seed: int
    threads: int | None

    settings_type: ClassVar[type]
    preset_file: ClassVar[str]

    labels_: LabelSpace
    """The labels that can be answered, with their train frequencies."""
    settings_: Any
    """The settings of the training: the preset's values and what was given."""
    data_: dict[str, Any]
    """Sizes and fingerprint of the train data."""
    documents_: bool
    """Whether labels are documents, of which none answers itself (see `labels_are_documents`)."""
    labels_per_text_: int
    """How many labels a train text has on average, rounded: what `predict` gives each text."""

    history_: dict[str, Any]
    """What happened in each training of the fit, by its name: losses, and a record of every epoch."""

    def _keep(self, arguments: dict[str, Any]) -> None:
        """Store a constructor's arguments, its `locals()`, under their own names, as scikit-learn wants them."""
        for name, value in arguments.items():
            if name != "self":
                setattr(self, name, value)

    def fit(
        self,
        X: object,
        y: object = None,
        *,
        labels: LabelSpace | None = None,
        callbacks: Sequence[Callback] = (),
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Train on texts or features with their labels.

        Args:
            X: A `Split`, a `Dataset` (its train part), a sequence of texts, or a feature matrix.
            y: Labels of each row, unless `X` holds them: an indicator matrix, lists of names, or lists of row numbers.
            labels: The label space that `y` refers to; made from `y` by default.
            callbacks: Told of the events of training (`deepxc.training.callbacks`).
            checkpoint: Folder for checkpoints. A fit that was killed goes on from them, to the same model.
        """
        from deepxc.systems.runs import TrainingRuns

        split = as_split(X, y, labels)
        self.settings_ = resolve(self.settings_type, self.preset_file, self.preset, self._given())
        self.labels_ = split.labels.counted(split.Y)
        self.data_ = describe(split)
        self.documents_ = labels_are_documents(split)
        self.__dict__.pop("own_label", None)
        self.labels_per_text_ = max(1, round(split.Y.nnz / max(1, len(split))))
        if split.texts is None:
            assert split.X is not None
            self.n_features_in_ = split.X.shape[1]
        elif hasattr(self, "n_features_in_"):
            del self.n_features_in_
        plan = {"system": type(self).__name__, "seed": self.seed, "data": self.data_}
        runs = TrainingRuns(callbacks, checkpoint, plan | {"settings": dataclasses.asdict(self.settings_)})
        self._fit(split, runs)
        self.history_ = {name: history.__dict__ for name, history in runs.histories.items()}
        return self

    def predict_topk(
        self,
        X: object,
        k: int = 5,
        *,
        candidates: Iterable[str | int] | None = None,
        exclude: Iterable[str | int] | None = None,
    ) -> TopK:
        """The k best labels of each text, best first, ties to the smaller label row.

        Args:
            X: Texts, or features if the model was trained on features.
            k: Labels wanted for each text.
            candidates: The only labels that may be answered, by id, name or row; None: all.
            exclude: Labels that may not be answered.
        """
        check_is_fitted(self, "labels_")
        if k < 1:
            raise UserError(f"{k} labels were asked for", where="k", remedy="Ask for at least one")
        inputs, allowed = self._as_trained(X), self._allowed(candidates, exclude)
        if not self.documents_:
            return TopK(*self._rank(inputs, k, allowed), self.labels_)
        ids, scores = self._rank(inputs, min(k + 1, len(self.labels_)), allowed)
        return TopK(*without_own(self.own_labels(inputs), ids, scores, k), self.labels_)

    @cached_property
    def own_label(self) -> dict[str, int]:
        """The label that each document is, by its text; texts of several documents are left out."""
        rows: dict[str, int] = {}
        for row, text in enumerate(self.labels_.texts or ()):
            rows[text] = -1 if text in rows else row
        return rows

    def own_labels(self, inputs: list[str] | Features) -> np.ndarray | None:
        """The label that each input is itself, -1 for none; None where labels are no documents, or inputs no texts."""
        if not self.documents_ or not isinstance(inputs, list):
            return None
        return np.array([self.own_label.get(text, -1) for text in inputs], np.int64)

    def predict(self, X: object) -> sparse.csr_matrix:
        """An indicator matrix with each text's best labels, as many as a train text has on average."""
        check_is_fitted(self, "labels_")
        top = self.predict_topk(X, self.labels_per_text_)
        scores = top.to_csr()
        return sparse.csr_matrix((np.ones_like(scores.data), scores.indices, scores.indptr), shape=scores.shape)

    def decision_function(self, X: object) -> sparse.csr_matrix:
        """Sparse scores of each text's best hundred labels."""
        check_is_fitted(self, "labels_")
        return self.predict_topk(X, min(_DECISION_K, len(self.labels_))).to_csr()

    def score(self, X: object, y: object = None) -> float:
        """Precision at 1, from 0 to 1.

        Args:
            X: A labelled split, or texts or features.
            y: Their labels, as for `fit`: names, ids or rows of this model's labels, or the values of a flat list.
        """
        check_is_fitted(self, "labels_")
        split = as_split(X, y)
        self._as_trained(split)
        own = self.labels_.index
        column = [own.get(name, -1) for name in split.labels.ids]  # this model's row of each of the split's labels
        true_label = np.full(len(self.labels_), -1)
        for theirs, ours in enumerate(column):
            if ours >= 0:
                true_label[ours] = theirs
        best = self.predict_topk(split, 1).ids[:, 0]
        theirs = np.where(best >= 0, true_label[best], -1)
        rows = np.flatnonzero(theirs >= 0)
        hits = np.asarray(split.Y[rows, theirs[rows]]).ravel() > 0 if len(rows) else np.empty(0, bool)
        return float(hits.sum() / len(split))

    def save(self, path: str | Path) -> None:
        """Write the model folder. A model that is there already is replaced at the very end, in one step."""
        check_is_fitted(self, "labels_")

        def write(folder: Path) -> None:
            write_labels(folder / LABELS_FILE, self.labels_)
            if self.history_:
                (folder / _HISTORY_FILE).write_text(json.dumps(self.history_), encoding="utf-8")
            self._write(folder)

        facts = {
            "settings": dataclasses.asdict(self.settings_),
            "labels_per_text": self.labels_per_text_,
            "documents": self.documents_,
        }
        if hasattr(self, "n_features_in_"):
            facts["features"] = self.n_features_in_
        plain = {name: value for name, value in self.get_params(deep=False).items() if isinstance(value, _PLAIN)}
        save_folder(path, Manifest(type(self).__name__, plain, self.data_, {}, facts), write)

    def _restore(self, manifest: Manifest, folder: Path) -> None:
        self.settings_ = self.settings_type(**manifest.facts["settings"])
        self.labels_ = read_labels(folder / LABELS_FILE)
        self.data_ = manifest.data
        self.labels_per_text_ = manifest.facts["labels_per_text"]
        self.documents_ = manifest.facts["documents"]
        history = folder / _HISTORY_FILE
        self.history_ = json.loads(history.read_text(encoding="utf-8")) if history.exists() else {}
        if "features" in manifest.facts:
            self.n_features_in_ = manifest.facts["features"]
        self._read(folder)

    def _fit(self, split: Split, runs: TrainingRuns) -> None:
        raise NotImplementedError

    def _rank(self, inputs: list[str] | Features, k: int, allowed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Ids and scores of the k best allowed labels (a mask over labels, None: all) of each input."""
        raise NotImplementedError

    def _write(self, folder: Path) -> None:
        raise NotImplementedError

    def _read(self, folder: Path) -> None:
        raise NotImplementedError

    @property
    def n_threads(self) -> int:
        """Threads to work with: as asked for, or one for each core this process may use."""
        return thread_count(self.threads)

    def _given(self) -> dict[str, Any]:
        names = {field.name for field in dataclasses.fields(self.settings_type)}
        return {name: value for name, value in self.get_params(deep=False).items() if name in names}

    def _as_trained(self, X: object) -> list[str] | Features:
        """The inputs, refused if they are not of the kind that the model was trained on."""
        inputs = as_inputs(X)
        expected = getattr(self, "n_features_in_", None)
        if isinstance(inputs, list):
            if expected is not None:
                raise UserError("texts, but the model was trained on features", where="X", remedy="Give a matrix")
        elif expected is None:
            raise UserError("features, but the model was trained on texts", where="X", remedy="Give a list of strings")
        elif inputs.shape[1] != expected:
            raise UserError(
                f"X has {inputs.shape[1]} features, but {type(self).__name__} is expecting {expected} features as input"
            )
        return inputs

    def _allowed(
        self, candidates: Iterable[str | int] | None, exclude: Iterable[str | int] | None
    ) -> np.ndarray | None:
        if candidates is None and exclude is None:
            return None
        allowed = np.full(len(self.labels_), candidates is None)
        for labels, value, where in ((candidates, True, "candidates"), (exclude, False, "exclude")):
            if labels is None:
                continue
            if isinstance(labels, str):
                raise UserError("one string where a list of labels is wanted", where=where, remedy="Wrap it: [label]")
            for label in labels:
                allowed[label_row(label, self.labels_)] = value
        return allowed

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # pyrefly: ignore[missing-attribute]
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def load(path: str | Path, *, verify: bool = True) -> XmcEstimator:
    """Open a saved model of any system; large arrays stay on disk until they are used.

    Args:
        path: The folder that `save` wrote.
        verify: Check every file against its checksum first.
    """
    opened = open_folder(path, verify=verify)
    home = SYSTEMS.get(opened.manifest.system)
    if home is None:
        raise ModelFolderError(
            f"no system is called {opened.manifest.system!r}", where=str(path), remedy="Upgrade deepxc"
        )
    model = getattr(import_module(home), opened.manifest.system)(**opened.manifest.settings)
    model._restore(opened.manifest, opened.data)  # noqa: SLF001
    return model

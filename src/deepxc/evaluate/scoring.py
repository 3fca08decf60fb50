"""Score a trained model on a labelled split, with everything that belongs to doing so honestly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from deepxc.evaluate.metrics import Report, evaluate
from deepxc.evaluate.ranking import needed_k
from deepxc.labels.propensity import Propensity

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from deepxc.data.dataset import Split
    from deepxc.data.label_space import LabelSpace
    from deepxc.predict.topk import TopK


class Ranker(Protocol):
    """A trained model, as far as scoring needs to know it."""

    labels_: LabelSpace
    data_: dict[str, Any]

    def predict_topk(self, X: object, k: int) -> TopK:
        """The k best labels of each text."""
        ...


def score_model(
    model: Ranker, split: Split, *, ks: Iterable[int] = (1, 3, 5, 10), propensity: Propensity | None = None
) -> Report:
    """Rank the split's texts and measure the answers; filter pairs leave before the cut at k.

    Args:
        model: A trained model whose labels are the split's.
        split: Labelled rows.
        ks: Cut-offs.
        propensity: A and B of the propensity-scored metrics; the field's default values if None. Label frequencies
            are those of the model's train data.
    """
    ks = tuple(ks)
    frequencies = model.labels_.frequencies
    assert frequencies is not None
    inverse = (propensity or Propensity()).inverse(frequencies, model.data_["texts"])
    wanted = min(needed_k(max(ks), split.filter_pairs), len(model.labels_))
    top = model.predict_topk(split.inputs, wanted)
    return evaluate(top, split.Y, ks=ks, inverse_propensity=inverse, filter_pairs=split.filter_pairs)

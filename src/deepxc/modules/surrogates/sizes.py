"""How many surrogate labels a task gets where the user does not say."""

from __future__ import annotations

LARGEST = 1 << 16  # DeepXML, A.1: more than this gained next to nothing
_LABELS_EACH = 4.0


def surrogate_size(n_labels: int, *, labels_each: float = _LABELS_EACH, largest: int = LARGEST) -> int:
    """The largest power of two that leaves so many labels to each surrogate label; from 2 (or 1 label) to `largest`.

    Args:
        n_labels: Number of labels.
        labels_each: Labels for each surrogate label, at least: 4 as in DeepXML.
        largest: Most surrogate labels: 2^16 as in DeepXML.
    """
    room = max(int(n_labels / labels_each), 1)
    return max(1, min(n_labels, largest, max(2, 1 << (room.bit_length() - 1))))

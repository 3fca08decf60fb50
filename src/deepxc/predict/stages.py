"""Where the time of an answer goes: stages note their seconds while somebody listens, and cost next to nothing else.

with listening() as stages:
model.predict_topk(texts, 5)
stages.seconds  # {"tokens": ..., "search": ...}
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class StageSeconds:
    """Seconds of each stage, in the order in which they first came."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def note(self, name: str) -> Iterator[None]:
        """Add the time inside to a stage."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun


_listener: ContextVar[StageSeconds | None] = ContextVar("stages", default=None)
_SILENCE = nullcontext()


def stage(name: str) -> AbstractContextManager[None]:
    """The work inside belongs to the stage of this name."""
    listener = _listener.get()
    return _SILENCE if listener is None else listener.note(name)


@contextmanager
def listening() -> Iterator[StageSeconds]:
    """Note the stages of all that happens inside, on this thread."""
    heard = StageSeconds()
    token = _listener.set(heard)
    try:
        yield heard
    finally:
        _listener.reset(token)

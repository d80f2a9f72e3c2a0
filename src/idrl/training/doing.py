"""What a run is busy with, for who shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

RESUMING, REPLAYING, RANDOM, LEARNING, EVALUATING = (
    "resuming", "replaying", "random", "learning", "evaluating",
)  # fmt: skip


class Doing(NamedTuple):
    """How far it is."""

    what: str  # one of those above
    done: int  # steps of each seed; of a replay, of all environments
    total: int


Tell = Callable[[Doing], None]


class Between(Protocol):
    """Called about once a second, or more often, by what takes longer."""

    def __call__(self, doing: Doing | None = None, /) -> None: ...


def nothing(doing: Doing | None = None, /) -> None:
    pass

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


# True where the run is to stop: what may as well be done later is not to be done now.
Tell = Callable[[Doing], bool | None]


class Between(Protocol):
    """Called about once a second, or more often, by what takes longer."""

    def __call__(self, doing: Doing | None = None, /) -> None: ...


def nothing(doing: Doing | None = None, /) -> None:
    pass

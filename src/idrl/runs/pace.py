"""How long the rest of a run takes, from what was measured in this process."""

from __future__ import annotations

import time
from collections.abc import Callable

from idrl.training.doing import EVALUATING, LEARNING, Doing

_HALF_LIFE = 60.0  # seconds after which what was measured counts half
_ENOUGH = 1.0  # seconds that have to be measured before anything is said


class Pace:
    """Random steps, a replay and learning differ in speed, so each is measured for itself. Its
    first stretch is left out: most of that is compiling."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.clock = clock
        self.doing: Doing | None = None
        self.at = self.began = 0.0  # when this was last told of, and begun
        self.sums: dict[str, tuple[float, float]] = {}  # seconds and steps, of what was measured
        self.evaluations: list[float] = []  # seconds of each

    def note(self, doing: Doing) -> None:
        """It is, or was until now, done so far."""
        now, before = self.clock(), self.doing
        if before is None or before.what != doing.what:
            if before is not None and before.what == EVALUATING:
                self.evaluations.append(now - self.began)
            self.began = now
        elif doing.what not in self.sums:
            if doing.done > before.done:
                self.sums[doing.what] = 0.0, 0.0
        else:
            seconds, steps = self.sums[doing.what]
            fade = 0.5 ** ((now - self.at) / _HALF_LIFE)
            self.sums[doing.what] = (
                fade * seconds + now - self.at,
                fade * steps + doing.done - before.done,
            )
        self.doing, self.at = doing, now

    @property
    def elapsed(self) -> float:
        """Seconds since what is done now began."""
        return self.clock() - self.began

    def speed(self, what: str = LEARNING) -> float:
        """Steps a second; 0: not measured yet."""
        seconds, steps = self.sums.get(what, (0.0, 0.0))
        return steps / seconds if seconds >= _ENOUGH else 0.0

    def stretch_left(self) -> str:
        """How long what is done now takes yet; empty where that is not known."""
        doing = self.doing
        speed = self.speed(doing.what) if doing is not None else 0.0
        return f"{lasting((doing.total - doing.done) / speed)} left" if doing and speed else ""

    def run_left(self, done: int, total: int, evaluated_every: int) -> str:
        """How long the run takes yet, evaluations included as soon as one was measured."""
        speed = self.speed()
        if not speed or done >= total:
            return ""
        evaluations = -(-total // evaluated_every) - done // evaluated_every
        seconds = (total - done) / speed
        if self.evaluations:  # the first of them is compiled for
            known = self.evaluations[1:] or self.evaluations
            seconds += evaluations * sum(known) / len(known)
        unknown = evaluations and not self.evaluations
        return f"{'at least ' if unknown else ''}{lasting(seconds)} left"


def lasting(seconds: float) -> str:
    """As people say it, with two digits or a little more."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:,.1f} days"

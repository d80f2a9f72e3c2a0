"""How long to train, how to evaluate, and the cadence that follows from it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from idrl.agents.spec import Learning
from idrl.errors import IdrlError

_MOST = 2**31 - 1  # counters are of 32 bits
_MOST_KEPT = 31  # the evaluations 1, 2, 4, … below 2³¹
_MOST_BLOCKS = 64  # as many times the block of now one of an earlier version may be


def _check_counts(settings: object, where: str, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        if value <= 0:
            raise IdrlError(f"{where}.{name} is {value}; it must be positive.")
        if value > _MOST:
            raise IdrlError(f"{where}.{name} is {value}; it must be at most {_MOST:,}.")


@dataclass(frozen=True)
class Training:
    """One step is one action in one environment, of each seed."""

    steps: int = 50_000_000  # 200M frames
    envs: int = 1  # environments of each seed
    log_every_steps: int = 50_000
    distributions_every_steps: int = 0  # 0: never; the presets switch them on
    env_timeout_s: float = 120.0  # of one call of an environment on the host; 0 waits for ever
    env_processes: int = 0  # that step environments on the host; 0: as the environment says
    keep_weights: int = 0  # how many are kept, after the evaluations 1, 2, 4, 8, …
    # Evaluations between new seeds of environments on the host (training.hosted.fleet); 0: as many
    # as the environment says, as all runs had before there was this setting.
    reseed_every: int = 0

    def check(self, where: str) -> None:
        if self.distributions_every_steps < 0:
            raise IdrlError(
                f"{where}.distributions_every_steps is {self.distributions_every_steps}; "
                "it is positive, or 0 to switch them off."
            )
        _check_counts(self, where, "steps", "envs", "log_every_steps")
        if not 0 <= self.keep_weights <= _MOST_KEPT:
            raise IdrlError(
                f"{where}.keep_weights is {self.keep_weights}; it must be from 0 to {_MOST_KEPT}."
            )
        if self.reseed_every < 0:
            raise IdrlError(
                f"{where}.reseed_every is {self.reseed_every}; it must be a number of evaluations, "
                "or 0 for as many as the environment says."
            )
        if self.env_processes < 0:
            raise IdrlError(
                f"{where}.env_processes is {self.env_processes}; it must be a number of processes, "
                "or 0 for as many as the environment says."
            )
        if self.env_timeout_s < 0:
            raise IdrlError(f"{where}.env_timeout_s is {self.env_timeout_s}; it must be ≥ 0.")


@dataclass(frozen=True)
class Evaluation:
    """The best-agent protocol: every so many steps, the score over so many steps; keep the best."""

    every_steps: int = 250_000  # Table 2
    steps: int = 125_000  # Table 2
    envs: int = 1
    # Environments on the host: an evaluation is played beside the training that follows it.
    beside: bool = False

    def check(self, where: str) -> None:
        _check_counts(self, where, "every_steps", "steps", "envs")


@dataclass(frozen=True)
class Cadence:
    """The static shape of training: what the compiled programs repeat.

    An iteration is the shortest stretch with whole vector steps and whole updates. A block is what
    one call of the compiled program does. Whatever is due happens at the first block boundary at
    or past its count, and the next is counted from the count, not from the boundary: no drift.
    Where blocks end does not depend on how long the run is, except that its last may be short.

    Where `flexible`, blocks are no compiled shapes: they end where an evaluation is due, and a
    block copies to the target by itself at every `target_every_steps`.
    """

    vector_steps: int  # per iteration
    updates: int  # per iteration
    steps: int  # agent steps per iteration
    warmup_vector_steps: int  # random actions before the first iteration
    target_every: int  # iterations between copies to the target
    target_every_steps: int
    block: int  # iterations per block, at most
    total: int  # iterations of the whole run
    eval_every_steps: int
    log_every_steps: int
    distributions_every_steps: int  # or 0
    flexible: bool = False

    def end(self, iteration: int) -> int:
        """Where the block that begins with `iteration` ends."""
        return min(self._whole_end(iteration), self.total)

    def _whole_end(self, iteration: int) -> int:
        """The same in a run without end."""
        end = iteration + self.block
        if not self.flexible:
            return end
        next_eval = self.steps_at(iteration) // self.eval_every_steps + 1
        return min(end, self._evaluated(next_eval))

    def _evaluated(self, number: int) -> int:
        """Where blocks are flexible: after how many iterations evaluation `number` is due."""
        return math.ceil((number * self.eval_every_steps - self.warmup_steps) / self.steps)

    def begin(self, iteration: int) -> int:
        """Where the block that ends with `iteration` began."""
        first = 0
        if self.flexible:  # blocks are counted from the evaluation before
            number = self.steps_at(iteration - 1) // self.eval_every_steps
            first = max(0, self._evaluated(number))
        return first + (iteration - 1 - first) // self.block * self.block

    @property
    def last(self) -> int:
        """Where the last block of the run begins."""
        return self.begin(self.total)

    @property
    def cut(self) -> bool:
        """Whether a longer run is not in the same state where this one ends, or not told of it:
        its block goes on there, or an evaluation or a row of a table is not due."""
        often = (self.eval_every_steps, self.log_every_steps, self.distributions_every_steps)
        counts = self.steps_at(self.last), self.steps_at(self.total)
        told = all(due(*counts, every) for every in often if every)
        return self._whole_end(self.last) != self.total or not told

    def copies(self, iteration: int) -> bool:
        """Whether a flexible block copies to the target after `iteration` iterations."""
        before, after = self.steps_at(iteration - 1), self.steps_at(iteration)
        return due(before, after, self.target_every_steps)

    def evaluation(self, iteration: int) -> int:
        """The number of the evaluation after `iteration` iterations. Where blocks are flexible it
        is the count that is reached or a little passed, so no two have the same."""
        steps, every = self.steps_at(iteration), self.eval_every_steps
        if self.flexible and due(self.steps_at(iteration - 1), steps, every):
            return steps // every
        return math.ceil(steps / every)  # the end of a run may be between two counts

    @property
    def updates_due(self) -> list[int]:
        """In each vector step of an iteration: those whose count is reached by then."""
        counts = [step * self.updates // self.vector_steps for step in range(self.vector_steps + 1)]
        return [after - before for before, after in itertools.pairwise(counts)]

    def steps_at(self, iteration: int) -> int:
        """Agent steps of each seed after so many iterations."""
        return self.warmup_steps + iteration * self.steps

    def vector_steps_at(self, iteration: int) -> int:
        """Vector steps after so many iterations."""
        return self.warmup_vector_steps + iteration * self.vector_steps

    @property
    def warmup_steps(self) -> int:
        return self.warmup_vector_steps * (self.steps // self.vector_steps)


def cadence(
    training: Training, evaluation: Evaluation, learning: Learning, largest_block: int,
    block: int | None = None, flexible: bool = False,
) -> Cadence:  # fmt: skip
    """`largest_block`: how many iterations are about a second's work. A `block` that is given is
    kept: a run goes on in the steps it began with. Flexible ones need no such thing: they begin
    and end at the same evaluations."""
    envs, every = training.envs, learning.update_every_steps
    steps = math.lcm(envs, every)
    # At least a row and its successor, with hosted loops a row behind.
    warmup = max(math.ceil(learning.learning_starts_steps / envs), 2 + learning.n_step - 1)
    target = max(1, round(learning.target_every_steps / steps))
    if flexible:
        block = largest_block
    elif block is None:
        log = max(training.log_every_steps // steps, largest_block // 16)
        block = _block(
            target, evaluation.every_steps // steps, warmup * envs // steps, min(largest_block, log)
        )
    elif block > max(_MOST_BLOCKS * largest_block, 1):
        raise IdrlError(f"blocks of {block:,} iterations would take minutes; none of ours does.")
    elif block < 1 or (block % target and target % block):
        raise IdrlError(f"blocks of {block} iterations do not fit a target copied every {target}.")
    total = max(1, math.ceil((training.steps - warmup * envs) / steps))
    if (made := warmup * envs + total * steps) > _MOST:
        raise IdrlError(
            f"with training.envs={envs} a run makes at least {made:,} steps, and it counts to "
            f"{_MOST:,}: use fewer of either."
        )
    return Cadence(
        vector_steps=steps // envs,
        updates=steps // every,
        steps=steps,
        warmup_vector_steps=warmup,
        target_every=target,
        target_every_steps=learning.target_every_steps,
        block=block,
        total=total,
        eval_every_steps=evaluation.every_steps,
        log_every_steps=training.log_every_steps,
        distributions_every_steps=training.distributions_every_steps,
        flexible=flexible,
    )


def _block(target: int, period: int, warmup: int, largest: int) -> int:
    """A length that divides, or is a multiple of, the target's period, and suits the evaluations,
    which are due every `period` iterations, `warmup` of which are over before the first.

    So the copy to the target needs no branch inside the compiled loop: it ends an inner loop, or
    happens between two blocks.
    """
    largest = max(1, min(largest, period))
    if target > largest:
        candidates = [d for d in range(1, largest + 1) if target % d == 0]
    else:
        candidates = list(range(target, largest + 1, target))
    # Meeting the evaluations exactly is worth a block of a sixteenth of the size, not less; where
    # that cannot be, they are at most an eighth of their period late.
    candidates = [c for c in reversed(candidates) if c * 16 >= candidates[-1]]

    def late(block: int) -> int:
        """The latest of the first evaluations."""
        return max(-(number * period - warmup) % block for number in range(1, 17))

    fits = [c for c in candidates if period % c == 0 and warmup % c == 0]
    near = (c for c in candidates if 8 * late(c) <= period)
    return fits[0] if fits else next(near, None) or min(candidates, key=late)


def due(before: int, after: int, every: int) -> bool:
    """Whether a multiple of `every` was passed or reached between two counts."""
    return after // every > before // every


@dataclass(frozen=True)
class Stretches:
    """`total` steps in pieces of at most `largest`: of one length where that can be had, since
    each length is compiled for itself."""

    total: int
    largest: int

    @property
    def length(self) -> int:
        least = math.ceil(self.total / max(1, self.largest))
        few = range(least, min(4 * least, least + 1000))
        return math.ceil(self.total / next((n for n in few if self.total % n == 0), least))

    def pieces(self) -> list[np.ndarray]:
        """The steps of each."""
        ends = range(self.length, self.total + self.length, self.length)
        return np.split(np.arange(self.total, dtype=np.int32), ends[:-1])

"""How long to train, how to evaluate, and the cadence that follows from it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from idrl.agents.spec import Learning
from idrl.errors import IdrlError

_MOST = 2**31 - 1  # counters are of 32 bits
_MOST_BLOCKS = 64  # as many times the block of now one of an earlier version may be


def _check_counts(settings: object, where: str, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        if value <= 0:
            raise IdrlError(f"{where}.{name} is {value}; it must be positive.")
        if value > _MOST:
            raise IdrlError(f"{where}.{name} is {value}; it is at most {_MOST:,}.")


@dataclass(frozen=True)
class Training:
    """One step is one action in one environment, of each seed."""

    steps: int = 50_000_000  # 200M frames
    envs: int = 1  # environments of each seed
    log_every_steps: int = 50_000
    distributions_every_steps: int = 0  # 0: never; the presets switch them on
    env_timeout_s: float = 120.0  # of one call of an environment on the host; 0 waits for ever

    def check(self, where: str) -> None:
        if self.distributions_every_steps < 0:
            raise IdrlError(
                f"{where}.distributions_every_steps is {self.distributions_every_steps}; "
                "it is positive, or 0 to switch them off."
            )
        _check_counts(self, where, "steps", "envs", "log_every_steps")
        if self.env_timeout_s < 0:
            raise IdrlError(f"{where}.env_timeout_s is {self.env_timeout_s}; it is ≥ 0.")


@dataclass(frozen=True)
class Evaluation:
    """The best-agent protocol: every so many steps, the score over so many steps; keep the best."""

    every_steps: int = 250_000  # Table 2
    steps: int = 125_000  # Table 2
    envs: int = 1

    def check(self, where: str) -> None:
        _check_counts(self, where, "every_steps", "steps", "envs")


@dataclass(frozen=True)
class Cadence:
    """The static shape of training: what the compiled programs repeat.

    An iteration is the shortest stretch with whole vector steps and whole updates. A block is what
    one call of the compiled program does. Whatever is due happens at the first block boundary at
    or past its count, and the next is counted from the count, not from the boundary: no drift.

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
        end = iteration + self.block
        if not self.flexible:
            return end
        every = self.eval_every_steps
        next_eval = (self.steps_at(iteration) // every + 1) * every
        return min(end, self.total, math.ceil((next_eval - self.warmup_steps) / self.steps))

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

    def steps_at(self, iteration: int) -> int:
        """Agent steps of each seed after so many iterations."""
        return self.warmup_steps + iteration * self.steps

    @property
    def warmup_steps(self) -> int:
        return self.warmup_vector_steps * (self.steps // self.vector_steps)


def cadence(
    training: Training, evaluation: Evaluation, learning: Learning, largest_block: int,
    block: int | None = None, flexible: bool = False,
) -> Cadence:  # fmt: skip
    """`largest_block`: how many iterations are about a second's work. A `block` that is given is
    kept: a run that is made longer goes on in the steps it began with. Flexible ones need no such
    thing: they begin and end at the same evaluations."""
    envs, every = training.envs, learning.update_every_steps
    steps = math.lcm(envs, every)
    # At least a row and its successor, with hosted loops a row behind.
    warmup = max(math.ceil(learning.learning_starts_steps / envs), 2 + learning.n_step - 1)
    total = max(1, math.ceil((training.steps - warmup * envs) / steps))
    target = max(1, round(learning.target_every_steps / steps))
    eval_every = min(evaluation.every_steps, training.steps)
    # Blocks that meet every evaluation exactly divide its period and the steps before the first.
    grid = math.gcd(eval_every // steps, warmup * envs // steps, total)
    if flexible:
        block = max(1, min(largest_block, total))
    elif block is None:
        block = _block(target, grid, total, min(total, max(1, eval_every // steps)), largest_block)
    elif block > max(_MOST_BLOCKS * largest_block, 1):
        raise IdrlError(f"blocks of {block:,} iterations would take minutes; none of ours does.")
    elif block < 1 or (block % target and target % block):
        raise IdrlError(f"blocks of {block} iterations do not fit a target copied every {target}.")
    return Cadence(
        vector_steps=steps // envs,
        updates=steps // every,
        steps=steps,
        warmup_vector_steps=warmup,
        target_every=target,
        target_every_steps=learning.target_every_steps,
        block=block,
        total=total if flexible else math.ceil(total / block) * block,
        eval_every_steps=eval_every,
        log_every_steps=training.log_every_steps,
        distributions_every_steps=training.distributions_every_steps,
        flexible=flexible,
    )


def _block(target: int, grid: int, total: int, longest: int, largest: int) -> int:
    """A length that divides, or is a multiple of, the target's period, and suits the evaluations.

    So the copy to the target needs no branch inside the compiled loop: it ends an inner loop, or
    happens between two blocks.
    """
    largest = max(1, min(largest, longest))
    if target > largest:
        candidates = [d for d in range(1, largest + 1) if target % d == 0]
    else:
        candidates = list(range(target, largest + 1, target))
    # Meeting the evaluations and the end exactly is worth a block of a sixteenth of the size, not
    # less; where that cannot be, the run overshoots as little as it can.
    candidates = [c for c in candidates if c * 16 >= candidates[-1]]
    fits = [c for c in candidates if grid % c == 0]
    return fits[-1] if fits else min(candidates, key=lambda c: (-total % c, -c))


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

    def later(self) -> Iterator[np.ndarray]:
        """The steps of each piece but the first."""
        length = self.length
        for first in range(length, self.total, length):
            yield np.arange(first, min(first + length, self.total), dtype=np.int32)

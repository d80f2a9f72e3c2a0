"""Decisions worth telling: early ones that explore, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from idrl.actions import actions_of
from idrl.agents import make_agent
from idrl.envs import HostEnv, make_env
from idrl.inspect.play.episode import MAX_STEPS, Episode, recorded_episode
from idrl.inspect.play.recorder import DecisionRecorder
from idrl.report.statistics import short
from idrl.runs.loading import load
from idrl.runs.run import Run

_CLEARLY = 1.1  # times as much is worth a word
_SEEDS = 4  # whose early episodes are looked at


class Moment(NamedTuple):
    """Step `t` of an episode that weights played after `at` steps of training; None: the best."""

    at: int | None
    t: int
    episode: Episode

    @property
    def chosen(self) -> int:
        return int(self.episode.explored[self.t])

    @property
    def greedy(self) -> int:
        return int(self.episode.greedy[self.t])

    @property
    def explores(self) -> bool:
        return self.chosen != self.greedy

    def of(self, name: str, action: int) -> float:
        return float(getattr(self.episode, name)[self.t, action])

    @property
    def margin(self) -> float:
        """How many times the greedy action's ratio is that of the one that is taken."""
        return self.of("ratio", self.greedy) / max(self.of("ratio", self.chosen), 1e-12)

    def is_where(self, other: Moment) -> bool:
        """Whether both are in the same place."""
        here, there = (m.episode.view.frames[m.t] for m in (self, other))
        return np.array_equal(here, there)

    @property
    def quieter(self) -> float:
        """How many times the greedy action's noise is that of the one that is taken."""
        return self.of("rho2", self.greedy) / max(self.of("rho2", self.chosen), 1e-12)


def three_moments(run: Run) -> list[Moment]:
    """Two decisions of the first kept weights that explore, one of them for the noise where there
    is one, and what the trained agent does in the place of the first."""
    at, seeds = run.kept_weights[0], run.seeds[:_SEEDS]
    play = _player(run)
    early = [Moment(at, t, one) for one in (play(seed, at) for seed in seeds) for t in _steps(one)]
    # Where none explores, the first ones have to do.
    told = sorted((m for m in early if m.explores), key=lambda m: -m.margin) or early
    first, rest = told[0], told[1:] or early[1:]
    second = max(rest, key=lambda moment: moment.quieter)
    trained = play(first.episode.seed, None)
    return [first, second, Moment(None, min(first.t, _steps(trained)[-1]), trained)]


def _steps(episode: Episode) -> range:
    return range(len(episode.action))


def _player(run: Run) -> Callable[[int, int | None], Episode]:
    """Plays an episode by seed and kept weights (None: the best); all share what is compiled."""
    env = run.config.env
    world = make_env(env)
    assert not isinstance(world, HostEnv)
    advance = jax.jit(world.step)
    agent = make_agent(run.config.spec, world.obs_shape, actions_of(world))
    recorder = DecisionRecorder(agent, "explore")
    return lambda seed, at: recorded_episode(
        recorder, load(run, seed, at=at), world, env, MAX_STEPS, advance
    )


def sentence(moment: Moment, before: Moment | None = None) -> str:
    """Why this action, in one sentence; `before` is an earlier moment of the same seed."""
    a, g = moment.chosen, moment.greedy
    if moment.explores:
        why = " and ".join(_reasons(moment)) or "it costs hardly more"
        return (
            f"Action {g} promises more (μ {_pair(moment, 'mu', g, a)}), but IDS takes action {a}: "
            f"{why}, so it teaches {_times(moment.of('info_gain', a), moment.of('info_gain', g))} "
            f"(I {_pair(moment, 'info_gain', a, g)}) for what it may cost "
            f"(Δ̂ {_pair(moment, 'regret', a, g)})."
        )
    other = _runner_up(moment)
    if other is None:
        return f"There is one action to take, and IDS takes it: {a}."
    again = before is not None and before.chosen == a and moment.is_where(before)
    tried = ", which exploring tried here before" if again else ""
    return (
        f"IDS and greedy agree on action {a}{tried}: it promises more "
        f"(μ {_pair(moment, 'mu', a, other)}), the heads know it (σ {short(moment.of('sigma', a))})"
        f", and action {other} could cost {short(moment.of('regret', other))}, more than what it "
        f"would teach is worth (Ψ {_pair(moment, 'ratio', other, a)})."
    )


def _runner_up(moment: Moment) -> int | None:
    ratios = moment.episode.ratio[moment.t].copy()
    ratios[moment.chosen] = np.inf
    return int(ratios.argmin()) if np.isfinite(ratios).any() else None


def _reasons(moment: Moment) -> list[str]:
    a, g = moment.chosen, moment.greedy
    reasons = []
    if moment.of("sigma", a) > _CLEARLY * moment.of("sigma", g):
        reasons.append(f"the heads agree less on it (σ {_pair(moment, 'sigma', a, g)})")
    if moment.of("rho2", g) > _CLEARLY * moment.of("rho2", a):
        reasons.append(f"its return is less noisy (ρ² {_pair(moment, 'rho2', a, g)})")
    return reasons


def _pair(moment: Moment, name: str, one: int, other: int) -> str:
    return f"{short(moment.of(name, one))} against {short(moment.of(name, other))}"


def _times(more: float, less: float) -> str:
    times = more / max(less, 1e-12)
    if times < _CLEARLY:
        return "about as much"
    if times < 1.5:
        return "more"
    return "twice as much" if times < 2.5 else f"{times:.0f} times as much"

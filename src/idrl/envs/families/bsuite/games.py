"""bsuite's games by name, with the facts about each that presets and sweeps need."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from idrl.envs.base import Env
from idrl.errors import IdrlError, nearest


@dataclass(frozen=True)
class BsuiteGame:
    line: str
    episodes: int  # of one bsuite run
    longest_steps: int  # of one episode
    options: tuple[str, ...] = ()  # beside the noise
    optimum: float | None = None  # of an episode's expected return without noise, where known


GAMES = {
    "bandit": BsuiteGame("11 arms that pay 0, 0.1, …, 1 in random order", 10_000, 1, optimum=1.0),
    # nine moves reach every column of five
    "catch": BsuiteGame("move a paddle under a falling ball, 10×5", 10_000, 9, optimum=1.0),
    "mountain_car": BsuiteGame(
        "build momentum to leave a valley, 1000 steps at most", 1_000, 1_000
    ),
    "cartpole": BsuiteGame("keep a pole up, 1001 steps at most", 1_000, 1_001),
    "cartpole_swingup": BsuiteGame(
        "swing a pole up first; moves cost", 1_000, 1_001, ("height", "width")
    ),
}


def make_bsuite(game: str, noise: float = 0.0, **others: float) -> Env:
    from idrl.envs.families.bsuite.noise import Noisy

    facts = GAMES[game]
    for option, value in {"noise": noise, **others}.items():
        if option not in ("noise", *facts.options):
            hint = nearest(option, ("noise", *facts.options))
            raise IdrlError(f"bsuite/{game}: unknown option {option!r}; {hint}")
        if not 0 <= value < math.inf:
            raise IdrlError(f"bsuite/{game}: {option} is {value}; it must be a number, 0 or more.")
    return Noisy(f"bsuite/{game}", _inner(game, others), noise, facts.optimum)


def _inner(game: str, options: dict[str, float]) -> Any:
    if game == "catch":
        # gymnax plays catch by bsuite's rules; its bandit draws new arms for every episode and
        # its other two games are Gym's, with other observations and other ends.
        from idrl.envs.adapters.gymnax_env import make_gymnax

        return make_gymnax("Catch-bsuite")
    if game == "bandit":
        from idrl.envs.families.bsuite.bandit import Bandit

        return Bandit()
    if game == "mountain_car":
        from idrl.envs.families.bsuite.mountain_car import MountainCar

        return MountainCar()
    from idrl.envs.families.bsuite.poles import Cartpole, Swingup

    return Cartpole() if game == "cartpole" else Swingup(**options)

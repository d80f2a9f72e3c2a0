"""bsuite's games of the noise and exploration experiments, but for DeepSea."""

from __future__ import annotations

import numpy as np

from idrl.envs.declaring import family
from idrl.envs.drawings import car_on_hill, cart_and_pole
from idrl.envs.families.bsuite.games import GAMES, make_bsuite
from idrl.envs.presets import PresetContext, Settings, discrete, small_control
from idrl.envs.views import View
from idrl.schema import merge


@discrete
def preset(task: PresetContext) -> Settings | None:
    """What unknown tasks get, with bsuite's counts: it judges one agent on all games, so nothing
    of the rule, the priors or the range may depend on the game."""
    game = GAMES.get(str(task.argument))
    if game is None:  # who makes it says so
        return None
    steps = game.episodes * game.longest_steps
    settings = small_control(task)
    # Every episode counts, so ε does not begin at 1; 0.05 is that of bsuite's dqn.
    explore = {"epsilon_start": 0.05} if settings["explore"] else {}
    return merge(settings, {
        "kinds": {"epsilon_greedy": {"start": 0.05}},
        "explore": explore,
        "learning": {"learning_starts_steps": 128},  # bsuite's
        "training": {"steps": steps, "envs": 1, "log_every_steps": max(100, steps // 100)},
        "evaluation": {
            "every_steps": max(100, steps // 20), "steps": 10 * game.longest_steps, "envs": 1,
        },
    })  # fmt: skip


def view(seen: np.ndarray) -> View | None:
    """Games are told apart by how many numbers they show."""
    if seen.shape[1:] == (3,):
        return car_on_hill(seen[:, 0])
    if seen.shape[1:] in ((6,), (8,)):  # share of the track, speed, sine and cosine of the angle
        angle = np.arctan2(seen[:, 2], seen[:, 3])
        return cart_and_pole(seen[:, 0], angle, swings=seen.shape[1] == 8)
    return None


family(
    "bsuite/GAME",
    # Which of them a game has is its own matter.
    options={"noise": 0.0, "height": float, "width": float},
    arguments={game: f"{facts.line} (bsuite); ?noise=1.0" for game, facts in GAMES.items()},
    noun="game of bsuite",
    preset=preset,
    host=False,
    view=view,
)(make_bsuite)

"""bsuite's games of the noise and exploration experiments, but for DeepSea."""

from __future__ import annotations

import numpy as np

from idrl.envs.declaring import family
from idrl.envs.drawings import car_on_hill, cart_and_pole
from idrl.envs.families.bsuite.games import GAMES, make_bsuite
from idrl.envs.presets import PresetContext, Settings, deep_exploration, discrete
from idrl.envs.views import View


@discrete
def preset(task: PresetContext) -> Settings | None:
    """deep_sea's network, optimiser and rule: bsuite judges one agent on all games, so nothing but
    the range of returns may depend on the game."""
    game, noise = GAMES.get(str(task.argument)), task.options["noise"]
    if game is None:  # who makes it says so
        return None
    steps = game.episodes * game.longest_steps
    # Noise of every step adds up to a return's: at most 1/(1-γ²) ≈ 50 steps' worth of variance.
    spread = 3 * noise * min(game.longest_steps, 50) ** 0.5
    settings = deep_exploration(10, episodes=0)
    kinds = settings["kinds"]
    kinds["categorical"] |= {"v_min": game.low - spread, "v_max": game.high + spread}
    # Huber's clipped gradient lets Q creep (see small_control); bsuite's agents square errors too.
    kinds["q"] = kinds["q"] | {"error": "squared"}
    kinds["ensemble"] |= {"error": "squared"}
    kinds["epsilon_greedy"] |= {"start": 0.05, "end": 0.05}  # bsuite's dqn
    settings["learning"] |= {"learning_starts_steps": 128, "replay_capacity": 10_000}  # bsuite's
    settings["training"] |= {"steps": steps, "log_every_steps": max(100, steps // 100)}
    settings["evaluation"] = {
        "every_steps": max(100, steps // 20), "steps": 10 * game.longest_steps, "envs": 1
    }  # fmt: skip
    return settings


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

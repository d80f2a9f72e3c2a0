"""CartPole by gymnax."""

from __future__ import annotations

import numpy as np

from idrl.envs.adapters.gymnax_env import GymnaxEnv, make_gymnax
from idrl.envs.declaring import family
from idrl.envs.drawings import cart_and_pole
from idrl.envs.presets import PresetContext, Settings, discrete, small_control
from idrl.envs.views import View


@discrete
def preset(task: PresetContext) -> Settings:
    """To 475 of 500."""
    settings = small_control(task)
    settings["training"]["steps"] = 200_000  # 120,000 leaves one seed in four short of 475
    return settings


def view(seen: np.ndarray) -> View | None:
    """`[T, 4]`: position, speed, angle, spin."""
    return cart_and_pole(seen[:, 0] / 2.4, seen[:, 2]) if seen.shape[1:] == (4,) else None


@family(
    "cartpole",
    summary="balance a pole, 500 steps at most (gymnax CartPole-v1)",
    preset=preset,
    like=("gymnax/CartPole-v1", "gym/CartPole-v1"),
    host=False,
    view=view,
)
def cartpole() -> GymnaxEnv:
    return make_gymnax("CartPole-v1")

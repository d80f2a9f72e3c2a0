"""Pendulum by gymnax, with continuous actions."""

from __future__ import annotations

import numpy as np

from idrl.envs.adapters.gymnax_env import GymnaxEnv, make_gymnax
from idrl.envs.control_presets import small_box
from idrl.envs.declaring import family
from idrl.envs.drawings import arm
from idrl.envs.presets import PresetContext, Settings, continuous
from idrl.envs.views import View


@continuous
def preset(task: PresetContext) -> Settings:
    return small_box(task, steps=20_000, episode=200, often=1_000)  # 10 episodes an evaluation


def view(seen: np.ndarray) -> View | None:
    """`[T, 3]`: cosine and sine of the angle from upright, spin."""
    if seen.shape[1:] != (3,):
        return None
    return arm("The pendulum, upright at best", [(-0.38 * seen[:, 1], 0.38 * seen[:, 0])])


@family(
    "pendulum",
    summary="swing a pendulum up; continuous (gymnax Pendulum-v1)",
    preset=preset,
    like=("gymnax/Pendulum-v1", "gym/Pendulum-v1"),
    host=False,
    view=view,
)
def pendulum() -> GymnaxEnv:
    return make_gymnax("Pendulum-v1")

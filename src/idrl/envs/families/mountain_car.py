"""MountainCar by gymnax."""

from __future__ import annotations

import numpy as np

from idrl.envs.adapters.gymnax_env import GymnaxEnv, make_gymnax
from idrl.envs.declaring import family
from idrl.envs.drawings import car_on_hill
from idrl.envs.presets import PresetContext, Settings, discrete, small_control
from idrl.envs.views import View


@discrete
def preset(task: PresetContext) -> Settings:
    return small_control(task)


def view(seen: np.ndarray) -> View | None:
    """`[T, 2]`: position and speed."""
    return car_on_hill(seen[:, 0]) if seen.shape[1:] == (2,) else None


@family(
    "mountain_car",
    summary="build momentum to leave a valley (gymnax MountainCar-v0)",
    preset=preset,
    like=("gymnax/MountainCar-v0", "gym/MountainCar-v0"),
    host=False,
    view=view,
)
def mountain_car() -> GymnaxEnv:
    return make_gymnax("MountainCar-v0")

"""MountainCar by gymnax."""

from __future__ import annotations

from idrl.envs.adapters.gymnax_env import GymnaxEnv, make_gymnax
from idrl.envs.declaring import family
from idrl.envs.presets import PresetContext, Settings, discrete, small_control


@discrete
def preset(task: PresetContext) -> Settings:
    return small_control(task)


@family(
    "mountain_car",
    summary="build momentum to leave a valley (gymnax MountainCar-v0)",
    preset=preset,
    like=("gym/MountainCar-v0",),
    host=False,
)
def mountain_car() -> GymnaxEnv:
    return make_gymnax("MountainCar-v0")

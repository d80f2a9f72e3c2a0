"""Acrobot by gymnax."""

from __future__ import annotations

from idrl.envs.adapters.gymnax_env import GymnaxEnv, make_gymnax
from idrl.envs.declaring import family
from idrl.envs.presets import PresetContext, Settings, discrete, small_control


@discrete
def preset(task: PresetContext) -> Settings:
    return small_control(task)


@family(
    "acrobot",
    summary="swing a two-link arm over a line (gymnax Acrobot-v1)",
    preset=preset,
    like=("gym/Acrobot-v1",),
    host=False,
)
def acrobot() -> GymnaxEnv:
    return make_gymnax("Acrobot-v1")

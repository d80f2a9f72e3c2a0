"""Pendulum by gymnax, with continuous actions."""

from __future__ import annotations

from idrl.envs.adapters.gymnax_env import GymnaxEnv, make_gymnax
from idrl.envs.control_presets import small_box
from idrl.envs.declaring import family
from idrl.envs.presets import PresetContext, Settings, continuous


@continuous
def preset(task: PresetContext) -> Settings:
    return small_box(task, steps=20_000, episode=200, often=1_000)  # 10 episodes an evaluation


@family(
    "pendulum",
    summary="swing a pendulum up; continuous (gymnax Pendulum-v1)",
    preset=preset,
    like=("gymnax/Pendulum-v1", "gym/Pendulum-v1"),
    host=False,
)
def pendulum() -> GymnaxEnv:
    return make_gymnax("Pendulum-v1")

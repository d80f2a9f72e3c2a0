"""Reacher by gymnax, with continuous actions."""

from __future__ import annotations

from idrl.envs.adapters.gymnax_env import GymnaxEnv, make_gymnax
from idrl.envs.control_presets import small_box
from idrl.envs.declaring import family
from idrl.envs.presets import PresetContext, Settings, continuous


@continuous
def preset(task: PresetContext) -> Settings:
    return small_box(task, steps=20_000, episode=100, often=1_000)


@family(
    "reacher",
    summary="a two-joint arm after a point; continuous (gymnax Reacher-misc)",
    preset=preset,
    like=("gymnax/Reacher-misc",),
    host=False,
)
def reacher() -> GymnaxEnv:
    return make_gymnax("Reacher-misc")

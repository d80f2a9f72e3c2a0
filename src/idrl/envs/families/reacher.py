"""Reacher by gymnax, with continuous actions."""

from __future__ import annotations

import numpy as np

from idrl.envs.adapters.gymnax_env import GymnaxEnv, make_gymnax
from idrl.envs.control_presets import small_box
from idrl.envs.declaring import family
from idrl.envs.drawings import arm, spot
from idrl.envs.presets import PresetContext, Settings, continuous
from idrl.envs.views import View

_LINK = 0.22  # of a picture's height


@continuous
def preset(task: PresetContext) -> Settings:
    return small_box(task, steps=20_000, episode=100, often=1_000)


def view(seen: np.ndarray) -> View | None:
    """`[T, 8]`: cosines, sines and spins of two joints, and the point."""
    if seen.shape[1:] != (8,):
        return None
    links = [(_LINK * seen[:, i], _LINK * seen[:, 2 + i]) for i in range(2)]
    goal = spot(_LINK * seen[:, 6], _LINK * seen[:, 7])
    return arm("The arm and the point that it is after", links, goal)


@family(
    "reacher",
    summary="a two-joint arm after a point; continuous (gymnax Reacher-misc)",
    preset=preset,
    like=("gymnax/Reacher-misc",),
    host=False,
    view=view,
)
def reacher() -> GymnaxEnv:
    return make_gymnax("Reacher-misc")

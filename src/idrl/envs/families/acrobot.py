"""Acrobot by gymnax."""

from __future__ import annotations

import numpy as np

from idrl.envs.adapters.gymnax_env import GymnaxEnv, make_gymnax
from idrl.envs.declaring import family
from idrl.envs.drawings import arm, level
from idrl.envs.presets import PresetContext, Settings, discrete, small_control
from idrl.envs.views import View

_LINK = 0.22  # of a picture's height


@discrete
def preset(task: PresetContext) -> Settings:
    return small_control(task)


def view(seen: np.ndarray) -> View | None:
    """`[T, 6]`: cosine and sine of both angles (from hanging; the second from the first), spins."""
    if seen.shape[1:] != (6,):
        return None
    first = np.arctan2(seen[:, 1], seen[:, 0])
    second = first + np.arctan2(seen[:, 3], seen[:, 2])
    links = [(_LINK * np.sin(angle), -_LINK * np.cos(angle)) for angle in (first, second)]
    return arm("The arm, and the line that its end has to pass", links, level(_LINK))


@family(
    "acrobot",
    summary="swing a two-link arm over a line (gymnax Acrobot-v1)",
    preset=preset,
    like=("gymnax/Acrobot-v1", "gym/Acrobot-v1"),
    host=False,
    view=view,
)
def acrobot() -> GymnaxEnv:
    return make_gymnax("Acrobot-v1")

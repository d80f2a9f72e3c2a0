"""Any environment of gymnax by its own name."""

from __future__ import annotations

from idrl.envs.adapters.gymnax_env import GymnaxEnv, make_gymnax
from idrl.envs.declaring import family
from idrl.envs.presets import PresetContext, Settings, small_control


def preset(task: PresetContext) -> Settings | None:
    """Most are small. What an object shows is known; a name is not built to be looked at."""
    return None if task.continuous or task.image else small_control(task)


@family("gymnax/NAME", summary="any other gymnax environment", preset=preset, host=False)
def gymnax(name: str) -> GymnaxEnv:
    return make_gymnax(name)

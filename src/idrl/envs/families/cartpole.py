"""CartPole by gymnax."""

from __future__ import annotations

from idrl.envs.adapters.gymnax_env import GymnaxEnv, make_gymnax
from idrl.envs.declaring import family
from idrl.envs.presets import PresetContext, Settings, discrete, small_control


@discrete
def preset(task: PresetContext) -> Settings:
    """To 475 of 500."""
    settings = small_control(task)
    settings["training"]["steps"] = 200_000  # 120,000 leaves one seed in four short of 475
    return settings


@family(
    "cartpole",
    summary="balance a pole, 500 steps at most (gymnax CartPole-v1)",
    preset=preset,
    like=("gym/CartPole-v1",),
    host=False,
)
def cartpole() -> GymnaxEnv:
    return make_gymnax("CartPole-v1")

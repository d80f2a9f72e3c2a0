"""MountainCarContinuous by gymnax: a sparse reward, and every push costs."""

from __future__ import annotations

import numpy as np

from idrl.envs.adapters.gymnax_env import GymnaxEnv, make_gymnax
from idrl.envs.control_presets import among_candidates, small_box
from idrl.envs.declaring import family
from idrl.envs.drawings import car_on_hill
from idrl.envs.presets import PresetContext, Settings, continuous
from idrl.envs.views import View


@continuous
def preset(task: PresetContext) -> Settings:
    changes = small_box(task, steps=30_000, episode=1_000, often=2_500)
    # An episode is a thousand steps, of which neighbours hardly differ.
    changes["learning"] |= {"update_every_steps": 4, "target_every_steps": 4}
    # Pushing costs up to 0.1 a step, 10 in all at γ = 0.99: what priors hope for is worth it.
    return among_candidates(task, changes, prior_scale=10.0)


def view(seen: np.ndarray) -> View | None:
    """`[T, 2]`: position and speed."""
    return car_on_hill(seen[:, 0]) if seen.shape[1:] == (2,) else None


@family(
    "mountain_car_continuous",
    summary="leave a valley; continuous, sparse (gymnax MountainCarContinuous-v0)",
    preset=preset,
    like=("mountain_car", "gymnax/MountainCarContinuous-v0", "gym/MountainCarContinuous-v0"),
    host=False,
    view=view,
)
def mountain_car_continuous() -> GymnaxEnv:
    return make_gymnax("MountainCarContinuous-v0")

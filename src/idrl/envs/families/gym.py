"""Any environment of Gymnasium by its ID, those that one's own code has registered included."""

from __future__ import annotations

from typing import Any

from idrl.envs.declaring import family
from idrl.envs.host import HostEnv


@family(
    "gym/ID",
    any_option=True,
    summary="any Gymnasium environment; ?option=value for its make; MuJoCo's: idrl[mujoco]",
    host=True,
)
def gym(env_id: str, **options: Any) -> HostEnv:
    from idrl.envs.adapters.gymnasium_env import from_id  # it takes a while to import

    return from_id(env_id, options)

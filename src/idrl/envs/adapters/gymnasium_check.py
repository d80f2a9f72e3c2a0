"""What a Gymnasium environment returns, held against what Gymnasium asks of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from idrl.envs.shown import check_observation
from idrl.errors import IdrlError

MASK = "action_mask"  # the key of `info` that PettingZoo and Gymnasium's own Taxi use

Call = Callable[[Callable[[], Any], Callable[[], str]], Any]  # `Patience.call`


def check_gymnasium(env: gymnasium.Env, name: str, call: Call) -> None:
    """One reset and one step of an environment that is thrown away, without its wrappers, which
    would raise something of their own. `call` names what it raises, and where."""
    own = env.unwrapped
    for space in ("observation_space", "action_space"):
        if not isinstance(getattr(own, space, None), spaces.Space):
            raise IdrlError(f"{name} has no {space} that is one of gymnasium.spaces.")
    where = "its first reset"
    found: Any = call(lambda: own.reset(seed=0), lambda: where)
    if not isinstance(found, tuple) or len(found) != 2 or not isinstance(found[1], dict):
        raise IdrlError(
            f"{name}.reset returns {_values(found)}; it must return (observation, info), "
            "and info is a dictionary."
        )
    call(lambda: check_observation(own.observation_space, found[0]), lambda: where)
    action = _some_action(own.action_space, found[1])
    if action is None:
        return
    where = f"its first step, action {action}"
    found = call(lambda: own.step(action), lambda: where)
    if not isinstance(found, tuple) or len(found) != 5:
        raise IdrlError(
            f"{name}.step returns {_values(found)}; it must return (observation, reward, "
            "terminated, truncated, info)."
        )
    obs, reward, *ends, info = found
    call(lambda: check_observation(own.observation_space, obs), lambda: where)
    if np.ndim(reward) or np.asarray(reward).dtype.kind not in "buif":
        raise IdrlError(f"{name}.step returns {_shown(reward)} as reward; it must be one number.")
    for what, value in zip(("terminated", "truncated"), ends, strict=True):
        if np.ndim(value) or np.asarray(value).dtype.kind not in "bui" or value not in (0, 1):
            raise IdrlError(f"{name}.step returns {_shown(value)} as {what}; it must be a bool.")
    if not isinstance(info, dict):
        raise IdrlError(f"{name}.step returns {_shown(info)} as info; it must be a dictionary.")


def _some_action(space: Any, info: dict[str, Any]) -> Any:
    """One that may be taken; None where there is none."""
    if not isinstance(space, spaces.Discrete):
        return space.sample()
    allowed = np.flatnonzero(info.get(MASK, np.ones(int(space.n))))
    return int(space.start + allowed[0]) if allowed.size else None


def _values(found: Any) -> str:
    return f"{len(found)} values" if isinstance(found, tuple) else _shown(found)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}, shape {value.shape},"
    return f"{type(value).__name__} {value!r:.40}" if np.ndim(value) == 0 else type(value).__name__

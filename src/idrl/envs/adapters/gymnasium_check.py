"""What a Gymnasium environment returns, held against what Gymnasium asks of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from idrl.envs.shown import Wrong, check_observation
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
    if wrong := _wrong(reward, *ends):
        raise IdrlError(f"{name}.step returns {wrong[0]}; it must be {wrong[1]}.")
    if not isinstance(info, dict):
        raise IdrlError(f"{name}.step returns {_shown(info)} as info; it must be a dictionary.")


def check_step(reward: Any, terminated: Any, truncated: Any) -> None:
    """The same of any later step: `bool` takes what is no answer for yes or no."""
    if wrong := _wrong(reward, terminated, truncated):
        raise Wrong(f"returned {wrong[0]}, which must be {wrong[1]},")


def allowed(info: dict[str, Any], actions: int) -> Any:
    """The mask in `info`; who says nothing allows everything. NumPy would stretch what is short."""
    if MASK not in info:
        return True
    with contextlib.suppress(ValueError, TypeError):  # of lists of different lengths, …
        mask = np.asarray(info[MASK])
        if mask.shape == (actions,) and mask.dtype.kind in "buif":
            return mask.astype(bool)
    raise Wrong(f"returned an action_mask that is not a boolean for each of {actions} actions")


def _wrong(reward: Any, terminated: Any, truncated: Any) -> tuple[str, str] | None:
    """What is not what it must be, and that."""
    if not isinstance(reward, _NUMBER) and (
        np.ndim(reward) or np.asarray(reward).dtype.kind not in "buif"
    ):
        return f"{_shown(reward)} as reward", "one number"
    for what, value in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(value, _BOOL) and (
            np.ndim(value) or np.asarray(value).dtype.kind not in "bui" or value not in (0, 1)
        ):
            return f"{_shown(value)} as {what}", "a bool"
    return None


_NUMBER, _BOOL = (float, int, np.floating), (bool, np.bool_)  # what there is nothing to ask of


def _some_action(space: Any, info: dict[str, Any]) -> Any:
    """One that may be taken; None where there is none."""
    if not isinstance(space, spaces.Discrete):
        return space.sample()
    free = np.ones(int(space.n), bool)
    with contextlib.suppress(Wrong):  # wrappers may mend it
        free &= allowed(info, len(free))
    return int(space.start) + int(free.argmax()) if free.any() else None


def _values(found: Any) -> str:
    return f"{len(found)} values" if isinstance(found, tuple) else _shown(found)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}, shape {value.shape},"
    return f"{type(value).__name__} {value!r:.40}" if np.ndim(value) == 0 else type(value).__name__

"""Gymnasium's spaces as agents see them: one array, and a box of actions."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from idrl.actions import Box
from idrl.envs.shown import check_actions, check_observation
from idrl.errors import IdrlError


class ArrayObservation(gymnasium.ObservationWrapper, gymnasium.utils.RecordConstructorArgs):
    """Observations as one array, by the rule of `observe_as_array`."""

    def __init__(self, env: gymnasium.Env):
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        gymnasium.ObservationWrapper.__init__(self, env)
        space: Any = env.observation_space
        self.shown, self.acts = space, env.action_space
        self.image = _is_image(space)
        if self.image:
            low, high = (self._turned(bound) for bound in (space.low, space.high))
            self.observation_space = spaces.Box(low, high, dtype=np.uint8)
            return
        flat: Any = spaces.flatten_space(space)
        binary = flat.dtype.kind in "iub" and flat.low.min() >= 0 and flat.high.max() <= 1
        dtype = np.uint8 if binary or flat.dtype == np.uint8 else np.float32
        self.observation_space = spaces.Box(
            flat.low.astype(dtype), flat.high.astype(dtype), dtype=dtype
        )

    def observation(self, observation: Any) -> np.ndarray:
        check_observation(self.shown, observation)
        check_actions(self.acts, self.env.action_space)
        if self.image:
            return self._turned(np.asarray(observation))
        flat: Any = spaces.flatten(self.shown, observation)
        return flat.astype(self.observation_space.dtype)

    def _turned(self, image: np.ndarray) -> np.ndarray:
        return np.moveaxis(image, 0, -1) if _channels_first(self.shown.shape) else image


def observe_as_array(env: gymnasium.Env, name: str) -> gymnasium.Env:
    """`env` with observations of one array.

    An image (a Box of uint8 with three axes) stays one, with its channels last: where the first
    axis is the shortest, as in 4×84×84, it is taken for them. Everything else is flattened as
    `gymnasium.spaces.flatten` does: one-hot for Discrete and MultiDiscrete, the parts of a Tuple
    or Dict one after the other. uint8 and one-hot codes are kept as uint8, the rest as float32.
    """
    space = env.observation_space
    if not _flattens(space):
        raise IdrlError(
            f"{name} has {type(space).__name__} observations of no fixed size; idrl needs some "
            f"that gymnasium.spaces.flatten makes an array of{_fitting_parts(space)}."
        )
    if 0 in (space.shape or ()) or spaces.flatdim(space) == 0:
        raise IdrlError(f"{name} has observations without a number in them: {space}.")
    return ArrayObservation(env)


def _flattens(space: Any) -> bool:
    try:
        return space.is_np_flattenable and spaces.flatdim(space) >= 0
    except NotImplementedError:  # spaces of one's own, such as MiniGrid's missions
        return False


def _fitting_parts(space: Any) -> str:
    """How to go on with those parts of `space` that can be flattened."""
    parts = space.spaces if isinstance(space, spaces.Dict | spaces.Tuple) else {}
    pairs = parts.items() if isinstance(parts, dict) else enumerate(parts)
    fit = [key for key, part in pairs if _flattens(part)]
    return f": gymnasium.wrappers.FilterObservation(env, {fit}) keeps what can be" if fit else ""


def box_of(space: Any, name: str) -> Box:
    if not isinstance(space, spaces.Box) or np.dtype(space.dtype).kind != "f":
        kind = type(space).__name__ if not isinstance(space, spaces.Box) else f"{space.dtype} Box"
        raise IdrlError(
            f"{name} has {kind} actions; idrl's agents take discrete ones (spaces.Discrete) or a "
            "bounded spaces.Box of floats."
        )
    if not space.is_bounded():
        raise IdrlError(
            f"{name} has actions without bounds; gymnasium.wrappers.TransformAction(env, lambda "
            f"a: a, spaces.Box(-1, 1, {space.shape})) gives it some."
        )
    low, high = (x.astype(np.float64).reshape(-1).tolist() for x in (space.low, space.high))
    return Box(tuple(low), tuple(high))


def _is_image(space: Any) -> bool:
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3


def _channels_first(shape: tuple[int, ...] | None) -> bool:
    return shape is not None and shape[0] < min(shape[1:])

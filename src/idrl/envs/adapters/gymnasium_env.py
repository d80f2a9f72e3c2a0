"""Any Gymnasium environment, by its ID, as an object, or from a factory."""

from __future__ import annotations

import copy
import difflib
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from idrl.envs.adapters.gymnasium_check import MASK, allowed, check_gymnasium, check_step
from idrl.envs.adapters.gymnasium_spaces import box_of, observe_as_array
from idrl.envs.host import HostEnv, Seen, Vector
from idrl.envs.patience import Patience
from idrl.envs.shown import Wrong, check_actions
from idrl.errors import IdrlError, in_a_line


class GymnasiumEnv(HostEnv):
    """Environments as `factory()` makes them, seen through `observe_as_array`."""

    side_by_side: int | None = None  # environments of a seed, where the user's object says

    def __init__(
        self,
        factory: Callable[[], gymnasium.Env],
        name: str | None = None,
        drawing: Callable[[], GymnasiumEnv] | None = None,
    ):
        """`drawing` makes the same with pictures, where that is known how."""
        self.factory, self.drawing = factory, drawing
        # from_id has words of its own for what a constructor raises
        probe = Patience(name or "the environment", 0).call(
            factory, lambda: "its making", Exception
        )
        spec_id = getattr(probe.spec, "id", None)
        self.name = name or (f"gym/{spec_id}" if spec_id else type(probe.unwrapped).__name__)
        patience = Patience(self.name, 0)
        actions: Any = getattr(probe, "action_space", None)
        self.action_space, self.first_action = actions, 0
        if isinstance(actions, spaces.Discrete):
            self.num_actions, self.first_action = int(actions.n), int(actions.start)
        elif isinstance(actions, spaces.Space):
            self.action_box = box_of(actions, self.name)
        check_gymnasium(probe, self.name, patience.call)
        wrapped = observe_as_array(probe, self.name)
        assert wrapped.observation_space.shape is not None
        self.obs_shape = tuple(wrapped.observation_space.shape)
        self.obs_dtype = wrapped.observation_space.dtype
        (seen, info), (again, _) = (
            patience.call(lambda: wrapped.reset(seed=0), lambda: "its first reset")
            for _ in range(2)
        )
        self.repeats = np.array_equal(seen, again, equal_nan=True)
        self.masked = MASK in info and self.action_box is None
        if self.masked:
            patience.call(lambda: allowed(info, self.num_actions), lambda: "its first reset")
        _close(wrapped, patience)

    def one(self) -> gymnasium.Env:
        """A single environment whose observations are what the agent sees."""
        made = observe_as_array(self.factory(), self.name)
        check_actions(self.action_space, made.action_space)
        shown = made.observation_space
        if (shown.shape, shown.dtype) != (self.obs_shape, self.obs_dtype):
            raise Wrong(
                f"shows {shown.dtype} of shape {shown.shape} where another one of it showed "
                f"{self.obs_dtype} of shape {self.obs_shape}"
            )
        return made

    def drawn(self) -> GymnasiumEnv:
        return self if self.drawing is None else self.drawing()

    def make(self, count: int, timeout_s: float = 0.0) -> GymnasiumVector:
        return GymnasiumVector(self, count, timeout_s)


class GymnasiumVector(Vector):
    """N environments stepped in turn."""

    def __init__(self, env: GymnasiumEnv, count: int, timeout_s: float):
        self.env = env
        self.patience = Patience(env.name, timeout_s)
        self.envs = [self.patience.call(env.one, lambda: "its making") for _ in range(count)]
        if len({id(one.unwrapped) for one in self.envs}) < count:
            raise IdrlError(
                f"the function that makes {env.name} returned the same environment twice; it must "
                "make a new one at each call."
            )
        self.over = np.zeros(count, bool)  # the episode has ended: the next step resets
        self.length = np.zeros(count, np.int64)
        self.obs = np.zeros((count, *env.obs_shape), env.obs_dtype)
        self.allowed = np.ones((count, env.num_actions), bool) if env.masked else None

    def send(self, action: np.ndarray, seed: np.ndarray) -> None:
        self.sent = action, seed  # they are stepped in the main thread, so not before `recv`

    def recv(self) -> Seen:
        action, seed = self.sent
        count = len(self.envs)
        self.obs = self.obs.copy()  # what was handed out stays as it was
        if self.allowed is not None:
            self.allowed = self.allowed.copy()
        reward = np.zeros(count, np.float32)
        terminated, truncated, reset = (np.zeros(count, bool) for _ in range(3))
        going = self.env.given(action)
        for i, env in enumerate(self.envs):
            if seed[i] >= 0 or (going[i] and self.over[i]):
                reset[i] = True
                self._reset(i, env, int(seed[i]) if seed[i] >= 0 else None)
            elif going[i]:
                reward[i], terminated[i], truncated[i] = self._step(i, env, self._meant(action[i]))
        self._check(reward, action, reset)
        return Seen(self.obs, reward, terminated, truncated, reset, self.allowed)

    def _reset(self, i: int, env: gymnasium.Env, seed: int | None) -> None:
        def reset() -> None:
            obs, info = env.reset(seed=seed)
            self.over[i], self.length[i] = False, 0
            self._look(i, obs, info)

        where = f"a reset with seed {seed}" if seed is not None else "a reset"
        self.patience.call(reset, lambda: f"{where} of environment {self.env.first + i}")

    def _meant(self, action: np.ndarray) -> Any:
        """As the environment wants it."""
        if self.env.action_box is None:
            return int(action) + self.env.first_action
        space = self.env.action_space
        return action.reshape(space.shape).astype(space.dtype)

    def _step(self, i: int, env: gymnasium.Env, action: Any) -> tuple[float, bool, bool]:
        length = int(self.length[i]) + 1

        def step() -> tuple[float, bool, bool]:
            obs, reward, terminated, truncated, info = env.step(action)
            check_step(reward, terminated, truncated)
            self.over[i] = terminated or truncated
            self.length[i] = length
            self._look(i, obs, info)
            return float(reward), bool(terminated), bool(truncated) and not terminated

        return self.patience.call(step, lambda: self._place(i, length, action))

    def _look(self, i: int, obs: Any, info: dict[str, Any]) -> None:
        self.obs[i] = obs
        if self.allowed is None:
            return
        # After the last step nothing is chosen, but a time limit bootstraps from what could have
        # been: from nothing, where nothing is allowed.
        self.allowed[i] = allowed(info, self.env.num_actions)
        if not self.over[i] and not self.allowed[i].any():
            step = int(self.length[i])
            raise RuntimeError(f"no action is allowed after {step} steps")

    def _check(self, reward: np.ndarray, action: np.ndarray, reset: np.ndarray) -> None:
        """Numbers gone wrong are named where they come from, not where a loss meets them."""
        good = np.isfinite(reward)
        if self.obs.dtype.kind == "f":
            good &= np.isfinite(self.obs).reshape(len(good), -1).all(1)
        if not good.all():
            i = int(np.flatnonzero(~good)[0])
            taken = None if reset[i] else self._meant(action[i])
            what = "an observation" if np.isfinite(reward[i]) else "a reward"
            where = "a reset" if reset[i] else self._place(i, int(self.length[i]), taken)
            raise IdrlError(f"{self.env.name} returned {what} that is not finite at {where}.")

    def _place(self, i: int, step: int, action: Any) -> str:
        number = self.env.first + i
        return f"step {step} of an episode of environment {number}, action {action}"

    def picture(self) -> np.ndarray | None:
        """What the environment draws, if it was made to (`render_mode="rgb_array"`)."""
        one: Any = self.envs[0]
        if one.render_mode != "rgb_array":
            return None
        drawn = np.asarray(one.render())
        return drawn if drawn.ndim == 3 and drawn.shape[-1] == 3 else None

    def close(self) -> None:
        for env in self.envs:
            _close(env, self.patience)
        self.patience.close()


def _close(env: gymnasium.Env, patience: Patience) -> None:
    try:
        patience.call(env.close, lambda: "its closing")
    except IdrlError as error:  # nothing is lost by it, and it may follow from another
        warnings.warn(str(error), stacklevel=3)


def from_id(env_id: str, options: dict[str, Any]) -> GymnasiumEnv:
    """By its ID, with `options` for its constructor."""
    name = f"gym/{env_id}"
    if env_id not in gymnasium.registry:  # nor "module:ID": a name must not import anything
        raise _unknown(env_id)

    def make(**more: Any) -> gymnasium.Env:
        # The passive checker would warn once for each of the environments of a vector.
        return gymnasium.make(env_id, disable_env_checker=True, **options | more)

    def drawing() -> GymnasiumEnv:
        return GymnasiumEnv(lambda: make(render_mode="rgb_array"), name)

    try:
        return GymnasiumEnv(make, name, None if "render_mode" in options else drawing)
    except gymnasium.error.DependencyNotInstalled as error:
        extras = [extra for extra in ("box2d", "mujoco") if extra in str(error).lower()]
        needs = f"pip install 'idrl[{extras[0]}]'" if extras else in_a_line(error)
        raise IdrlError(f"{name} needs a package that is not installed: {needs}.") from None
    except IdrlError:
        raise
    except Exception as error:  # whatever its constructor makes of the options
        raise IdrlError(f"{name} cannot be made: {in_a_line(error)}.") from None


def _unknown(env_id: str) -> IdrlError:
    module, colon, rest = env_id.partition(":")
    if colon:
        return IdrlError(
            f"'gym/{env_id}' names a module, and names import nothing: write gym/{rest}, and "
            f"import {module} before, on the command line with --plugin {module}."
        )
    if env_id.startswith("ALE/"):
        return IdrlError(
            f"gym/{env_id} has to be registered by ale-py: add --plugin ale_py, or use atari/GAME, "
            "as 'atari/pong'."
        )
    close = difflib.get_close_matches(env_id, gymnasium.registry, n=1)
    meant = f"did you mean {close[0]!r}? Those" if close else "those"
    return IdrlError(
        f"unknown Gymnasium environment {env_id!r}; {meant} of other packages, and your own, "
        "are known when they have been imported, on the command line with --plugin MODULE."
    )


def from_object(env: gymnasium.Env) -> GymnasiumEnv:
    """Copies of `env`; its own state is left alone."""

    def duplicate() -> gymnasium.Env:
        try:
            return copy.deepcopy(env)
        except Exception as error:  # Box2D's objects, open windows, …
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    assert env.spec is not None
                    return gymnasium.make(env.spec)
            except Exception:
                raise IdrlError(
                    f"{env} cannot be copied ({in_a_line(error)}); pass a function that makes one."
                ) from None

    return GymnasiumEnv(duplicate)


def from_vector(vector: gymnasium.vector.VectorEnv) -> GymnasiumEnv:
    """Environments as `gymnasium.make_vec` made those of `vector`, which is left alone: what it
    holds cannot be had one by one, nor with seeds of ours, but its spec says how it was made."""
    name, count = type(vector).__name__, vector.num_envs
    if isinstance(vector, gymnasium.vector.VectorWrapper):
        raise IdrlError(
            f"{name} wraps a whole vector of environments, and idrl makes its own; wrap each of "
            f"them: gymnasium.make_vec(…, wrappers=[…]), or a function that makes one and "
            f"envs={count}."
        )
    spec = copy.deepcopy(vector.spec)
    if spec is None or spec.entry_point is None:
        raise IdrlError(
            f"this {name} does not say how one of its environments is made; pass gymnasium.make_vec"
            f"(id, {count}), or a function that makes one and envs={count}."
        )
    options = spec.kwargs
    wrappers = options.pop("wrappers", None) or ()
    spec.max_episode_steps = options.pop("max_episode_steps", spec.max_episode_steps)
    for other in ("num_envs", "vectorization_mode", "vector_kwargs", "disable_env_checker"):
        options.pop(other, None)  # none of the environment's own

    def make() -> gymnasium.Env:
        one = gymnasium.make(spec, disable_env_checker=True)
        for wrapper in wrappers:
            one = wrapper(one)
        return one

    env = GymnasiumEnv(make)
    env.side_by_side = count
    return env

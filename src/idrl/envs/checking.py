"""Mistakes in an environment of one's own, named before anything is compiled or written."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from idrl.actions import Box
from idrl.envs.base import Env, Step
from idrl.envs.host import HostEnv
from idrl.envs.registry import make_env
from idrl.errors import IdrlError

_TRACED = (
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.TracerArrayConversionError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.ConcretizationTypeError,  # the kind of the others
)
_NUMBERS = "buif"


def own_env(env: Any) -> Env | HostEnv:
    """What `make_env` makes of it, its mistakes named."""
    _refuse_foreign(env)
    try:
        world = _from_vector(env) if _is_vector(env) else make_env(env)
    except IdrlError:
        if isinstance(env, str | type) or not callable(env) or hasattr(env, "step"):
            raise
        made = env()  # a factory, of what is nothing that is known
        _refuse_foreign(made)
        if not _is_vector(made):
            raise
        world = _from_vector(made)
    except Exception as error:
        raise _explained(error, _name(env), "cannot be made") from error
    if not isinstance(world, HostEnv) and not _ours(world):
        check_env(world)
    return world


def _is_vector(env: Any) -> bool:
    return not isinstance(env, type) and _is(env, "gymnasium.vector", "VectorEnv")


def _from_vector(env: Any) -> HostEnv:
    from idrl.envs.adapters.gymnasium_env import from_vector

    return from_vector(env)


def _name(env: Any) -> str:
    if isinstance(env, str):
        return env
    return getattr(env, "name", None) or getattr(env, "__name__", None) or type(env).__name__


def _refuse_foreign(env: Any) -> None:
    """What nobody could make a run of, whatever it does."""
    if isinstance(env, type) and inspect.isabstract(env):
        raise IdrlError(
            f"{env.__name__} is abstract: it does not implement "
            f"{', '.join(sorted(getattr(env, '__abstractmethods__', ())))}."
        )
    kind = env if isinstance(env, type) else type(env)
    if any(c.__module__.split(".")[0] == "gym" and c.__name__ == "Env" for c in kind.__mro__):
        raise IdrlError(
            f"{kind.__name__} is an environment of the old gym package, whose resets and steps "
            "return other things; make it a gymnasium.Env (`import gymnasium as gym`), or wrap it "
            "by shimmy's GymV21CompatibilityV0 or GymV26CompatibilityV0."
        )
    if not _is(kind, "gymnasium", "Env"):
        return
    base = sys.modules["gymnasium"].Env
    lacks = [name for name in ("reset", "step") if getattr(kind, name) is getattr(base, name)]
    if lacks and not issubclass(kind, sys.modules["gymnasium"].Wrapper):
        raise IdrlError(
            f"{kind.__name__} does not implement {' and '.join(lacks)}, which an environment of "
            "Gymnasium must."
        )


def _is(env: Any, module: str, name: str) -> bool:
    """Without an import: where nobody imported the module, nobody has an object of its class."""
    cls = getattr(sys.modules.get(module), name, None)
    kind = env if isinstance(env, type) else type(env)
    return cls is not None and issubclass(kind, cls)


def _ours(world: Any) -> bool:
    """Whether tests of ours, or of gymnax or Brax, stand for it: tracing takes a while."""

    def package(thing: Any) -> str:
        return type(thing).__module__.split(".")[0]

    wrapped = getattr(world, "env", world)  # an adapter's own is what matters
    return package(world) == "idrl" and package(wrapped) in ("idrl", "gymnax", "brax")


def check_env(env: Env) -> None:
    """One reset and one step of an environment on the device, traced and not computed."""
    name = env.name
    _check_declared(env)
    box = getattr(env, "action_box", None)

    def one(key: jax.Array, number: jax.Array, point: jax.Array) -> None:
        task = _call(env, "task", key)
        state, obs = _pair(name, "reset", _call(env, "reset", task, key), "(state, observation)")
        _check_state(name, "reset", state)
        dtype = _check_obs(name, "reset", obs, env.obs_shape)
        action = number if box is None else point
        after = _call(env, "step", task, state, action, key)
        new, step = _pair(name, "step", after, "(state, idrl.Step)")
        if not isinstance(step, Step):
            raise IdrlError(
                f"{name}.step returns (state, {_kind(step)}); the second is an idrl.Step(obs, "
                "reward, terminated, truncated, info)."
            )
        _check_same_state(name, state, new)
        _check_step(name, step, env.obs_shape, dtype)

    dims = 1 if box is None else box.dims
    try:
        jax.eval_shape(
            jax.vmap(one), jax.eval_shape(lambda: jax.random.split(jax.random.key(0), 2)),
            jax.ShapeDtypeStruct((2,), jnp.int32), jax.ShapeDtypeStruct((2, dims), jnp.float32),
        )  # fmt: skip
    except IdrlError:
        raise
    except Exception as error:  # of vmap itself
        raise _explained(error, name, "cannot be traced") from error


def _check_declared(env: Env) -> None:
    name, shape = env.name, env.obs_shape
    if not isinstance(shape, tuple) or not all(type(n) is int and n > 0 for n in shape):
        raise IdrlError(
            f"{name}.obs_shape is {shape!r}; it must be a tuple of whole numbers, such as (4,)."
        )
    box = getattr(env, "action_box", None)
    if box is not None:
        if not isinstance(box, Box):
            raise IdrlError(
                f"{name}.action_box is {_kind(box)}; it must be an idrl.Box(low, high)."
            )
    elif not isinstance(env.num_actions, int | np.integer) or env.num_actions < 1:
        raise IdrlError(
            f"{name}.num_actions is {env.num_actions!r}; it must be a whole number, 1 or more."
        )


def _call(env: Any, method: str, *given: Any) -> Any:
    try:
        return getattr(env, method)(*given)
    except IdrlError:
        raise
    except Exception as error:
        raise _explained(error, f"{env.name}.{method}", "raised") from error


def _pair(name: str, method: str, found: Any, wanted: str) -> tuple[Any, Any]:
    if not isinstance(found, tuple) or isinstance(found, Step) or len(found) != 2:
        has = _kind(found)
        if isinstance(found, tuple) and not isinstance(found, Step):
            has = f"{len(found)} values"
        raise IdrlError(f"{name}.{method} returns {has}; it must return {wanted}.")
    return found


def _check_state(name: str, method: str, state: Any) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if _aval(leaf) is None:
            raise IdrlError(
                f"{name}.{method} returns a state with {_kind(leaf)}{_where(path)}; a state is "
                "made of arrays and numbers."
            )


def _check_same_state(name: str, before: Any, after: Any) -> None:
    _check_state(name, "step", after)
    old_form, new_form = _structure(before), _structure(after)
    if old_form != new_form:
        raise IdrlError(
            f"{name}.step returns a state of another structure than reset: {new_form}, not "
            f"{old_form}."
        )
    pairs = zip(jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(after), strict=True)
    for (path, old), new in pairs:
        if _aval(old) != _aval(new):
            raise IdrlError(
                f"{name}.step returns a state that is {_shown(new)}{_where(path)}, and reset one "
                f"that is {_shown(old)} there."
            )


def _check_obs(name: str, method: str, obs: Any, shape: tuple[int, ...], dtype: Any = None) -> Any:
    found = _aval(obs)
    if found is None or found[1].kind not in _NUMBERS:
        raise IdrlError(
            f"{name}.{method} returns {_kind(obs)} as observation; it must be an array of shape "
            f"{shape}, as obs_shape says."
        )
    if found[0] != shape:
        raise IdrlError(
            f"{name}.{method} returns an observation of shape {found[0]}, but obs_shape is {shape}."
        )
    if dtype is not None and found[1] != dtype:
        raise IdrlError(
            f"{name}.{method} returns an observation of {found[1]}, but reset one of {dtype}."
        )
    return found[1]


def _check_step(name: str, step: Step, shape: tuple[int, ...], dtype: Any) -> None:
    _check_obs(name, "step", step.obs, shape, dtype)
    if not isinstance(step.info, Mapping):
        raise IdrlError(f"{name}.step returns {_kind(step.info)} as info; it must be a dictionary.")
    numbers = {"reward": step.reward} | {f"info[{k!r}]": x for k, x in step.info.items()}
    for what, value in numbers.items():
        found = _aval(value)
        if found is None or found[0] != () or found[1].kind not in _NUMBERS:
            raise IdrlError(
                f"{name}.step returns {_shown(value)} as {what}; it must be one number."
            )
    for what in ("terminated", "truncated"):
        value = getattr(step, what)
        if _aval(value) != ((), np.dtype(bool)):
            raise IdrlError(
                f"{name}.step returns {_shown(value)} as {what}; it must be one boolean."
            )


def _aval(value: Any) -> tuple[tuple[int, ...], Any] | None:
    """Shape and dtype; None of what is no array."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return tuple(value.shape), value.dtype
    if isinstance(value, bool | int | float):
        return (), jnp.result_type(value)
    return None


def _shown(value: Any) -> str:
    found = _aval(value)
    if found is None:
        return _kind(value)
    return f"{found[1]} of shape {found[0]}" if found[0] else f"one {found[1]}"


def _kind(value: Any) -> str:
    kind = type(value).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def _where(path: Any) -> str:
    return f" at {jax.tree_util.keystr(path)}" if path else ""


def _structure(tree: Any) -> str:
    return str(jax.tree.structure(tree)).removeprefix("PyTreeDef(").removesuffix(")")


def _explained(error: Exception, who: str, what: str) -> IdrlError:
    """`error` as a sentence, with the line of the environment's own code that it came from."""
    frame = _own_frame(error)
    place = ""
    if frame is not None:
        line = (frame.line or linecache.getline(frame.filename, frame.lineno or 0)).strip()
        place = f" at {os.path.basename(frame.filename)}:{frame.lineno}"
        place += f" (`{line}`)" if line else ""
    if isinstance(error, _TRACED):
        if isinstance(error, jax.errors.TracerBoolConversionError):
            return IdrlError(
                f"{who} asks in Python whether a traced value is true{place}: `if`, `while`, "
                "`and`, `or` and `not` need its number, which is not known while a run is "
                "compiled; use jnp.where, jax.lax.cond, & or |."
            )
        return IdrlError(
            f"{who} needs the number of a traced value{place}, which is not known while a run is "
            "compiled; use jax.numpy instead of NumPy, and no int(), float() or .item()."
        )
    said = " ".join(str(error).split("\n")[0].split()).rstrip(".")
    did = "raised" if what == "raised" else f"{what}: it raised"
    return IdrlError(f"{who} {did} {type(error).__name__}{place}{': ' if said else ''}{said}.")


def _own_frame(error: Exception) -> traceback.FrameSummary | None:
    """The innermost that is neither in a library nor in here."""
    inside = tuple(
        os.path.dirname(os.path.dirname(sys.modules[name].__file__ or "?")) + os.sep + name + os.sep
        for name in ("jax", "idrl", "numpy")
        if name in sys.modules
    )
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(inside)]
    return own[-1] if own else None

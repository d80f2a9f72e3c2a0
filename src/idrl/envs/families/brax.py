"""Brax's environments behind our protocol, compiled as gymnax's are."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from idrl.actions import Box
from idrl.envs.base import Step
from idrl.envs.control_presets import as_published
from idrl.envs.declaring import family
from idrl.envs.presets import PresetContext, Settings, continuous
from idrl.errors import IdrlError, unknown

EPISODE = 1_000  # steps; the limit that Brax's own training sets
LONGEST = 1_000_000
BACKENDS = ("generalized", "mjx", "positional", "spring")


@continuous
def preset(task: PresetContext) -> Settings:
    """Ten whole episodes an evaluation, as the window is a number of steps here."""
    changes = as_published()
    changes["evaluation"]["steps"] = 10 * min(max(1, task.options["episode"]), LONGEST)
    return changes


class Walk(NamedTuple):
    state: Any  # Brax's own
    steps: jax.Array


@family(
    "brax/NAME",
    options={"backend": "generalized", "episode": EPISODE},
    summary="Brax's (idrl[brax]), continuous; ?backend=spring, ?episode=1000",
    preset=preset,
    host=False,
)
class BraxEnv:
    """One of `brax.envs` without its wrappers: it neither resets itself nor knows a time limit, so
    `episode` steps truncate here. Its actions are in [-1, 1]."""

    num_actions = 0

    def __init__(self, model: str, backend: str = "generalized", episode: int = EPISODE):
        if backend not in BACKENDS:
            raise unknown("backend of Brax", backend, BACKENDS)
        if not 1 <= episode <= LONGEST:
            raise IdrlError(
                f"brax/{model}: episode is {episode}; it must be 1 to {LONGEST:,} steps."
            )
        self.env = _make(model, backend)
        self.name, self.episode = f"brax/{model}", episode
        size = self.env.action_size
        self.action_box = Box((-1.0,) * size, (1.0,) * size)
        try:
            obs = jax.eval_shape(self._begun, jax.random.key(0))
        except (AttributeError, TypeError, ValueError) as error:
            # Brax asks for any JAX; not all goes with all.
            raise IdrlError(
                f"{self.name} as installed does not go with JAX {jax.__version__}: {error}."
            ) from None
        self.obs_shape = tuple(obs.shape)

    def _begun(self, key: jax.Array) -> jax.Array:
        state, _ = self.reset((), key)
        action = jnp.zeros(self.action_box.dims)
        return self.step((), state, action, key)[1].obs

    def task(self, key: jax.Array) -> Any:
        return ()

    def reset(self, task: Any, key: jax.Array) -> tuple[Walk, jax.Array]:
        state = jax.tree.map(jnp.asarray, self.env.reset(key))
        return Walk(state, jnp.int32(0)), state.obs

    def step(self, task: Any, state: Walk, action: jax.Array, key: jax.Array) -> tuple[Walk, Step]:
        before = jax.tree.map(lambda x: x, state.state)  # some write into the state they are given
        new = self.env.step(before, action)
        # Some rewards are Python numbers; a scan needs the types that `reset` returned.
        new = jax.tree.map(lambda after, old: jnp.asarray(after, old.dtype), new, state.state)
        steps = state.steps + 1
        # `info["time_out"]`, where there is one, is set by a fall too: `done` is the end.
        terminated = new.done.astype(bool)
        truncated = ~terminated & (steps >= self.episode)
        return Walk(new, steps), Step(new.obs, new.reward, terminated, truncated)


def _make(model: str, backend: str) -> Any:
    try:
        # MJX prints which of its own options are not installed.
        with contextlib.redirect_stdout(io.StringIO()):
            from brax import envs
    except ImportError as error:
        missing = "that is not installed" if error.name == "brax" else f"that fails ({error})"
        raise IdrlError(
            f"Brax's environments need a package {missing}: pip install 'idrl[brax]'."
        ) from None
    known = set(envs._envs) - {"fast"}  # which is for Brax's own tests
    if model not in known:
        raise unknown("environment of Brax", model, known)
    try:
        with _quietly():
            return envs.get_environment(model, backend=backend)
    except ValueError:  # some know fewer backends
        raise IdrlError(
            f"brax/{model} cannot be had with the backend {backend!r}: omit it."
        ) from None


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Neither Brax's word on its maintenance, which the documentation repeats, nor MuJoCo's on old
    settings in Brax's files, which would also be written to MUJOCO_LOG.TXT wherever one is."""
    import mujoco

    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Brax System", UserWarning)
            yield
    finally:
        mujoco.set_mju_user_warning(before)

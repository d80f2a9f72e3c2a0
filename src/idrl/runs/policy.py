"""A trained agent to act with: numpy in, numpy out. It can be saved as one file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from idrl.actions import Box, in_words, to_table
from idrl.agents import Agent, make_agent
from idrl.config import RunConfig
from idrl.errors import IdrlError
from idrl.ids import Decided, Decision
from idrl.runs.reading import build_config, modules_of
from idrl.runs.sb3 import Sb3Model
from idrl.runs.sizing import memory, parameters, shapes
from idrl.schema import to_dict
from idrl.storage.arrays import check_finite, read_arrays, read_metadata, write_arrays
from idrl.storage.files import count, flag, parse_json, shapes_of, sync
from idrl.storage.folder import FORMAT
from idrl.storage.older import in_todays_words
from idrl.system import plugins, words
from idrl.system.version import VERSION

MODEL_FORMAT = 2
_RUN_FORMAT = {1: 2, MODEL_FORMAT: FORMAT}  # whose words each has; 1 does not tell 1 from 2


class Policy:
    """A trained agent: one seed's weights and the rules of its agent. `idrl.load` makes one."""

    def __init__(
        self, config: RunConfig, agent: Agent, params: Any, prior: Any, seed: int,
        env_object: bool = False,
    ):  # fmt: skip
        """`env_object`: it was trained on an object, of which `config.env` is but a title."""
        check_finite((params, prior), f"the weights of seed {seed}")
        self.config, self.agent, self.seed = config, agent, seed
        self.env_object = env_object
        self.params, self.prior = params, prior
        self._draws = 0  # calls that drew by chance, without a seed of their own
        self._evaluate = jax.jit(lambda *args: self._choose(agent.spec.evaluate, False, *args))
        explore = agent.spec.explore
        self._explore = jax.jit(lambda *args: self._choose(explore, True, *args))
        self._explain = jax.jit(lambda *args: self._choose(explore.undithered, True, *args))

    def save(self, path: str | Path) -> Path:
        """Write weights and config to one safetensors file, which `idrl.load` reads. It holds
        numbers and a JSON text, nothing that can run.

        Args:
            path: the file.
        """
        path = Path(path)
        if os.path.isdir(path):  # "" is one too: the folder that one is in
            raise IdrlError(f"{str(path)!r} is a folder; name a file in it, 'agent.safetensors'.")
        about = {
            "format": MODEL_FORMAT,
            "version": VERSION,
            "config": to_dict(self.config),
            "obs_shape": list(self.agent.obs_shape),
            **to_table(self.agent.actions),
            "seed": self.seed,
            "env_object": self.env_object,
            "plugins": plugins.record(modules_of(self.config)),
        }
        draft = path.with_name(f".{path.name}.draft-{os.getpid()}")
        try:
            tree = {"params": self.params, "prior": self.prior}
            write_arrays(draft, tree, {"idrl": json.dumps(about)})
            sync(draft)
            os.replace(draft, path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise IdrlError(f"{str(path)!r} cannot be written: {error}.") from None
        return path

    def export(
        self, path: str | Path, *, rule: str = "evaluate", mask: bool = False,
        dtype: str | None = None,
    ) -> Path:  # fmt: skip
        """Write a function of observations for programs without idrl.

        It takes `observation` `[batch, ...]` and returns `action`, `mu`, `sigma`, `rho2`,
        `info_gain` and `ratio`. A rule that draws cannot be exported, and is refused.

        Args:
            path: a name that ends in `.onnx`, or in `.stablehlo` for JAX and XLA elsewhere.
            rule: `"evaluate"`, the rule the agent is evaluated with, or `"explore"`, the one it
                explores with, its schedules at their end; without random actions on top of either.
            mask: add a second input that says which actions are allowed.
            dtype: of observations: `"float32"` or `"uint8"`; by default uint8 where the trunk takes
                images of bytes.
        """
        from idrl.runs import exporting  # which most who load an agent have no use for

        return exporting.export(self, path, rule, mask, dtype)

    def sb3(self, env: Any = None, seed: int = 0) -> Sb3Model:
        """The agent as a model of Stable-Baselines3: for its `evaluate_policy` and its
        `EvalCallback`.

        Args:
            env: the environment that `EvalCallback` asks for.
            seed: for rules that draw.
        """
        return Sb3Model(self, env, seed)

    def _choose(self, rule, noisy, params, prior, obs, mask, key):
        n = obs.shape[0]
        steps = jnp.int32(self.config.training.steps)  # schedules at their end
        first, memory = jnp.ones(n, bool), self.agent.blank_memory(n)
        return self.agent.choose(
            rule, params, prior, obs, first, memory, key, steps, mask, noisy=noisy
        )[0]

    def predict(
        self, obs: Any, mask: Any = None, deterministic: bool = True, *, seed: int | None = None
    ) -> np.ndarray:
        """Actions for one observation or a batch: numbers from 0, or flat arrays of a box.

        They are chosen by the rule the agent is evaluated with (greedy on the mean of the heads;
        Bootstrapped DQN: their vote).

        Args:
            obs: an observation, or a batch of them.
            mask: true where an action is allowed; by default everywhere.
            deterministic: false: by the rule it explores with, its schedules at their end, each
                call as in the first step of an episode.
            seed: for rules that draw: the same seed, the same draw. By default every call draws
                anew.
        """
        if deterministic:
            return self._taken(self._call(self._evaluate, obs, mask, 0))
        if seed is None:
            seed, self._draws = self._draws, self._draws + 1
        return self._taken(self._call(self._explore, obs, mask, seed))

    def explain(self, obs: Any, mask: Any = None, seed: int = 0) -> Decided:
        """The full `Decision` of the rule it explores with.

        Args:
            obs: an observation, or a batch of them.
            mask: true where an action is allowed; by default everywhere.
            seed: for rules that draw.
        """
        return self._call(self._explain, obs, mask, seed)

    def __repr__(self) -> str:
        title = words.title(self.config.agent, self.config.env)
        shape, actions = self.agent.obs_shape, in_words(self.agent.actions)
        return f"Policy({title}, seed {self.seed}, observations {shape}, {actions})"

    def _call(self, function, obs, mask, seed) -> Decided:
        obs, mask, single = self.checked(obs, mask)
        decision = function(self.params, self.prior, obs, mask, jax.random.key(seed))
        return jax.tree.map(lambda x: np.asarray(x)[0] if single else np.asarray(x), decision)

    def _taken(self, decision: Decided) -> np.ndarray:
        taken = decision.taken
        if not isinstance(self.agent.actions, Box) and np.any(taken < 0):  # no action is finite
            raise IdrlError("the agent's values of these observations are not finite: too large.")
        return taken

    def checked(self, obs: Any, mask: Any) -> tuple[np.ndarray, np.ndarray | None, bool]:
        """A batch of observations and of masks, and whether a single one was given."""
        obs = np.asarray(obs)
        shape = self.agent.obs_shape
        if obs.shape[obs.ndim - len(shape) :] != shape or obs.ndim not in (
            len(shape),
            len(shape) + 1,
        ):
            raise IdrlError(
                f"the agent takes observations of shape {shape}, or a batch of them, "
                f"not {obs.shape}."
            )
        if not obs.size:
            raise IdrlError("the batch of observations is empty; it must hold at least one.")
        if obs.dtype.kind == "f" and obs.itemsize > 4:
            with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
                obs = obs.astype(np.float32)
        if obs.dtype.kind not in "buif" or not np.isfinite(obs).all():
            raise IdrlError(
                "observations are finite numbers of at most 3.4e38; these hold something else."
            )
        single = obs.ndim == len(shape)
        if mask is not None and isinstance(self.agent.actions, Box):
            raise IdrlError("continuous actions have no mask: omit it.")
        if mask is not None:
            mask = self._checked(np.asarray(mask), () if single else obs.shape[:1])
        if single:
            obs, mask = obs[None], None if mask is None else mask[None]
        return obs, mask, single

    def _checked(self, mask: np.ndarray, batch: tuple[int, ...]) -> np.ndarray:
        """One for each observation; the one that is given may stand for all."""
        actions = (self.agent.num_actions,)
        if mask.shape not in (actions, batch + actions):
            raise IdrlError(
                f"the mask has shape {mask.shape}; for observations of shape "
                f"{batch + self.agent.obs_shape} it must be {batch + actions}."
            )
        mask = np.broadcast_to(mask.astype(bool), batch + actions)
        if not mask.any(-1).all():
            raise IdrlError("the mask allows no action; it must be true for at least one.")
        return mask


def without(decision: Decision, allowed: np.ndarray | None) -> Decision:
    """As it is shown: NaN for what is said of actions that are not `allowed` `[..., A]`, since
    nothing is learned about them."""
    if allowed is None:
        return decision
    names = ("mu", "sigma", "regret", "rho2", "info_gain", "ratio")
    said = {name: np.where(allowed, getattr(decision, name), np.nan) for name in names}
    return decision._replace(**said)


def load_policy(path: Path) -> Policy:
    """What `Policy.save` wrote. Sizes follow from the config in the file and are compared with the
    file's own before anything is read."""
    name = repr(str(path))
    text = read_metadata(path).get("idrl")
    if text is None:
        raise IdrlError(f"{name} holds no agent of idrl; agent.save(…) writes such a file.")
    about = parse_json(text, f"what {name} says of its agent")
    version = about.get("format")
    if type(version) is not int or version not in _RUN_FORMAT:
        raise IdrlError(
            f"{name} has model format {words.value(version)}, written by idrl "
            f"{str(about.get('version'))[:20]!r}; this idrl {VERSION} reads "
            f"formats up to {MODEL_FORMAT}."
        )
    wanted = about.get("plugins", [])
    if not plugins.are_plugins(wanted):
        raise IdrlError(f"{name} says plugins = {words.value(wanted)}, which is not valid.")
    said = about.get("config")
    said = in_todays_words(said if isinstance(said, dict) else {}, _RUN_FORMAT[version])
    config = build_config(said, wanted, f"the agent in {name}")
    agent = make_agent(config.spec, *shapes_of(about, name))
    params, prior = shapes(agent)
    if 4 * parameters(agent) > memory():
        raise IdrlError(f"the networks of {name} do not fit into the memory of this machine.")
    tree = read_arrays(path, {"params": params, "prior": prior})
    seed = about.get("seed")
    if not count(2**31)(seed):
        raise IdrlError(f"{name} does not say which seed its agent is of.")
    env_object = about.get("env_object", False)
    if not flag(env_object):
        raise IdrlError(f"{name} says env_object = {words.value(env_object)}, which is not valid.")
    return Policy(config, agent, tree["params"], tree["prior"], seed, env_object)

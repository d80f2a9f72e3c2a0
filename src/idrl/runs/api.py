"""What `import idrl` offers: train, load, evaluate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from idrl.actions import actions_of, in_words, to_table
from idrl.agents import Agent, make_agent
from idrl.config import RunConfig, assignments, in_frames, read_config, resolve
from idrl.envs import Env, HostEnv, make_env, unit_of
from idrl.envs.declaring import steps_of
from idrl.errors import IdrlError, RunFailed
from idrl.report.run_figures import draw_figures
from idrl.runs.policy import Policy, load_policy
from idrl.runs.reading import modules_of, read_run
from idrl.runs.resuming import changed, differences, restore_state
from idrl.runs.session import Display, make_program, prepare_memory, run_session
from idrl.runs.sizing import check_memory, without_gpu
from idrl.schema import to_dict
from idrl.storage import checkpoint
from idrl.storage import sinks as guests
from idrl.storage.arrays import check_finite
from idrl.storage.folder import RunFolder, free_name
from idrl.storage.records import read_table
from idrl.system import plugins
from idrl.system.devices import prepare
from idrl.training.evaluation import Score

DEFAULT_SEEDS = 8  # of the default run; a run of one's own has one seed unless told otherwise


@dataclass(frozen=True)
class Run:
    """A run folder, finished or not."""

    path: Path
    config: RunConfig

    @property
    def evaluations(self) -> list[dict[str, str]]:
        return read_table(self.path / "evaluations.csv")

    @property
    def episodes(self) -> list[dict[str, str]]:
        return read_table(self.path / "episodes.csv")

    @property
    def distributions(self) -> list[dict[str, str]]:
        """Percentiles of σ², ρ², … on the fixed batch of states."""
        return read_table(self.path / "distributions.csv")

    @property
    def frozen(self) -> list[dict[str, str]]:
        """Seeds whose numbers were no longer finite, with the step and which numbers."""
        return read_table(self.path / "frozen.csv")

    @property
    def seeds(self) -> range:
        return range(self.config.seed, self.config.seed + self.config.seeds)


def train(
    agent: str | None = None,
    env: Any = None,
    *,
    steps: int | None = None,
    frames: int | None = None,
    envs: int | None = None,
    preset: str | None = None,
    seeds: int | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | list[str] = (),  # type: ignore[assignment]
    resume: str | Path | None = None,
    tensorboard: bool | None = None,
    wandb: bool | None = None,
    display: Display | None = None,
    until: Callable[[], bool] | None = None,
    debug_nans: bool = False,
    deterministic: bool = False,
) -> Run:
    """Train `agent` on `env` (a name, an environment object, or a factory) and return its run.

    `settings` changes the config: a nested dictionary, or texts such as "heads.q.k=20". For Atari
    `preset` is "paper", "release" or "sticky" and `frames` may say how long to train instead of
    `steps`; `envs` is how many environments each seed has. With
    `resume` the run in that folder goes on where its newest checkpoint left it, with its own
    settings, of which only `steps` and how often it is logged may be changed; a run on an
    environment object needs that object again as `env`. `until` is asked about once a second, when
    new rows are in the run's tables; where it says yes the run ends early, with a checkpoint.
    `tensorboard` and `wandb` also tell the numbers there; a resumed run keeps what it had unless
    told otherwise. `debug_nans` names the operation that made the first number that is none, at the
    price of a copy of the state in memory. `deterministic` makes a GPU compute the same bits every
    time, more slowly; a resumed run keeps it.
    """
    plugins.load_installed()
    file = read_config(config) if isinstance(config, (str, Path)) else dict(config or {})
    if steps is not None and frames is not None:
        raise IdrlError("steps and frames both say how long to train: leave one out.")
    flags: dict[str, Any] = {"training": {}}
    for name, value in (("steps", steps), ("envs", envs)):
        if value is not None:
            flags["training"][name] = value
    for name, value in (("seeds", seeds), ("seed", seed)):
        if value is not None:
            flags[name] = value
    how = _How({"tensorboard": tensorboard, "wandb": wandb}, display, until, debug_nans)
    changes = [dict(settings)] if isinstance(settings, Mapping) else assignments(settings)
    if resume is not None:
        if out is not None:
            raise IdrlError("a resumed run stays in its folder: leave out= or --out away.")
        told = [{} if agent is None else {"agent": agent}, file, *changes, flags]
        if preset is not None:
            raise IdrlError("a resumed run keeps its settings: leave preset= or --preset away.")
        return _resume(Path(resume), env, told, frames, how, deterministic)
    if agent is None and env is None and not file:
        flags = {"seeds": DEFAULT_SEEDS} | flags
    prepare(deterministic)
    given = None if isinstance(env, str) or env is None else make_env(env)
    if given is not None and preset is not None:
        raise IdrlError("a preset changes the game by its name: give env as a name, not an object.")
    resolved = resolve(
        agent, env if given is None else given.name, file=file, changes=[*changes, flags],
        obs_shape=None if given is None else given.obs_shape, named=preset,
        frames=frames,
    )  # fmt: skip
    prepare_memory(resolved)
    world = make_env(resolved.env) if given is None else given
    # refuses what cannot be built, or not here
    actions = actions_of(world)
    _check_here(make_agent(resolved.spec, world.obs_shape, actions, world.name), resolved, world)
    sinks = _sinks({}, how.asked)
    path = Path(out) if out else free_name(Path("runs"), f"{resolved.agent}-{resolved.env}")
    about = {
        "obs_shape": list(world.obs_shape),
        **to_table(actions),
        "env_object": given is not None,
        "deterministic": deterministic,
        "device": _devices(),
        **_unit(resolved.env),
        "plugins": plugins.record(modules_of(resolved)),
    }
    folder = RunFolder.create(path, to_dict(resolved), about)
    try:
        return _go(folder, resolved, world, sinks, how)
    except guests.SinkRefused:
        folder.discard()
        raise


class _How(NamedTuple):
    """What changes nothing about what a run computes."""

    asked: dict[str, bool | None]  # sinks
    display: Display | None
    until: Callable[[], bool] | None
    debug_nans: bool


def _resume(
    path: Path, env: Any, changes: list[dict[str, Any]], frames: int | None, how: _How,
    deterministic: bool,
) -> Run:  # fmt: skip
    folder = RunFolder.open(path)
    old = read_run(folder)
    if isinstance(env, str):
        changes, env = [{"env": env}, *changes], None
    config = changed(old, [*changes, *in_frames(frames, old.env)])
    about = folder.read_about()
    if deterministic and not about.get("deterministic"):
        raise IdrlError(
            f"{str(path)!r} was begun without --deterministic, and going on cannot make it so: "
            "leave it away."
        )
    prepare(bool(about.get("deterministic")))
    prepare_memory(config)
    if env is None and about.get("env_object"):
        raise IdrlError(
            f"{str(path)!r} was trained on an environment object; resume it from Python with "
            "idrl.train(resume=…, env=that_object)."
        )
    sinks = _sinks(about.get("sinks", {}), how.asked)
    differs = differences(about, _devices(), config.seeds)
    if differs:
        warnings.warn(
            f"the run was begun with {differs}: from here on its numbers may differ from those of "
            "an uninterrupted run.",
            stacklevel=3,
        )
    world = make_env(config.env if env is None else env)
    shape, actions = folder.read_shapes()
    if (world.obs_shape, actions_of(world)) != (shape, actions):
        raise IdrlError(
            f"the run is for observations of shape {shape} and {in_words(actions)}, but "
            f"{world.name} has {world.obs_shape} and {in_words(actions_of(world))}."
        )
    _check_here(make_agent(config.spec, shape, actions), config, world)
    return _go(folder, config, world, sinks, how, keep=config != old)


def _check_here(agent: Agent, config: RunConfig, env: Env | HostEnv) -> None:
    """Refuse what does not fit into this machine; say what will take it long."""
    check_memory(agent, config, env)
    told = without_gpu(agent, config)
    if told is not None:
        warnings.warn(told, stacklevel=3)
    if isinstance(env, HostEnv) and not env.repeats:
        warnings.warn(
            f"{env.name} shows something else when it is reset with the same seed again: a run on "
            "it cannot be repeated, nor resumed as if it had never stopped.",
            stacklevel=3,
        )


def _unit(env: str) -> dict[str, Any]:
    """What reports count the run in."""
    unit = unit_of(env)
    return {"unit": unit.name, "unit_per_step": unit.per_step}


def _devices() -> str:
    return f"{jax.device_count()} × {jax.devices()[0].device_kind}"


def _go(
    folder: RunFolder, config: RunConfig, env: Env | HostEnv, sinks: dict[str, str], how: _How,
    keep: bool = False,
) -> Run:  # fmt: skip
    """`keep`: the config is not yet the one in the folder."""

    def open_sinks() -> guests.Sinks:
        name = folder.remember_sinks(sinks)
        return guests.open_sinks(sinks, folder.path, name, to_dict(config))

    run_session(
        folder, config, env, sinks=open_sinks, display=how.display, until=how.until,
        debug_nans=how.debug_nans, keep=keep,
    )  # fmt: skip
    try:
        draw_figures(folder.path)
    except OSError as error:
        raise RunFailed(f"the run is finished, but not all is drawn: {error}.") from None
    return Run(folder.path, config)


def _sinks(known: dict[str, str], asked: dict[str, bool | None]) -> dict[str, str]:
    """What the run tells its numbers to: what it did so far, but for what is `asked` now."""
    wanted = {kind: kind in known if told is None else told for kind, told in asked.items()}
    kinds = [kind for kind, yes in wanted.items() if yes]
    guests.check_installed(kinds)
    return {kind: known.get(kind, new) for kind, new in guests.settings(kinds).items()}


def open_run(path: str | Path | Run) -> Run:
    if isinstance(path, Run):
        return path
    folder = RunFolder.open(path)
    return Run(folder.path, read_run(folder))


def load(path: str | Path | Run, seed: int | None = None, weights: str = "best") -> Policy:
    """The agent in a file that `Policy.save` wrote, or the one that a run trained: of `seed`
    (default: the seed that scored best), with the weights of its best evaluation, or its latest
    (`weights="latest"`)."""
    if weights not in ("best", "latest"):
        raise IdrlError(f"weights is {weights!r}; it must be 'best' or 'latest'.")
    if not isinstance(path, Run) and Path(path).is_file():
        if seed is not None:
            raise IdrlError(f"{str(path)!r} holds one agent: leave seed={seed} away.")
        return load_policy(Path(path))
    run = open_run(path)
    place = _newest_checkpoint(run)
    agent = make_agent(run.config.spec, *RunFolder.open(run.path).read_shapes())
    count = run.config.seeds
    scores = checkpoint.restore(place, jax.ShapeDtypeStruct((count,), np.float32), "best/score")
    if seed is None:
        index = int(np.argmax(scores))
    elif seed in run.seeds:
        index = seed - run.config.seed
    else:
        raise IdrlError(f"the run has seeds {run.seeds[0]} to {run.seeds[-1]}, not {seed}.")
    example = jax.ShapeDtypeStruct((count, 1, *agent.obs_shape), np.float32)
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), count))
    like = jax.eval_shape(jax.vmap(agent.init), keys, example)
    evaluated = np.isfinite(scores[index])
    source = "best/params/" if weights == "best" and evaluated else "agent/params/"
    params = checkpoint.restore(place, like.params, source)
    prior = checkpoint.restore(place, like.prior, "agent/prior/")
    params, prior = jax.tree.map(lambda x: x[index], (params, prior))
    return Policy(run.config, agent, params, prior, run.config.seed + index)


def evaluate(
    path: str | Path | Run, *, env: Any = None, episodes: int | None = None,
    frames: int | None = None, limit_steps: int = 108_000,
) -> Score:  # fmt: skip
    """Best weights of every seed over whole episodes (100) on its own task: a `Score` of `[S]`
    arrays. With `frames` an Atari run is scored by the paper's protocol: so many frames, and the
    mean over the episodes completed in them. An episode that goes on after `limit_steps` counts
    with what it has by then."""
    if episodes is not None and frames is not None:
        raise IdrlError("episodes and frames both say how long to play: leave one out.")
    episodes = 100 if episodes is None else episodes
    if episodes <= 0:
        raise IdrlError(f"episodes is {episodes}; it must be positive.")
    run = open_run(path)
    window = None if frames is None else steps_of(frames, run.config.env)
    _newest_checkpoint(run)
    folder = RunFolder.open(run.path)
    if env is None and folder.read_about().get("env_object"):
        raise IdrlError("this run was trained on an environment object; pass it as env=….")
    prepare()
    world = make_env(run.config.env if env is None else env)
    agent = make_agent(run.config.spec, *folder.read_shapes())
    check_memory(agent, run.config, world, playing=True)
    program = make_program(run.config, world)
    state, _, _ = restore_state(program, folder)
    try:
        check_finite((state.best.params, state.agent.prior), "the best weights of the run")
        if window is None:
            return jax.device_get(program.score_best(state, episodes, limit_steps))
        return jax.device_get(program.score_window(state, window))
    finally:
        program.close()


def _newest_checkpoint(run: Run) -> Path:
    place, damaged = checkpoint.newest(run.path / "checkpoints")
    if place is None:
        why = "; ".join(f"{n} is damaged: {w}" for n, w in damaged.items())
        raise IdrlError(
            f"{str(run.path)!r} has no weights to load: {why or 'it has no checkpoint yet'}."
        )
    return place

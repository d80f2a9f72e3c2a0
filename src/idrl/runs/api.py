"""What `import idrl` offers: train, load, evaluate."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from idrl.actions import actions_of, in_words, to_table
from idrl.agents import Agent, make_agent
from idrl.config import RunConfig, changes_of, in_frames, read_config, resolve, table_of
from idrl.envs import Env, HostEnv, unit_of
from idrl.envs.checking import own_env
from idrl.errors import IdrlError, RunFailed
from idrl.runs.callbacks import Callback, CallbackFailed, Watchers, check_callbacks
from idrl.runs.evaluating import evaluate
from idrl.runs.loading import load
from idrl.runs.reading import modules_of, read_run
from idrl.runs.resuming import changed, differences
from idrl.runs.run import Run, open_run
from idrl.runs.session import Display, prepare_memory, run_session
from idrl.runs.sizing import check_memory, check_replay, too_short, without_gpu
from idrl.schema import flat, merge, to_dict
from idrl.storage import checkpoint
from idrl.storage import sinks as guests
from idrl.storage.folder import RunFolder, free_name
from idrl.system import plugins
from idrl.system.devices import has_bfloat16, prepare
from idrl.system.printing import Printer

__all__ = ["Run", "evaluate", "load", "open_run", "train"]

DEFAULT_SEEDS = 8  # of the default run; a run of one's own has one seed unless told otherwise


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
    settings: Mapping[str, Any] | list[str] | None = None,
    resume: str | Path | Run | None = None,
    tensorboard: bool | None = None,
    sinks: Sequence[str] = (),
    wandb: bool | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = False,
    display: Display | None = None,
    until: Callable[[], bool] | None = None,
    debug_nans: bool = False,
    deterministic: bool = False,
) -> Run:
    """Train an agent on an environment and return its run.

    The run is a folder with every setting, record and checkpoint. With `resume` the run in that
    folder continues from its newest checkpoint with its own settings. Of these only `steps`,
    `training.log_every_steps`, `training.keep_weights`, `training.env_processes`,
    `training.env_timeout_s` and `evaluation.beside` may change.

    Args:
        agent: the name of an agent, such as `"c51-ids"` (the default); see `idrl list agents`.
        env: a name such as `"deep_sea/10"` (the default), an environment object, or a function that
            makes one. A run on an object needs that object again to be resumed.
        steps: steps of each seed; by default those of the preset.
        frames: for Atari: the same in frames, four per step.
        envs: environments of each seed, side by side.
        preset: `"paper"` for the paper's constants, on any task; for Atari also `"release"`,
            `"sticky"` or `"short"`.
        seeds: how many seeds to train side by side; 1, or 8 in the default run.
        seed: the first seed.
        out: the folder of the run; by default a new one in `runs`.
        config: a TOML file of settings, or the same as a dictionary.
        settings: changes to the config: a dictionary, nested or of names such as `"heads.q.k"`,
            or strings such as `"heads.q.k=20"`. Arguments such as `steps` win over a dictionary.
        resume: a run, or its folder, to continue.
        tensorboard: also record to TensorBoard. A resumed run keeps what it had, unless told
            otherwise.
        sinks: names of registered sinks to record to as well (`idrl.sink`).
        wandb: also record to Weights & Biases.
        callbacks: objects that are told what happens and may stop the run (`idrl.Callback`).
        progress: show the command line's progress bar, in a terminal or a notebook; elsewhere a
            line at every evaluation, and between them where they are far apart.
        display: a progress bar of your own, with `start()` and `update(progress, config)`, and
            perhaps `busy(doing, config)` for what takes long on the way.
        until: a function without arguments, asked about once a second; where it returns true the
            run ends early, with a checkpoint.
        debug_nans: name the operation that produces the first NaN or infinity, at the price of a
            copy of the state in memory.
        deterministic: make a GPU compute the same bits every time, more slowly. A resumed run keeps
            it.
    """
    if plugins.importing():
        raise IdrlError(
            'it trains when it is imported; put that under `if __name__ == "__main__":`.'
        )
    if plugins.are_installed():
        if resume is None:
            prepare(deterministic)  # an import may be the first to use JAX
        plugins.load_installed()
    file = read_config(config) if isinstance(config, (str, Path)) else table_of(config, "config")
    if steps is not None and frames is not None:
        raise IdrlError("steps and frames both say how long to train: omit one.")
    if progress and display is not None:
        raise IdrlError("progress and display both say what is shown: omit one.")
    flags: dict[str, Any] = {}
    for name, value in (("steps", steps), ("envs", envs)):
        if value is not None:
            flags.setdefault("training", {})[name] = value
    for name, value in (("seeds", seeds), ("seed", seed)):
        if value is not None:
            flags[name] = value
    how = _How(
        {"tensorboard": tensorboard, "wandb": wandb} | dict.fromkeys(sinks, True),
        check_callbacks(callbacks), progress, display, until, debug_nans,
    )  # fmt: skip
    changes = changes_of(settings)
    if not isinstance(settings, Mapping):  # which runs share, perhaps, that differ in the arguments
        _check_once(flags, frames, changes)
    if out is not None and not str(out):
        raise IdrlError("the run's folder has an empty name: name one, or omit out= or --out.")
    if resume is not None:
        if out is not None:
            raise IdrlError("a resumed run stays in its folder: omit out= or --out.")
        told = [{} if agent is None else {"agent": agent}, file, *changes, flags]
        if preset is not None:
            raise IdrlError("a resumed run keeps its settings: omit preset= or --preset.")
        return _resume(Path(resume), env, told, frames, how, deterministic)
    if agent is None and env is None and not file:
        flags = {"seeds": DEFAULT_SEEDS} | flags
    prepare(deterministic)
    given = None if isinstance(env, str) or env is None else own_env(env)
    count = getattr(given, "side_by_side", None)
    if count is not None:
        file = merge({"training": {"envs": count}}, file)
    if given is not None and preset is not None:
        raise IdrlError("a preset changes the game by its name: give env as a name, not an object.")
    resolved = resolve(
        agent, env if given is None else given.name, file=file, changes=[*changes, flags],
        obs_shape=None if given is None else given.obs_shape, named=preset,
        frames=frames,
    )  # fmt: skip
    prepare_memory(resolved)
    resolved = _settled(resolved)
    world = own_env(resolved.env) if given is None else given
    # refuses what cannot be built, or not here
    actions = actions_of(world)
    _check_here(make_agent(resolved.spec, world.obs_shape, actions, world.name), resolved, world)
    chosen = _sinks({}, how.asked)
    path = (
        Path(out)
        if out is not None
        else free_name(Path("runs"), f"{resolved.agent}-{resolved.env}")
    )
    about = {
        "obs_shape": list(world.obs_shape),
        **to_table(actions),
        "env_object": given is not None,
        "deterministic": deterministic,
        "device": _devices(),
        **_unit(resolved.env),
        "plugins": plugins.record(modules_of(resolved, chosen)),
    }
    folder = RunFolder.create(path, to_dict(resolved), about)
    try:
        return _go(folder, resolved, world, chosen, how)
    except Exception as error:
        if _came_to_nothing(folder, error):
            folder.discard()
        raise


def _settled(config: RunConfig) -> RunConfig:
    """With what "auto" stands for here: so the run goes on wherever it is resumed."""
    if config.learning.precision != "auto":
        return config  # without asking for devices
    mixed = has_bfloat16() and config.spec.actor is None
    return config.settled("mixed" if mixed else "full")


def _check_once(flags: dict[str, Any], frames: int | None, changes: list[dict[str, Any]]) -> None:
    """Refuse what is said twice: one of the two would be ignored."""
    said = {name: name.rpartition(".")[2] for name in flat(flags)}
    said |= {} if frames is None else {"training.steps": "frames"}
    for name in (name for change in changes for name in flat(change)):
        if name in said:
            raise IdrlError(f"{said[name]} and the setting {name} say the same: omit one.")


def _came_to_nothing(folder: RunFolder, error: Exception) -> bool:
    """Whether a new folder holds nothing to go on from, nor ever will: it would be in the way of
    who mends what was wrong and tries again."""
    if isinstance(error, CallbackFailed):
        return not error.begun
    if isinstance(error, RunFailed | MemoryError | OSError):
        return False
    recorded = any(table.length() for table in folder.tables.values())
    return not recorded and not checkpoint.listed(folder.checkpoints)


class _How(NamedTuple):
    """What changes nothing about what a run computes."""

    asked: dict[str, bool | None]  # sinks
    callbacks: tuple[Callback, ...]
    progress: bool
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
            "omit it."
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
    world = own_env(config.env if env is None else env)
    shape, actions = folder.read_shapes()
    if (world.obs_shape, actions_of(world)) != (shape, actions):
        raise IdrlError(
            f"the run is for observations of shape {shape} and {in_words(actions)}, but "
            f"{world.name} has {world.obs_shape} and {in_words(actions_of(world))}."
        )
    _check_here(make_agent(config.spec, shape, actions), config, world, fresh=False)
    return _go(folder, config, world, sinks, how, keep=config != old)


def _check_here(agent: Agent, config: RunConfig, env: Env | HostEnv, fresh: bool = True) -> None:
    """Refuse what does not fit into this machine; say what will take it long."""
    check_memory(agent, config, env)
    cautions = too_short(config) if fresh else None, without_gpu(agent, config)
    if fresh:
        check_replay(config, env)
    for told in cautions:
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

    run = Run(folder.path, config)
    with Watchers(how.callbacks, run) as watchers, _shown(how) as display:
        run_session(
            folder, config, env, sinks=open_sinks, watchers=watchers, display=display,
            until=how.until, debug_nans=how.debug_nans, keep=keep,
        )  # fmt: skip
        from idrl.report.run_figures import draw_figures  # imports SciPy: a third of all imports

        try:
            draw_figures(folder.path)
        except OSError as error:
            raise RunFailed(f"the run is finished, but not all is drawn: {error}.") from None
    return run


@contextlib.contextmanager
def _shown(how: _How) -> Iterator[Display | None]:
    if not how.progress:
        yield how.display
        return
    from idrl.runs.display import LiveDisplay

    with LiveDisplay(Printer()) as display:
        yield display


def _sinks(known: dict[str, str], asked: dict[str, bool | None]) -> dict[str, str]:
    """What the run tells its numbers to: what it did so far, but for what is `asked` now."""
    asked = dict.fromkeys(known) | asked
    wanted = {kind: kind in known if told is None else told for kind, told in asked.items()}
    kinds = [kind for kind, yes in wanted.items() if yes]
    guests.check_installed(kinds)
    return {kind: known.get(kind, new) for kind, new in guests.settings(kinds).items()}

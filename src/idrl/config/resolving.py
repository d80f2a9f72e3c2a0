"""A run's whole configuration: declaration, then preset, then file, then command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from idrl.agents import AgentSpec, declared
from idrl.agents.optimisers import Optimiser
from idrl.agents.registry import agent_names, presets_of
from idrl.agents.rule_base import Rule
from idrl.agents.spec import Learning, Precision
from idrl.config.presets import preset
from idrl.envs.declaring import find, steps_of, under_preset
from idrl.envs.families import DEFAULT
from idrl.errors import IdrlError
from idrl.networks.heads import Head
from idrl.networks.trunks import Trunk
from idrl.schema import Part, build, current_names, merge, nested, parse_assignment, to_dict
from idrl.storage.files import read_json, read_toml
from idrl.storage.older import in_todays_words
from idrl.training.spec import Evaluation, Training


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides what a run computes."""

    agent: str
    env: str
    trunk: Trunk
    heads: dict[str, Head]
    explore: Rule
    evaluate: Rule
    optimiser: Optimiser
    learning: Learning = field(default_factory=Learning)
    training: Training = field(default_factory=Training)
    evaluation: Evaluation = field(default_factory=Evaluation)
    seed: int = 0
    seeds: int = 1

    def check(self, where: str = "") -> None:
        if self.seeds <= 0:
            raise IdrlError(f"seeds is {self.seeds}; a run has at least one seed.")
        if not 0 <= self.seed <= 2**31 - 1 - self.seeds:
            most = f"it must be a whole number from 0 to {2**31 - 1 - self.seeds}"
            raise IdrlError(f"seed is {self.seed}, the first of {self.seeds}; {most}.")
        self.spec.check()

    @property
    def spec(self) -> AgentSpec:
        return AgentSpec(
            self.trunk, self.heads, self.explore, self.evaluate, self.optimiser, self.learning
        )

    def settled(self, precision: Precision) -> RunConfig:
        """With `precision` where it says "auto"."""
        if self.learning.precision != "auto":
            return self
        return replace(self, learning=replace(self.learning, precision=precision))


def resolve(
    agent: str | None,
    env: str | None,
    *,
    file: dict[str, Any] | None = None,
    changes: Iterable[dict[str, Any]] = (),
    obs_shape: tuple[int, ...] | None = None,
    named: str | None = None,
    frames: int | None = None,
    default_agent: str = "c51-ids",
    default_env: str = DEFAULT,
) -> RunConfig:
    """The config of a run; later sources win, and every name is checked. `obs_shape` is that of
    an environment object, which no name stands for; `named` is one of the family's presets by name
    and `frames` the length of a run that is counted in frames."""
    file = current_names(file or {})
    for name, given in (("agent", agent), ("env", env)):
        if given is not None and file.get(name, given) != given:
            raise IdrlError(
                f"the config file is for {name} {file[name]!r}, not {given!r}; omit one."
            )
    if named is not None and "env" in file:
        raise IdrlError(
            f"the config file is for {file['env']!r}, which says what is played: omit the preset."
        )
    agent = str(file.get("agent", default_agent if agent is None else agent))
    if agent not in agent_names() and find(agent) is not None:
        raise IdrlError(
            f"{agent!r} is an environment; an agent comes before it, as {default_agent!r}."
        )
    env = under_preset(str(file.get("env", default_env if env is None else env)), named)
    changes = [*map(current_names, changes), *in_frames(frames, env)]
    if any(name in change for change in changes for name in ("agent", "env")):
        raise IdrlError("agent and env are arguments, not settings: idrl train AGENT ENV --set …")
    data = to_dict(declared(agent)) | {"agent": agent, "env": env}
    if _is_whole(file):
        data = {}
    else:
        laid = _laid(data, preset(data, env, obs_shape, named), presets_of(agent))
        data = merge(data, _in_task_units(laid, (file, *changes)))
    for change in (file | {"env": env}, *changes):
        data = merge(data, change)
    config = build(RunConfig, data)
    starts, steps = config.learning.learning_starts_steps, config.training.steps
    if presets_of(agent) == "task" and starts >= steps:  # most likely Atari's, by default
        raise IdrlError(
            f"the agent {agent!r} starts to learn after {starts:,} steps, and the run has "
            f"{steps:,}; declare learning=idrl.Learning(learning_starts_steps=…), or register the "
            'agent with presets="all".'
        )
    return config


def _is_whole(file: dict[str, Any]) -> bool:
    """Whether this is a config as run folders have it. What such a file lacks is newer than it, and
    is as it was then: the default of its field, not of a preset that came with it."""
    tables = ("trunk", "heads", "explore", "evaluate", "optimiser", "training", "learning")
    counts = ("gamma", "batch_size", "update_every_steps", "target_every_steps", "replay_capacity")
    return (
        all(name in file for name in ("agent", "env"))
        and all(isinstance(file.get(name), dict) for name in tables)
        and all(name in file["learning"] for name in counts)
    )


def _in_task_units(laid: dict[str, Any], given: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Of a preset for measured units what holds in the task's too, where these are asked for."""
    tables = [change.get("learning") for change in given]  # of any type: `build` refuses it
    asked = [table["unit"] for table in tables if isinstance(table, dict) and "unit" in table]
    measured = laid.get("learning", {}).get("unit") == "measured"
    if not measured or asked[-1:] != ["task"]:
        return laid
    heads = {
        name: {key: x for key, x in head.items() if key not in _IN_UNITS}
        for name, head in laid.get("heads", {}).items()
    }
    return laid | {"heads": heads}


_IN_UNITS = ("prior_scale", "v_min", "v_max")

# What a task decides by itself; the rest of a preset is for the built-in agents, and for those that
# ask for it.
_OF_THE_TASK: dict[str, tuple[str, ...] | None] = {
    "training": None,  # all of it
    "evaluation": None,
    "learning": ("gamma", "rewards"),
}
_OF_ITS_RETURNS = ("v_min", "v_max")
_PARTS: dict[str, type[Part]] = {
    "trunk": Trunk, "explore": Rule, "evaluate": Rule, "optimiser": Optimiser
}  # fmt: skip


def _laid(data: dict[str, Any], changes: dict[str, Any], presets: str) -> dict[str, Any]:
    """Of a preset's `changes`, what is laid over the declaration `data`. A part of somebody's own
    kind keeps what it has: presets do not know its settings."""
    heads = {
        name: change
        for name, change in changes.get("heads", {}).items()
        if Head.kinds[data["heads"][name]["kind"]].is_built_in()
    }
    if presets == "all":
        own = [
            name
            for name, category in _PARTS.items()
            if not category.kinds[data[name]["kind"]].is_built_in()
        ]
        laid = {name: x for name, x in changes.items() if name not in own} | {"heads": heads}
        built_in = all(Head.kinds[head["kind"]].is_built_in() for head in data["heads"].values())
        if "trunk" in own or not built_in:
            # Weights in bfloat16 are nothing that others' networks have to expect.
            laid["learning"] = _but(laid.get("learning", {}), "precision")
        return laid
    laid = {
        section: _only(changes[section], names)
        for section, names in _OF_THE_TASK.items()
        if section in changes
    }
    if changes.get("learning", {}).get("unit", "task") != "task":
        return laid  # ranges in units that the agent does not measure, unless it says so
    ranges = {name: _only(change, _OF_ITS_RETURNS) for name, change in heads.items()}
    return laid | {"heads": ranges}


def _but(table: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key != name}


def _only(table: dict[str, Any], names: tuple[str, ...] | None) -> dict[str, Any]:
    return {name: value for name, value in table.items() if names is None or name in names}


def in_frames(frames: int | None, env: str) -> list[dict[str, Any]]:
    """The change that makes a run so many frames long."""
    return [] if frames is None else [{"training": {"steps": steps_of(frames, env)}}]


def assignments(texts: Iterable[str]) -> list[dict[str, Any]]:
    return [parse_assignment(text) for text in texts]


def changes_of(settings: Any) -> list[dict[str, Any]]:
    """What a caller in Python may give as changes: a table, or assignments."""
    if isinstance(settings, str):
        return assignments([settings])
    if isinstance(settings, list | tuple):
        for text in settings:
            if not isinstance(text, str):
                raise IdrlError(
                    f"settings holds {text!r:.60}; a list of settings holds strings, such as "
                    '"training.steps=1000".'
                )
        return assignments(settings)
    return [table_of(settings, "settings")]


def table_of(given: Any, name: str) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise IdrlError(
            f"{name} is of type {type(given).__name__}; it must be a dictionary, such as "
            '{"training.steps": 1000}.'
        )
    return nested(given or {})


def read_config(path: str | Path) -> dict[str, Any]:
    """The settings in a TOML file. In a run folder of an older format, names may mean what they
    meant then."""
    path = Path(path)
    data = read_toml(path, f"config file {str(path)!r}", named=True)
    about = path.with_name("run.json")
    if path.name != "config.toml" or not about.is_file():
        return data
    return in_todays_words(data, read_json(about).get("format"))

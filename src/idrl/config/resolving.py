"""A run's whole configuration: declaration, then preset, then file, then command line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from idrl.agents import AgentSpec, declared
from idrl.agents.rule import Rule
from idrl.agents.spec import Adam, Learning, RmsProp
from idrl.config.presets import preset
from idrl.envs.declaring import steps_of, under_preset
from idrl.envs.families import DEFAULT
from idrl.errors import IdrlError
from idrl.networks.heads import Head
from idrl.networks.trunks import Trunk
from idrl.schema import build, current_names, merge, parse_assignment, to_dict
from idrl.storage.files import read_toml
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
    optimiser: Adam | RmsProp
    learning: Learning = field(default_factory=Learning)
    training: Training = field(default_factory=Training)
    evaluation: Evaluation = field(default_factory=Evaluation)
    seed: int = 0
    seeds: int = 1

    def check(self, where: str = "") -> None:
        if self.seeds <= 0:
            raise IdrlError(f"seeds is {self.seeds}; a run has at least one seed.")
        if not 0 <= self.seed <= 2**31 - 1 - self.seeds:
            raise IdrlError(f"seed is {self.seed}; it is a whole number from 0 to 2147483647.")
        self.spec.check()

    @property
    def spec(self) -> AgentSpec:
        return AgentSpec(
            self.trunk, self.heads, self.explore, self.evaluate, self.optimiser, self.learning
        )


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
                f"the config file is for {name} {file[name]!r}, not {given!r}; leave one out."
            )
    if named is not None and "env" in file:
        raise IdrlError(
            f"the config file is for {file['env']!r}, which says what is played: omit the preset."
        )
    agent = str(file.get("agent", agent or default_agent))
    env = under_preset(str(file.get("env", env or default_env)), named)
    changes = [*map(current_names, changes), *in_frames(frames, env)]
    if any(name in change for change in changes for name in ("agent", "env")):
        raise IdrlError("agent and env are arguments, not settings: idrl train AGENT ENV --set …")
    data = to_dict(declared(agent)) | {"agent": agent, "env": env}
    data = merge(data, preset(data, env, obs_shape, named))
    for change in (file | {"env": env}, *changes):
        data = merge(data, change)
    return build(RunConfig, data)


def in_frames(frames: int | None, env: str) -> list[dict[str, Any]]:
    """The change that makes a run so many frames long."""
    return [] if frames is None else [{"training": {"steps": steps_of(frames, env)}}]


def assignments(texts: Iterable[str]) -> list[dict[str, Any]]:
    return [parse_assignment(text) for text in texts]


def read_config(path: str | Path) -> dict[str, Any]:
    """The settings in a TOML file."""
    return read_toml(Path(path), f"config file {str(path)!r}", named=True)

"""Settings for a task: what its family says, laid over an agent's declaration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from idrl.agents import declared
from idrl.envs import PresetContext, make_env
from idrl.envs.control_presets import as_published
from idrl.envs.declaring import PAPER, Family, NameParts, alike, find
from idrl.envs.presets import images, small_control
from idrl.errors import IdrlError
from idrl.schema import merge
from idrl.training.spec import Training

Settings = dict[str, Any]

# Settings of heads that are in units of rewards, or decide what is bootstrapped on.
_IN_REWARDS = ("prior_scale", "target", "v_min", "v_max", "error", "kappa")
# Settings of rules that the paper has its own numbers for, or has not.
_OF_RULES = (
    "lam", "noise", "rho2", "relative", "redraw_steps",
    "epsilon_start", "epsilon_end", "epsilon_decay_steps",
)  # fmt: skip

# An ensemble of one is a plain Q-function: it has no spread, so no prior either.
_ALONE = {"ensemble": "q"}


def preset(
    agent: Settings, env: str, obs_shape: tuple[int, ...] | None = None, name: str | None = None
) -> Settings:
    """What to change in the declaration `agent` (as a dictionary) for the environment `env`.

    `obs_shape` is what an environment object shows. Where a family has no preset one of its
    environments is made to see. `name` is one of the family's named presets, or `PAPER`.
    """
    changes = _preset(agent, env, obs_shape, name)
    known = find(env)
    own = known is not None and PAPER in known.named
    continuous = declared(agent["agent"]).actor is not None
    if name != PAPER or own:
        return changes
    if continuous:
        raise IdrlError(
            f"the paper is about discrete actions: it has no settings for {agent['agent']!r}; omit "
            "the preset."
        )
    return _of_the_paper(changes)


def _preset(
    agent: Settings, env: str, obs_shape: tuple[int, ...] | None, name: str | None
) -> Settings:
    family, (argument, options) = _family(env, is_object=obs_shape is not None)
    if obs_shape is None and family is not None and family.preset is None:
        obs_shape = make_env(env).obs_shape
    continuous = declared(agent["agent"]).actor is not None
    task = PresetContext(env, argument, options, agent, continuous, name, obs_shape)
    found = _asked(family, task)
    if found is None and (continuous or not task.image):
        found = _asked(alike(env), task)
    if found is None:
        return _by_kind(agent, **_unknown(task))
    if "trunk" in found:
        return _by_kind(agent, **found)
    if obs_shape is None and not continuous:
        task = replace(task, obs_shape=make_env(env).obs_shape)
    if _in_rewards(found):
        found = merge({"learning": {"unit": "task"}}, found)
    return _by_kind(agent, **merge(_unknown(task), found))


def _in_rewards(settings: Settings) -> bool:
    """Whether a family's own settings have numbers that were meant as rewards of its task."""
    tables = [*settings.get("kinds", {}).values(), *settings.get("heads", {}).values()]
    return any(name in table for table in tables for name in ("v_min", "v_max", "prior_scale"))


def _of_the_paper(changes: Settings) -> Settings:
    """With the paper's numbers for what is in units of rewards, which it clips, and its rules; the
    rest, such as networks and how often they are updated, is the task's."""
    kept = dict(changes)
    for rule in ("explore", "evaluate"):
        kept[rule] = {
            setting: value
            for setting, value in changes.get(rule, {}).items()
            if setting not in _OF_RULES
        }
    kept["heads"] = {
        name: {setting: value for setting, value in head.items() if setting not in _IN_REWARDS}
        for name, head in changes.get("heads", {}).items()
    }
    kept["learning"] = changes.get("learning", {}) | {"unit": "task", "rewards": "clip"}
    return kept


def _family(env: str, is_object: bool) -> tuple[Family | None, NameParts]:
    known = find(env)
    try:
        return known, NameParts(None, {}) if known is None else known.parse(env)
    except IdrlError:
        if not is_object:
            raise
        return None, NameParts(None, {})  # an object may be called as it likes


def _asked(family: Family | None, task: PresetContext) -> Settings | None:
    """What the family's preset says, with a sentence for what is wrong in one of one's own."""
    if family is None or family.preset is None:
        return None
    where = f"the preset of {task.env!r}"
    try:
        found = family.preset(task)
    except IdrlError:
        raise
    except Exception as error:
        raise IdrlError(f"{where} fails: {type(error).__name__}: {error}.") from error
    tables = found.values() if isinstance(found, dict) else [found]
    if found is not None and not all(isinstance(table, dict) for table in tables):
        raise IdrlError(
            f"{where} returns {found!r}; it must return tables of settings in a dictionary."
        )
    return found


def _unknown(task: PresetContext) -> Settings:
    """For a task that nothing is known of but what it shows."""
    if task.continuous:
        return as_published()
    return images(task.obs_shape) if task.image and task.obs_shape else small_control(task)


def _by_kind(
    agent: Settings, kinds: dict[str, Settings] | None = None, **sections: Settings
) -> Settings:
    """Spread `kinds` over the heads and rules that the agent has."""
    if kinds is None:
        return sections
    changes: Settings = dict(sections)
    # As often as a row of metrics: 64 states are one batch more in thousands.
    training = changes.get("training", {})
    often = training.get("log_every_steps", Training.log_every_steps)
    changes["training"] = {"distributions_every_steps": often} | training
    heads = {name: kinds.get(_kind(head), {}) for name, head in agent["heads"].items()}
    changes["heads"] = merge(
        {name: change for name, change in heads.items() if change}, changes.get("heads", {})
    )
    for rule in ("explore", "evaluate"):
        changes[rule] = merge(kinds.get(agent[rule]["kind"], {}), changes.get(rule, {}))
    return changes


def _kind(head: Settings) -> str:
    kind = str(head["kind"])
    return _ALONE.get(kind, kind) if head.get("k") == 1 else kind

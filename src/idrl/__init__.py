"""Information-directed exploration in deep reinforcement learning.

`idrl.ids` and `idrl.rules` work on plain arrays; everything else is loaded when first used, so
that `import idrl` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from idrl.system.version import VERSION

__version__ = VERSION

_HOME = {
    "train": "runs.api",
    "load": "runs.api",
    "evaluate": "runs.api",
    "open_run": "runs.api",
    "Run": "runs.api",
    "Callback": "runs.callbacks",
    "TrainingProgress": "runs.callbacks",
    "EvaluationResult": "runs.callbacks",
    "RecordTable": "runs.tables",
    "Policy": "runs.policy",
    "Score": "training.evaluation",
    "play": "inspect.play.episode",
    "explain": "inspect.explain",
    "compare": "runs.comparing",
    "Baseline": "runs.baselines",
    "register_agent": "agents",
    "agent": "agents.registry",
    "AgentSpec": "agents",
    "Learning": "agents.spec",
    "rule": "agents.rule_base",
    "Rule": "agents.rule_base",
    "Beliefs": "agents.rule_base",
    "RuleContext": "agents.rule_base",
    "ActorRule": "agents.actor_rules",
    "optimiser": "agents.optimisers",
    "Optimiser": "agents.optimisers",
    "head": "networks.heads",
    "Head": "networks.heads",
    "MlpHead": "networks.heads",
    "ActorHead": "networks.heads",
    "Transition": "networks.heads",
    "trunk": "networks.trunks",
    "Trunk": "networks.trunks",
    "register_env": "envs",
    "family": "envs",
    "sink": "storage.sinks",
    "Sink": "storage.sinks",
    "SinkRun": "storage.sinks",
    "Env": "envs",
    "Step": "envs",
    "Box": "actions",
    "Decision": "ids",
    "IdrlError": "errors",
    "Interrupted": "errors",
    "RunFailed": "errors",
    "TrainingDiverged": "errors",
}
_MODULES = ("ids", "rules", "losses", "agents", "envs", "bandits", "report")  # report(…) makes one

__all__ = [*_HOME, *_MODULES]

if TYPE_CHECKING:  # what __getattr__ finds, for type checkers and editors
    from idrl import agents, bandits, envs, ids, losses, rules  # noqa: F401
    from idrl.actions import Box  # noqa: F401
    from idrl.agents import AgentSpec, register_agent  # noqa: F401
    from idrl.agents.actor_rules import ActorRule  # noqa: F401
    from idrl.agents.optimisers import Optimiser, optimiser  # noqa: F401
    from idrl.agents.registry import agent  # noqa: F401
    from idrl.agents.rule_base import Beliefs, Rule, RuleContext, rule  # noqa: F401
    from idrl.agents.spec import Learning  # noqa: F401
    from idrl.envs import Env, Step, family, register_env  # noqa: F401
    from idrl.errors import IdrlError, Interrupted, RunFailed, TrainingDiverged  # noqa: F401
    from idrl.ids import Decision  # noqa: F401
    from idrl.inspect.explain import explain  # noqa: F401
    from idrl.inspect.play.episode import play  # noqa: F401
    from idrl.networks.heads import ActorHead, Head, MlpHead, Transition, head  # noqa: F401
    from idrl.networks.trunks import Trunk, trunk  # noqa: F401
    from idrl.report.writing import make_report as report  # noqa: F401
    from idrl.runs.api import Run, evaluate, load, open_run, train  # noqa: F401
    from idrl.runs.baselines import Baseline  # noqa: F401
    from idrl.runs.callbacks import Callback, EvaluationResult, TrainingProgress  # noqa: F401
    from idrl.runs.comparing import compare  # noqa: F401
    from idrl.runs.policy import Policy  # noqa: F401
    from idrl.runs.tables import RecordTable  # noqa: F401
    from idrl.storage.sinks import Sink, SinkRun, sink  # noqa: F401
    from idrl.training.evaluation import Score  # noqa: F401


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f"idrl.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(f"idrl.{_HOME[name]}"), name)
    raise AttributeError(f"module 'idrl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

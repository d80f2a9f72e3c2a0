"""What goes together with an actor, and what does not."""

from __future__ import annotations

from typing import cast

from idrl.agents.rule_base import Rule
from idrl.errors import IdrlError
from idrl.networks.heads import ActorHead, Head


def check_no_actor(explore: Rule, evaluate: Rule) -> None:
    for name, rule in (("explore", explore), ("evaluate", evaluate)):
        if rule.follows_actor:
            raise IdrlError(
                f"{name}.kind={rule.kind} follows an actor, and the agent has none; add "
                f"heads.actor.kind=actor for continuous actions, or set {name}.kind=greedy."
            )


def check_actor(heads: dict[str, Head], explore: Rule, evaluate: Rule, precision: str) -> None:
    actors = {name: head for name, head in heads.items() if head.is_actor}
    if len(actors) > 1:
        raise IdrlError(f"an agent has one actor at most, not {', '.join(actors)}.")
    [(actor_name, head)] = actors.items()
    actor = as_actor(head)
    for name, rule in (("explore", explore), ("evaluate", evaluate)):
        rule.check_actor(name, actor_name, actor.has_density)
        searching = actor.candidates.refine and not rule.follows_actor
        if searching and not rule.minimises_ratio:
            raise IdrlError(
                f"heads.{actor_name}.candidates.refine improves the information ratio, which "
                f"{name}.kind={rule.kind} does not go by: set it to 0, or {name}.kind=ids."
            )
    if actor.targets != "own" and not any(head.says_q for head in heads.values()):
        raise IdrlError(
            f"heads.{actor_name}.targets={actor.targets} compares the critics of an ensemble; set "
            "it to own, or the kind of the critic to ensemble."
        )
    for name, head in heads.items():
        head.check_critic(f"heads.{name}")
    if precision == "mixed":
        raise IdrlError(
            "learning.precision=mixed is for discrete actions; with an actor it is full."
        )


def as_actor(head: Head) -> ActorHead:
    """The same, for who asked `is_actor`."""
    return cast(ActorHead, head)

"""What goes together with an actor, and what does not."""

from __future__ import annotations

from idrl.agents.actor_rules import Sample, Undirected
from idrl.agents.choosing import EpsilonGreedy, Ids, ReturnThompson, WithEpsilon
from idrl.agents.rule import Rule
from idrl.errors import IdrlError
from idrl.networks.heads import Actor, Bayesian, Ensemble, GaussianActor, Head


def check_no_actor(explore: Rule, evaluate: Rule) -> None:
    for name, rule in (("explore", explore), ("evaluate", evaluate)):
        if isinstance(rule, Undirected):
            raise IdrlError(
                f"{name}.kind={rule.kind} follows an actor, and the agent has none; add "
                f"heads.actor.kind=actor for continuous actions, or set {name}.kind=greedy."
            )


def check_actor(heads: dict[str, Head], explore: Rule, evaluate: Rule, precision: str) -> None:
    actors = {n: head for n, head in heads.items() if isinstance(head, (Actor, GaussianActor))}
    if len(actors) > 1:
        raise IdrlError(f"an agent has one actor at most, not {', '.join(actors)}.")
    [(actor_name, actor)] = actors.items()
    for name, rule in (("explore", explore), ("evaluate", evaluate)):
        if isinstance(rule, (EpsilonGreedy, ReturnThompson)):
            raise IdrlError(
                f"{name}.kind={rule.kind} needs discrete actions; with an actor set "
                f"{name}.kind=gaussian_noise or {name}.kind=ids."
            )
        if isinstance(rule, WithEpsilon) and rule.randomises:
            raise IdrlError(
                f"{name}.epsilon_start and {name}.epsilon_end are for discrete actions; with an "
                f"actor set both to 0, or {name}.kind=gaussian_noise."
            )
        if isinstance(rule, Sample) and not isinstance(actor, GaussianActor):
            raise IdrlError(
                f"{name}.kind=sample draws from a distribution over actions; set "
                f"heads.{actor_name}.kind=gaussian_actor, or {name}.kind=gaussian_noise."
            )
        searching = actor.candidates.refine and not isinstance(rule, Undirected)
        if searching and not isinstance(rule, Ids):
            raise IdrlError(
                f"heads.{actor_name}.candidates.refine improves the information ratio, which "
                f"{name}.kind={rule.kind} does not go by: set it to 0, or {name}.kind=ids."
            )
    if actor.targets != "own" and not any(isinstance(h, Ensemble) for h in heads.values()):
        raise IdrlError(
            f"heads.{actor_name}.targets={actor.targets} compares the critics of an ensemble; set "
            "it to own, or the kind of the critic to ensemble."
        )
    for name, head in heads.items():
        if isinstance(head, Bayesian):
            raise IdrlError(
                f"heads.{name}.kind=bayesian regresses on each action by itself and cannot judge "
                f"continuous ones; set heads.{name}.kind=ensemble."
            )
        if isinstance(head, (Actor, GaussianActor)):
            continue
        for setting in ("double", "dueling"):
            if getattr(head, setting):
                raise IdrlError(
                    f"heads.{name}.{setting}=true compares the actions of a state, and a critic "
                    f"sees one at a time; set heads.{name}.{setting}=false."
                )
        if head.noisy:
            raise IdrlError(
                f"heads.{name}.noisy={head.noisy}: noisy weights are for discrete actions; "
                f"set heads.{name}.noisy=0."
            )
    if precision == "mixed":
        raise IdrlError(
            "learning.precision=mixed is for discrete actions; with an actor it is full."
        )

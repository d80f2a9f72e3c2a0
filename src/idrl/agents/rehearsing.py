"""Parts of one's own, tried on shapes before anything is compiled or written: a mistake in one is a
sentence that names it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, cast

import jax
import jax.numpy as jnp

from idrl import rules
from idrl.actions import Box
from idrl.agents.actor_rules import Acting, ActorRule
from idrl.agents.agent import Agent
from idrl.agents.composing import as_actor
from idrl.agents.metrics import check_names
from idrl.agents.rule_base import Beliefs, Rule, RuleContext
from idrl.agents.spec import AgentSpec
from idrl.errors import IdrlError, in_a_line
from idrl.ids import Decision
from idrl.networks.heads import Head, Transition
from idrl.schema import Part

_B, _A = 3, 5  # states, and candidates of continuous actions

_rehearsed: set[Any] = set()


def rehearse(agent: Agent) -> None:
    """Refuse an agent with a part that does not do what its category asks of it. The built-in parts
    are known to; they are not tried again, nor is what was tried before."""
    spec = agent.spec
    kept = (*parts(spec).values(), agent.obs_shape, agent.actions)
    tried = repr(kept), *(type(part) for part in kept)
    if tried in _rehearsed or all(part.is_built_in() for part in parts(spec).values()):
        return
    key = _shape((), jax.random.key(0).dtype)
    obs = _shape((_B, *agent.obs_shape))
    with _blamed(spec.trunk):
        weights = jax.eval_shape(agent.trunk.init, key, obs)
        features = jax.eval_shape(agent.trunk.apply, weights, obs)
        _same(spec.trunk, "its features", features, _shape((_B, None)))
    with _blamed(spec.optimiser):
        jax.eval_shape(agent.optimiser.init, weights)
    metrics: list[str] = []
    for head in spec.heads.values():
        with _blamed(head):
            trial = _try_actor if head.is_actor else _try_head
            named = trial(agent, head, features)
        check_names(_named(head), named, metrics)
        metrics += named
    for rule in (spec.explore, spec.evaluate):
        with _blamed(rule):
            named = _try_rule(agent, rule, features)
        check_names(_named(rule), named, metrics)
    _rehearsed.add(tried)


def parts(spec: AgentSpec) -> dict[str, Part]:
    """All parts of an agent, by where its config has them."""
    heads = {f"heads.{name}": head for name, head in spec.heads.items()}
    return {
        "trunk": spec.trunk, **heads, "explore": spec.explore, "evaluate": spec.evaluate,
        "optimiser": spec.optimiser,
    }  # fmt: skip


def _try_head(agent: Agent, head: Head, features: Any) -> list[str]:
    """The names of its metrics."""
    box, actions = agent.actions, agent.num_actions
    seen = features.shape[1] + (box.dims if isinstance(box, Box) else 0)
    module = head.module(actions)
    weights = jax.eval_shape(module.init, _key(), _shape((_B, seen)))
    q, each, values = (_B, head.members, actions), (_B,), (_B, actions)

    def everything(weights, seen, batch):
        out = module.apply(weights, seen, False, rngs={"tau": _key(), "noise": _key()})
        acting = module.apply(weights, seen, True)
        said: dict[str, Any] = {"q_heads": head.q_heads(out)}
        _same(head, "its q_heads", said["q_heads"], _shape(q))  # others may be computed from them
        said["q_heads when acting"] = head.q_heads(acting)
        if head.knows_variance:
            said["return_variance"] = head.return_variance(acting)
            said["return_draw"] = head.return_draw(acting, _key())
        said["loss"] = head.loss(out, out, out, batch)
        said["td_priority"] = head.td_priority(out, out, out, batch)
        return said, head.metrics(weights, out, batch)

    if agent.spec.learning.unit != "task":
        _try_units(head, weights)
    said, metrics = jax.eval_shape(everything, weights, _shape((_B, seen)), _batch(agent))
    wanted = {
        "q_heads": q, "q_heads when acting": q, "return_variance": values, "return_draw": values,
        "loss": each, "td_priority": each,
    }  # fmt: skip
    for name, found in said.items():
        _same(head, f"its {name}", found, _shape(wanted[name]))
    return list(metrics)


def _try_units(head: Head, weights: Any) -> None:
    """Whether its weights can be moved from one unit to another."""
    if head.measured_by not in (None, "reward", "return"):
        raise IdrlError(
            f"{_named(head)} is measured by {head.measured_by!r}; it must be 'reward', 'return' or "
            "None."
        )
    if head.measured_by is not None and type(head).rescaled is Head.rescaled:
        # The default leaves weights as they are: values would be wrong once the unit changes.
        raise IdrlError(
            f"{_named(head)} is measured by {head.measured_by!r} but has no `rescaled`; define one "
            "that multiplies all outputs by the factor, or leave `measured_by` None."
        )
    before: Any = jax.tree.structure(weights)
    if jax.tree.structure(jax.eval_shape(head.rescaled, weights, _shape(()))) != before:
        raise IdrlError(f"{_named(head)} changes which weights it has in `rescaled`.")


def _try_actor(agent: Agent, head: Head, features: Any) -> list[str]:
    actor = as_actor(head)
    assert isinstance(agent.actions, Box)
    dims = agent.actions.dims
    module = actor.module(dims)
    weights = jax.eval_shape(module.init, _key(), features)

    def everything(weights, features, batch):
        out = module.apply(weights, features)
        unit, log_prob = actor.tried(out, _key())
        value = actor.climbed(jnp.zeros((_B, 2)))
        return {
            "mean": actor.mean(out),
            "next_action": actor.next_action(out, _key()),
            "tried": (unit, log_prob),
            "policy_loss": actor.policy_loss(out, value, log_prob),
        }, actor.metrics(weights, None, batch)

    both = (_shape((_B, dims)), _shape((_B,)))
    wanted = {"mean": both[0], "next_action": both, "tried": both, "policy_loss": _shape(())}
    said, metrics = jax.eval_shape(everything, weights, features, _batch(agent))
    for name, found in said.items():
        _same(head, f"its {name}", found, wanted[name])
    return list(metrics)


def _try_rule(agent: Agent, rule: Rule, features: Any) -> list[str]:
    """The names of its metrics."""
    box = agent.actions
    actions = _A if isinstance(box, Box) else agent.num_actions
    values = _shape((_B, actions))
    drawn = None if agent.z_name is None else values
    noise = None if isinstance(box, Box) else drawn
    beliefs = Beliefs(_shape((_B, agent.k, actions)), drawn, noise)
    whole = _shape((_B,), jnp.int32)

    def remembered(memory, first):
        return rule.remember(memory, first, _key(), agent.k)

    found = jax.eval_shape(remembered, whole, _shape((_B,), bool))
    _same(rule, "its memory", found, whole)
    described = jax.eval_shape(lambda q: rules.greedy(q), beliefs.q_heads)
    if rule.follows_actor:
        decision = described
        _try_following(agent, cast(ActorRule, rule), features)
    else:
        decision = jax.eval_shape(
            lambda said, memory: rule(said, RuleContext(jnp.int32(0), memory, _key())),
            beliefs, whole,
        )  # fmt: skip
    if not isinstance(decision, Decision):
        raise IdrlError(
            f"{_named(rule)} answers with {type(decision).__name__}, not with a Decision; "
            "idrl.rules.chosen and idrl.rules.drawn make one."
        )
    for name, wanted in described._asdict().items():
        _same(rule, f"its decision's {name}", getattr(decision, name), wanted)

    def after(decision, beliefs, memory):
        context = RuleContext(jnp.int32(0), memory, _key())
        return rule.keep(decision, context), rule.metrics(decision, beliefs, context)

    kept, metrics = jax.eval_shape(after, decision, beliefs, whole)
    _same(rule, "the memory that it keeps", kept, whole)
    return list(metrics)


def _try_following(agent: Agent, rule: ActorRule, features: Any) -> None:
    spec, box = agent.spec, agent.actions
    assert spec.actor is not None
    assert isinstance(box, Box)
    actor = as_actor(spec.heads[spec.actor])
    module = actor.module(box.dims)
    weights = jax.eval_shape(module.init, _key(), features)
    point = _shape((_B, box.dims))

    def act(weights, features, kept, first):
        out = module.apply(weights, features)
        return rule.act(Acting(actor, out, kept, first, _key()))

    found = jax.eval_shape(act, weights, features, point, _shape((_B,), bool))
    _same(rule, "its action and what it keeps", found, (point, point))


def _batch(agent: Agent) -> Any:
    number, obs = _shape((_B,)), _shape((_B, *agent.obs_shape))
    returns = (number, number) if agent.measures else None
    return Transition(obs, _shape((_B,), jnp.int32), number, number, obs, returns=returns)


def _same(part: Part, what: str, found: Any, wanted: Any) -> None:
    """Refuse shapes other than those `wanted`; an axis of None may be anything."""
    found = found if isinstance(found, tuple) else (found,)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    if len(found) != len(wanted):
        raise IdrlError(f"{_named(part)}: {what} has {len(found)} parts, not {len(wanted)}.")
    for one, like in zip(found, wanted, strict=True):
        shape: Any = getattr(one, "shape", None)
        fits = shape is not None and len(shape) == len(like.shape)
        if not fits or any(b not in (a, None) for a, b in zip(shape, like.shape, strict=True)):
            wish = ", ".join("any" if n is None else str(n) for n in like.shape)
            told = "no array" if shape is None else f"of shape {list(shape)}"
            raise IdrlError(
                f"{_named(part)}: {what} is {told} for {_B} states; it must be of shape [{wish}]."
            )
        whole = jnp.issubdtype(like.dtype, jnp.integer)
        if whole and not jnp.issubdtype(one.dtype, jnp.integer):
            raise IdrlError(f"{_named(part)}: {what} is {one.dtype}; it must be whole numbers.")


@contextlib.contextmanager
def _blamed(part: Part) -> Iterator[None]:
    """Whatever goes wrong in a part's code is a sentence about it."""
    try:
        yield
    except IdrlError:
        raise
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
        raise IdrlError(
            f"{_named(part)} asks for the value of an array while it is compiled, as a Python `if` "
            "or NumPy does; use jnp.where and jax.numpy."
        ) from None
    except Exception as error:
        raise IdrlError(f"{_named(part)} failed: {in_a_line(error)}.") from error


def _named(part: Part) -> str:
    return f"the {part.category} {part.kind!r}"


def _key() -> jax.Array:
    return jax.random.key(0)


def _shape(shape: tuple[int | None, ...], dtype: Any = jnp.float32) -> Any:
    if None in shape:
        return _Like(shape, dtype)
    return jax.ShapeDtypeStruct(cast(tuple[int, ...], shape), dtype)


class _Like:
    """A shape of which not everything is known."""

    def __init__(self, shape: tuple[int | None, ...], dtype: Any):
        self.shape, self.dtype = shape, dtype

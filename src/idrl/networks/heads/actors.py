"""Actors: features → an action of the unit box, for environments with continuous actions.

An actor climbs what the critics say of its actions and proposes the candidates that rules compare.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from idrl.networks.heads.base import Head, Transition, head, require
from idrl.networks.layers import Dense
from idrl.networks.trunks import Init, check_hidden


@dataclass(frozen=True)
class Candidates:
    """The actions that a rule compares: the actor's, the one taken before, `perturbed` of the
    actor's with Gaussian noise (shared out among `scales`, in halves of the box), and `uniform`
    anywhere in the box. `refine` rounds of the cross-entropy method on the information ratio add
    `perturbed` each, around the best eighth so far."""

    perturbed: int = 32  # near the actor's action
    scales: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0)  # of that noise, in halves of the box
    uniform: int = 30  # anywhere in the box
    refine: int = 0  # rounds of the cross-entropy method, `perturbed` more in each

    def check(self, where: str) -> None:
        for name in ("perturbed", "uniform", "refine"):
            value = getattr(self, name)
            require(value >= 0, f"{where}.{name} is {value}; it must be at least 0.")
        require(
            len(self.scales) > 0 and all(scale > 0 for scale in self.scales),
            f"{where}.scales is {list(self.scales)}; it must be one positive number or several.",
        )

    def propose(self, key: jax.Array, actor: jax.Array, before: jax.Array) -> jax.Array:
        """`[E, A, D]` for the actor's actions and those before, `[E, D]` each."""
        near_key, far_key = jax.random.split(key)
        envs, dims = actor.shape
        scale = jnp.array([self.scales[i % len(self.scales)] for i in range(self.perturbed)])
        noise = scale[:, None] * jax.random.normal(near_key, (envs, self.perturbed, dims))
        far = jax.random.uniform(far_key, (envs, self.uniform, dims), minval=-1, maxval=1)
        near = jnp.clip(actor[:, None] + noise, -1, 1)
        return jnp.concatenate([actor[:, None], before[:, None], near, far], 1)

    def around_best(self, key: jax.Array, actions: jax.Array, ratio: jax.Array) -> jax.Array:
        """`[E, perturbed, D]` more, drawn from a Gaussian fitted to those of the smallest ratio."""
        elite = max(2, actions.shape[1] // 8)
        order = jnp.argsort(ratio, axis=1)[:, :elite, None]
        best = jnp.take_along_axis(actions, order, 1)
        spread = best.std(1, keepdims=True) + 0.01  # a set of one point would stay one
        noise = jax.random.normal(key, (len(actions), self.perturbed, actions.shape[-1]))
        return jnp.clip(best.mean(1, keepdims=True) + spread * noise, -1, 1)


class _Layers(nn.Module):
    hidden: tuple[int, ...]
    outputs: int
    scheme: str

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for width in self.hidden:
            x = nn.relu(Dense(width, self.scheme)(x))
        return Dense(self.outputs, self.scheme)(x)


@dataclass(frozen=True, kw_only=True)
class ActorHead(Head):
    """A head that proposes an action for each state, and climbs the critics."""

    hidden: tuple[int, ...] = (256, 256)  # widths of the hidden layers
    init: Init = "torch"  # how weights start
    delay: int = 1  # updates of the critics for one of the actor
    # what it climbs: the mean of the critics, the first (TD3), or the least (SAC)
    climbs: Literal["mean", "first", "least"] = "mean"
    candidates: Candidates = field(default_factory=Candidates)  # the actions that a rule compares
    # what critics bootstrap on: each on its own target, or all on the least
    targets: Literal["own", "least"] = "own"

    def check(self, where: str) -> None:
        """Refuse settings that cannot work; `where` is what they are called in a config."""
        check_hidden(where, self.hidden)
        require(self.delay >= 1, f"{where}.delay is {self.delay}; it must be at least 1.")

    @abstractmethod
    def module(self, dims: int) -> nn.Module:
        """The network: features `[B, F]` → `out`."""

    @abstractmethod
    def mean(self, out: Any) -> jax.Array:
        """The action `[B, D]` in the unit box that it takes without exploring."""

    @abstractmethod
    def next_action(self, out: Any, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The action `[B, D]` that targets are computed with, and the value of its entropy, `[B]`;
        `out` is that of its target network if it has one (`has_target`)."""

    @abstractmethod
    def tried(self, out: Any, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The action `[B, D]` whose value it climbs, and the logarithm of its density, `[B]`."""

    @abstractmethod
    def policy_loss(self, out: Any, value: jax.Array, log_prob: jax.Array) -> jax.Array:
        """The loss of the actor; `value` `[B]` is the critics' value of the action it `tried`."""

    def draw(self, out: Any, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Actions `[B, D]` and the logarithm of their density `[B]`, where `has_density`."""
        raise NotImplementedError

    @property
    def has_density(self) -> bool:
        """Whether it is a distribution over actions."""
        return False

    @property
    def has_target(self) -> bool:
        """Whether targets are computed with its target network."""
        return True

    def climbed(self, q_heads: jax.Array) -> jax.Array:
        """`[B]` of critics `[B, K]`."""
        return {
            "mean": lambda: q_heads.mean(-1),
            "first": lambda: q_heads[:, 0],
            "least": lambda: q_heads.min(-1),
        }[self.climbs]()

    def target_values(
        self, q_t: jax.Array, unit_t: jax.Array, ask: Callable[[jax.Array], jax.Array],
        key: jax.Array,
    ) -> jax.Array:  # fmt: skip
        """What each critic bootstraps on, `[B, K, 1]`, where they say `q_t` of `unit_t` `[B, D]`;
        `ask` tells what they say of more actions: `[B, A, D]` → `[B, A, K, 1]`."""
        if self.targets == "least":
            return jnp.broadcast_to(q_t.min(1, keepdims=True), q_t.shape)
        return q_t

    # -- it is no Q-function --------------------------------------------------------------------

    @property
    def is_actor(self) -> bool:
        return True

    @property
    def members(self) -> int:
        return 0

    @property
    def trunk_share(self) -> float:
        """The trunk is the critics'."""
        return 0.0

    def q_heads(self, out: Any) -> jax.Array:
        raise TypeError("an actor has no values")

    def loss(self, out_tm1: Any, online_t: Any, target_t: Any, batch: Transition) -> jax.Array:
        raise TypeError("an actor learns by its policy_loss")


@head("actor")
@dataclass(frozen=True, kw_only=True)
class Actor(ActorHead):
    """One action for each state (Lillicrap et al. 2016).

    `restraint` keeps the input of tanh small: far out tanh is flat, and an actor has no gradient to
    come back by.

    With `targets="least"` all critics bootstrap on the smallest of them (clipped double Q-learning,
    Fujimoto et al. 2018). With `"best"` each bootstraps on the action that its own target prefers,
    of the actor's and `ahead` others (half near, half far), as each head does with discrete
    actions: what one critic hopes for later reaches its value here, although the actor climbs the
    mean of the critics and would not go there.
    """

    # what critics bootstrap on: their own target, the least, or each on its best action
    targets: Literal["own", "least", "best"] = "own"  # type: ignore[assignment]
    ahead: int = 16  # actions compared for `targets=best`, besides the actor's
    smoothing: float = 0.0  # noise on the action of the target, in halves of the box (TD3: 0.2)
    smoothing_clip: float = 0.5  # where that noise is cut (TD3: 0.5)
    restraint: float = 0.0  # price of the squares of what goes into tanh

    def check(self, where: str) -> None:
        super().check(where)
        for name in ("smoothing", "smoothing_clip", "restraint", "ahead"):
            value = getattr(self, name)
            require(value >= 0, f"{where}.{name} is {value}; it must be at least 0.")

    def module(self, dims: int) -> nn.Module:
        return _Layers(self.hidden, dims, self.init)

    def mean(self, out: jax.Array) -> jax.Array:
        return jnp.tanh(out)

    def next_action(self, out: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.smoothed(out, key), jnp.zeros(len(out))

    def tried(self, out: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.mean(out), jnp.zeros(len(out))

    def policy_loss(self, out, value: jax.Array, log_prob: jax.Array) -> jax.Array:
        return self.restraint * (out**2).mean() - value.mean()

    def target_values(self, q_t, unit_t, ask, key) -> jax.Array:
        if self.targets == "best":
            return ask(self.looked_at(unit_t, key)).max(1)
        return super().target_values(q_t, unit_t, ask, key)

    def smoothed(self, out: jax.Array, key: jax.Array) -> jax.Array:
        """The action of a target."""
        action = jnp.tanh(out)
        if not self.smoothing:
            return action
        noise = self.smoothing * jax.random.normal(key, action.shape)
        limit = self.smoothing_clip
        return jnp.clip(action + jnp.clip(noise, -limit, limit), -1, 1)

    def looked_at(self, unit: jax.Array, key: jax.Array) -> jax.Array:
        """`[B, 1 + ahead, D]`: among which a critic's target looks for its best."""
        near = self.ahead // 2
        some = replace(self.candidates, perturbed=near, uniform=self.ahead - near)
        return some.propose(key, unit, unit)[:, 1:]  # the actor's is there once


class GaussianParams(NamedTuple):
    """A Gaussian before tanh, `[B, D]`, and the logarithm of the temperature."""

    mean: jax.Array
    log_std: jax.Array
    log_alpha: jax.Array


class _Gaussian(nn.Module):
    hidden: tuple[int, ...]
    dims: int
    scheme: str
    log_alpha: float

    @nn.compact
    def __call__(self, x: jax.Array) -> GaussianParams:
        both = _Layers(self.hidden, 2 * self.dims, self.scheme)(x)
        mean, log_std = jnp.split(both, 2, -1)
        log_alpha = self.param("log_alpha", nn.initializers.constant(self.log_alpha), ())
        return GaussianParams(mean, jnp.clip(log_std, -20, 2), log_alpha)


@head("gaussian_actor")
@dataclass(frozen=True, kw_only=True)
class GaussianActor(ActorHead):
    """A distribution over actions that is rewarded for its entropy (SAC, Haarnoja et al. 2018).

    The temperature is learned so that the entropy is `entropy` nats for each number of an action.
    """

    # what it climbs: the mean of the critics, the first, or the least
    climbs: Literal["mean", "first", "least"] = "least"
    targets: Literal["own", "least"] = "least"  # what critics bootstrap on
    entropy: float = -1.0  # wanted entropy in nats, for each number of an action

    def module(self, dims: int) -> nn.Module:
        return _Gaussian(self.hidden, dims, self.init, 0.0)

    @property
    def has_density(self) -> bool:
        return True

    @property
    def has_target(self) -> bool:
        return False

    def mean(self, out: GaussianParams) -> jax.Array:
        return jnp.tanh(out.mean)

    def next_action(self, out: GaussianParams, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        unit, log_prob = self.draw(out, key)
        return unit, -jnp.exp(out.log_alpha) * log_prob

    def tried(self, out: GaussianParams, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.draw(out, key)

    def policy_loss(self, out: GaussianParams, value, log_prob) -> jax.Array:
        """With its entropy, and the temperature's own loss beside it."""
        alpha = jax.lax.stop_gradient(jnp.exp(out.log_alpha))
        wanted = self.entropy * out.mean.shape[-1]
        surplus = jax.lax.stop_gradient(log_prob + wanted)  # of order, short of disorder
        return (alpha * log_prob - value).mean() - (out.log_alpha * surplus).mean()

    def metrics(self, params: Any, out: Any, batch: Transition) -> dict[str, jax.Array]:
        return {"temperature": jnp.exp(params["params"]["log_alpha"])}

    def draw(self, out: GaussianParams, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Actions `[B, D]` and the logarithm of their density `[B]` in the unit box."""
        noise = jax.random.normal(key, out.mean.shape)
        before = out.mean + jnp.exp(out.log_std) * noise
        gaussian = -0.5 * noise**2 - out.log_std - 0.5 * jnp.log(2 * jnp.pi)
        # log(1 - tanh²), in a form that does not underflow
        slope = 2 * (jnp.log(2.0) - before - jax.nn.softplus(-2 * before))
        return jnp.tanh(before), (gaussian - slope).sum(-1)

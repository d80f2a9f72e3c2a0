"""What all heads share: the batch they learn from, and the settings of their networks."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from idrl import losses
from idrl.errors import IdrlError
from idrl.networks.layers import Mlps
from idrl.networks.trunks import Init, check_hidden
from idrl.schema import Part


class Transition(NamedTuple):
    """A batch of steps."""

    s_tm1: jax.Array  # observations before the step, `[B, ...]`
    a_tm1: jax.Array  # actions, `[B]`, or `[B, D]` where they are continuous
    r_t: jax.Array  # rewards, `[B]`
    discount_t: jax.Array  # γ, γⁿ over n steps, and 0 where the episode terminated, `[B]`
    s_t: jax.Array  # observations after the step, `[B, ...]`
    mask: jax.Array | None = None  # which members may learn from it, `[B, K]`
    weight: jax.Array | None = None  # importance weights of prioritised replay, `[B]`
    where: jax.Array | None = None  # places in the tree of priorities, `[B]`
    allowed_t: jax.Array | None = None  # actions that `s_t` allows, `[B, A]`; None: all
    returns: tuple[jax.Array, jax.Array] | None = None  # the lowest and highest possible, `[B]`

    def choosable(self, values_t: jax.Array) -> jax.Array:
        """The values by which the next action in `s_t` is chosen, `[B, ..., A]`: -inf for actions
        that are not allowed there, whose values are never corrected."""
        if self.allowed_t is None:
            return values_t
        between = [1] * (values_t.ndim - 2)
        allowed = self.allowed_t.reshape(len(values_t), *between, -1)
        return jnp.where(allowed, values_t, -jnp.inf)

    def possible(self, values_t: jax.Array) -> jax.Array:
        """Returns from `s_t` on, `[B, ...]`, none beyond what is possible: a value that nothing
        corrects would raise those that are learned from it, and these it in turn."""
        if self.returns is None:
            return values_t
        low, high = (x.reshape(*x.shape, *[1] * (values_t.ndim - x.ndim)) for x in self.returns)
        return jnp.clip(values_t, low, high)


class Head(Part, category="head"):
    """What an agent believes of each action, and how that is learned. Its fields are its settings.

    The output of its network, `out`, may have any form; `q_heads` translates it for rules. With
    continuous actions a head is built for one action, which is part of its input.
    """

    @abstractmethod
    def module(self, num_actions: int) -> nn.Module:
        """The network: features `[B, F]`, and whether the agent is acting, → `out`. The random
        streams "noise" and "tau" are available to heads that draw."""

    @abstractmethod
    def q_heads(self, out: Any) -> jax.Array:
        """Its Q-functions, `[B, members, A]`."""

    @abstractmethod
    def loss(self, out_tm1: Any, online_t: Any, target_t: Any, batch: Transition) -> jax.Array:
        """`[B]`, from the output for `batch.s_tm1`, and for `batch.s_t` by the online and the
        target network. Call `batch.choosable` before a maximum over the actions of `s_t`."""

    def td_priority(self, out_tm1, online_t, target_t, batch: Transition) -> jax.Array:
        """What prioritised replay uses, `[B]`, at least 0; by default the mean over its Q-functions
        of absolute TD errors. A loss may fall below 0, as that of a density does."""
        q_tm1, q_t = self.q_heads(out_tm1), self.q_heads(target_t)
        over_members = jax.vmap(losses.q_learning_error, (0, None, None, None, 0, 0))
        errors = jax.vmap(over_members)(
            q_tm1, batch.a_tm1, batch.r_t, batch.discount_t, q_t, batch.choosable(q_t)
        )
        return jnp.abs(errors).mean(-1)

    def metrics(self, params: Any, out: Any, batch: Transition) -> dict[str, jax.Array]:
        """Additional metrics of a run by name; each is averaged. `params` are its weights, `out`
        its output for `batch.s_tm1` (None for an actor)."""
        return {}

    # -- what it is to others -------------------------------------------------------------------

    @property
    def is_actor(self) -> bool:
        """Whether it proposes continuous actions instead of judging them (`ActorHead`)."""
        return False

    @property
    def members(self) -> int:
        """How many Q-functions a rule may compare."""
        return 1

    @property
    def is_ensemble(self) -> bool:
        """Whether it is made for rules that compare members; an agent has one such head at most."""
        return self.members > 1

    @property
    def says_q(self) -> bool:
        """Whether `out` is `q_heads(out)`: then something may be added to it."""
        return False

    @property
    def trunk_share(self) -> float:
        """The share of its gradient that enters the trunk."""
        return 1.0

    @property
    def mask_prob(self) -> float:
        """The probability that a member sees a transition (`Transition.mask`); 1: no masks."""
        return 1.0

    @property
    def prior_scale(self) -> float:
        """Standard deviation over its members, in units of Q, of fixed random functions that are
        added to its output; needs `says_q`."""
        return 0.0

    @property
    def is_noisy(self) -> bool:
        """Whether its weights are drawn anew whenever its agent acts to explore (NoisyNet)."""
        return False

    @property
    def passes(self) -> int:
        """Passes through its network for one observation."""
        return 1

    def check_critic(self, where: str) -> None:
        """Refuse settings that do not work with continuous actions, seen one at a time."""

    # -- where an agent finds its own units (`Learning.unit`) -----------------------------------

    @property
    def measured_by(self) -> Literal["reward", "return"] | None:
        """What its unit is the size of: typical rewards, or the largest return. None: its unit is
        that of the task, always."""
        return None

    @property
    def priority_in_units(self) -> bool:
        """Whether `td_priority` is an error in the head's unit, and so smaller in a larger one."""
        return True

    def rescaled(self, params: Any, factor: jax.Array) -> Any:
        """`params` of the module with all that it says multiplied by `factor`, a power of two."""
        return params

    def at_ends(self, out: Any) -> jax.Array | None:
        """The share of its distributions that lies at an end of what they can say, `[B, A]`: where
        it is much the range is too small. None: there is no such end."""
        return None

    # -- where it learns the distribution of the return -----------------------------------------

    @property
    def knows_variance(self) -> bool:
        """Whether it learns the variance of the return; then it has `return_variance`."""
        return False

    def return_variance(self, out: Any) -> jax.Array | None:
        """The variance of the return, `[B, A]`."""
        return None

    def return_draw(self, out: Any, key: jax.Array) -> jax.Array:
        """`[B, A]`: one return of each action, drawn from its distribution; by default a normal one
        with its mean and variance."""
        mean, variance = self.q_heads(out)[..., 0, :], self.return_variance(out)
        assert variance is not None
        return mean + jnp.sqrt(variance) * jax.random.normal(key, mean.shape)

    def distribution(self, out: Any) -> tuple[jax.Array, jax.Array] | None:
        """Values of the return and their weights, `[B, A, N]` each, for figures."""
        return None

    # -- where it is fitted besides, whenever the target is renewed -----------------------------

    @property
    def fit_batch(self) -> int:
        """How many transitions `refit` sees; 0: it has no fit."""
        return 0

    def evidence(self, out_tm1: Any, online_t: Any, target_t: Any, batch: Transition) -> Any:
        """What a fit needs of a batch, as a pytree; batches add up."""
        raise NotImplementedError

    def refit(self, params: Any, evidence: Any, scale: Any, key: jax.Array) -> Any:
        """`params` of the module, fitted; each transition of the evidence counts as `scale` of
        one."""
        raise NotImplementedError


head = Head.register


@dataclass(frozen=True, kw_only=True)
class MlpHead(Head):
    """A head of dense layers."""

    hidden: tuple[int, ...] = (512,)  # widths of the hidden layers
    dueling: bool = False  # value and advantage streams (Wang et al. 2016)
    noisy: float = 0.0  # σ₀ of NoisyNet's weights (0: none; 0.5 in Fortunato et al. 2018)
    trunk_gradient: float = 1.0  # share of the head's gradient that enters the trunk
    init: Init = "lecun_normal"  # how weights start

    def check(self, where: str) -> None:
        """Refuse settings that cannot work; `where` is what they are called in a config."""
        require(
            self.trunk_gradient >= 0,
            f"{where}.trunk_gradient is {self.trunk_gradient}; a share of a gradient is ≥ 0.",
        )
        require(self.noisy >= 0, f"{where}.noisy is {self.noisy}; a spread of weights is ≥ 0.")
        check_hidden(where, self.hidden)

    @property
    def compared(self) -> dict[str, bool]:
        """Settings that compare the actions of a state, and whether they are on."""
        return {"dueling": self.dueling}

    def check_critic(self, where: str) -> None:
        for setting, on in self.compared.items():
            require(
                not on,
                f"{where}.{setting}=true compares the actions of a state, and a critic sees one "
                f"at a time; set {where}.{setting}=false.",
            )
        require(
            not self.noisy,
            f"{where}.noisy={self.noisy}: noisy weights are for discrete actions; set "
            f"{where}.noisy=0.",
        )

    @property
    def trunk_share(self) -> float:
        return self.trunk_gradient

    @property
    def is_noisy(self) -> bool:
        return self.noisy > 0

    def mlps(self, k: int, num_actions: int, per_action: int) -> nn.Module:
        """K networks with `per_action` outputs for each action."""
        dueling = per_action if self.dueling else 0
        return Mlps(k, self.hidden, num_actions * per_action, self.init, dueling, self.noisy)


@dataclass(frozen=True, kw_only=True)
class ReturnHead(MlpHead):
    """A head that learns the distribution of the return."""

    double: bool = False  # the online network chooses the next action
    trunk_gradient: float = 0.0  # share of its gradient that enters the trunk; the paper's is 0

    @property
    def compared(self) -> dict[str, bool]:
        return {"double": self.double, "dueling": self.dueling}

    @property
    def knows_variance(self) -> bool:
        return True

    def td_priority(self, out_tm1, online_t, target_t, batch: Transition) -> jax.Array:
        """The loss itself, which tells distributions of the same mean apart."""
        return self.loss(out_tm1, online_t, target_t, batch)


@dataclass(frozen=True, kw_only=True)
class QHeads(MlpHead):
    """K Q-functions that a rule may compare, learned from TD errors."""

    k: int = 10  # how many heads (Table 2 of the paper)
    double: bool = True  # double Q-learning, each head for itself
    error: Literal["huber", "squared"] = "huber"  # loss of a TD error

    def check(self, where: str) -> None:
        super().check(where)
        require(self.k >= 1, f"{where}.k is {self.k}; an ensemble has at least 1 head.")

    @property
    def compared(self) -> dict[str, bool]:
        return {"double": self.double, "dueling": self.dueling}

    @property
    def members(self) -> int:
        return self.k

    @property
    def is_ensemble(self) -> bool:
        return True


def equally(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Quantiles as a distribution: all of the same weight."""
    return values, jnp.full(values.shape, 1 / values.shape[-1])


def require(holds: bool, sentence: str) -> None:
    if not holds:
        raise IdrlError(sentence)

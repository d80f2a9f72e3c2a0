"""The other exploration rules, in the shape of `ids`: `[..., K, A]` heads in, a `Decision` out.

Each says with `ids` what its action may cost and teach, so that agents can be compared state by
state; under `jit` whatever is not used is never computed.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from idrl import ids
from idrl.errors import IdrlError
from idrl.ids import Decision
from idrl.system.arguments import check_heads


def greedy(q_heads: jax.Array, **described) -> Decision:
    """The action with the largest mean over the heads. More keywords (`return_variance`, `lam`, …)
    go to `ids.decide`, which describes the decision.

    Args:
        q_heads: the Q-values of K heads, `[..., K, A]`.
    """
    check_heads(q_heads, described.get("mask"))
    return chosen(q_heads, _finite(q_heads.mean(-2)), **described)


def ucb(q_heads: jax.Array, *, lam: float = 0.1, **described) -> Decision:
    """The action with the largest mean plus λ standard deviations (Chen et al. 2017). More keywords
    (`return_variance`, `lam`, …) go to `ids.decide`, which describes the decision.

    Args:
        q_heads: the Q-values of K heads, `[..., K, A]`.
        lam: λ, the width of the confidence interval in standard deviations.
    """
    check_heads(q_heads, described.get("mask"))
    mu, sigma2 = ids.moments(q_heads)
    return chosen(q_heads, _finite(mu + lam * jnp.sqrt(sigma2)), lam=lam, **described)


def thompson(q_heads: jax.Array, head: jax.Array, **described) -> Decision:
    """The greedy action of one head. More keywords (`return_variance`, `lam`, …) go to
    `ids.decide`, which describes the decision.

    Args:
        q_heads: the Q-values of K heads, `[..., K, A]`.
        head: which head, `[...]`: the one drawn for the episode.
    """
    check_heads(q_heads, described.get("mask"))
    if jnp.shape(head) != q_heads.shape[:-2]:
        raise IdrlError(
            f"head has shape {jnp.shape(head)}; with q_heads of shape {q_heads.shape} it is "
            f"{q_heads.shape[:-2]}, the number of a head for each state."
        )
    one = jnp.take_along_axis(q_heads, head[..., None, None], -2)[..., 0, :]
    return chosen(q_heads, _finite(one), **described)


def given(q_heads: jax.Array, action: int, **described) -> Decision:
    """An action that was chosen by something else. More keywords (`return_variance`, `lam`, …) go
    to `ids.decide`, which describes the decision.

    Args:
        q_heads: the Q-values of K heads, `[..., K, A]`.
        action: its index.
    """
    check_heads(q_heads, described.get("mask"))
    score = jnp.where(jnp.arange(q_heads.shape[-1]) == action, 0.0, -jnp.inf)
    mu = q_heads.mean(-2)
    return chosen(q_heads, jnp.broadcast_to(score, mu.shape), **described)


def vote(q_heads: jax.Array, *, mask=None, **described) -> Decision:
    """The action most heads are greedy on; ties go to the larger mean, then the lower index. More
    keywords (`return_variance`, `lam`, …) go to `ids.decide`, which describes the decision.

    Args:
        q_heads: the Q-values of K heads, `[..., K, A]`.
        mask: true where an action is allowed, `[..., A]`; by default everywhere.
    """
    check_heads(q_heads, mask)
    mu = _finite(q_heads.mean(-2))
    if mask is not None:
        mu = jnp.where(mask, mu, -jnp.inf)
    # Heads vote among what is allowed and a number for all of them.
    stands = jnp.isfinite(mu)
    best = jnp.where(stands[..., None, :], q_heads, -jnp.inf).argmax(-1)
    votes = jax.nn.one_hot(best, q_heads.shape[-1]).sum(-2)
    # A bounded, strictly increasing function of the rank breaks ties without touching the count.
    rank = (mu[..., :, None] > mu[..., None, :]).sum(-1) / (mu.shape[-1] + 1)
    return chosen(q_heads, jnp.where(stands, votes + rank, -jnp.inf), mask=mask, **described)


def epsilon_greedy(
    q_heads: jax.Array, key: jax.Array, epsilon: float | jax.Array, *, mask=None, **described
) -> Decision:
    """Greedy on the mean of the heads, but with probability ε a random action. More keywords
    (`return_variance`, `lam`, …) go to `ids.decide`, which describes the decision.

    Args:
        q_heads: the Q-values of K heads, `[..., K, A]`.
        key: a JAX random key.
        epsilon: the probability of a random action.
        mask: true where an action is allowed, `[..., A]`; by default everywhere.
    """
    return at_random(greedy(q_heads, mask=mask, **described), key, epsilon, mask=mask)


def at_random(
    decision: Decision, key: jax.Array, epsilon: float | jax.Array, *, mask=None
) -> Decision:
    """A decision, replaced with probability ε by a random one of the allowed actions.

    Args:
        decision: the decision.
        key: a JAX random key.
        epsilon: the probability of a random action.
        mask: true where an action is allowed, `[..., A]`; by default everywhere.
    """
    shape, actions = decision.action.shape, decision.mu.shape[-1]
    coin_key, pick_key = jax.random.split(key)
    allowed = (
        jnp.ones((*shape, actions)) if mask is None else jnp.broadcast_to(mask, (*shape, actions))
    )
    uniform = allowed / allowed.sum(-1, keepdims=True)
    if mask is None:
        random_action = jax.random.randint(pick_key, shape, 0, actions)
    else:
        random_action = jax.random.categorical(pick_key, jnp.log(uniform))
    coin = jax.random.uniform(coin_key, shape) < epsilon
    action = jnp.where(coin, random_action, decision.action).astype(jnp.int32)
    probs = (1 - epsilon) * decision.probs + epsilon * uniform
    return decision._replace(action=action, probs=probs)


def chosen(q_heads: jax.Array, score: jax.Array, *, mask=None, **described) -> Decision:
    """The action with the largest score: what a rule of your own returns.

    Where no score is left (-inf or masked) the action is -1 and every probability 0, as in `ids`.
    More keywords (`return_variance`, `lam`, …) go to `ids.decide`, which describes the decision.

    Args:
        q_heads: the Q-values of K heads, `[..., K, A]`.
        score: `[..., A]`.
        mask: true where an action is allowed, `[..., A]`; by default everywhere.
    """
    if mask is not None:
        score = jnp.where(mask, score, -jnp.inf)
    action = jnp.where((score > -jnp.inf).any(-1), score.argmax(-1), -1).astype(jnp.int32)
    probs = jax.nn.one_hot(action, score.shape[-1], dtype=q_heads.dtype)
    said = ids.decide(q_heads, mask=mask, **described)
    return said._replace(action=action, probs=probs)


def drawn(
    q_heads: jax.Array, logits: jax.Array, key: jax.Array, *, mask=None, **described
) -> Decision:
    """An action drawn with probabilities softmax(logits), of those allowed. More keywords
    (`return_variance`, `lam`, …) go to `ids.decide`, which describes the decision.

    Args:
        q_heads: the Q-values of K heads, `[..., K, A]`.
        logits: `[..., A]`.
        key: a JAX random key.
        mask: true where an action is allowed, `[..., A]`; by default everywhere.
    """
    if mask is not None:
        logits = jnp.where(mask, logits, -jnp.inf)
    said = chosen(q_heads, _finite(logits), mask=mask, **described)
    action = jax.random.categorical(key, logits).astype(jnp.int32)
    some = said.action >= 0  # else there is nothing to draw from
    probs = jnp.where(some[..., None], jax.nn.softmax(logits), said.probs)
    return said._replace(action=jnp.where(some, action, -1), probs=probs)


def _finite(values):
    """-inf for NaN and infinities: a number gone wrong must not win."""
    return jnp.where(jnp.isfinite(values), values, -jnp.inf)

"""Numbers that a run is watched by: those of every agent, and those of parts of one's own."""

from __future__ import annotations

import re
from collections.abc import Iterable

import jax
import jax.numpy as jnp

from idrl.actions import some_allowed
from idrl.errors import IdrlError

# Columns of a run's metrics that no part may call its own.
_TAKEN = (
    "seed", "steps", "episode_return", "cumulative_regret", "grad_norm", "q_max", "sigma_min",
    "sigma_max", "rho2_min", "rho2_max", "not_greedy", "unit", "return_low", "return_high",
)  # fmt: skip


def diagnostics(decision, allowed) -> dict[str, jax.Array]:
    """What the acting rule saw of the allowed actions, as one number a seed: the ranges people
    watch."""
    among = True if allowed is None else some_allowed(allowed)

    def least(x):
        return jnp.where(among, x, jnp.inf).min(-1).mean()

    def most(x):
        return jnp.where(among, x, -jnp.inf).max(-1).mean()

    greedy = jnp.where(among, decision.mu, -jnp.inf).argmax(-1)
    return {
        "q_max": most(decision.mu),
        "sigma_min": least(decision.sigma),
        "sigma_max": most(decision.sigma),
        "rho2_min": least(decision.rho2),
        "rho2_max": most(decision.rho2),
        "not_greedy": (greedy != decision.action).mean(dtype=jnp.float32),
    }


def averaged(metrics: dict[str, jax.Array]) -> dict[str, jax.Array]:
    """One number each; a single number, of any type, stays what it is."""
    return {name: jnp.mean(jnp.asarray(value, jnp.float32)) for name, value in metrics.items()}


def check_names(part: str, names: Iterable[str], others: Iterable[str]) -> None:
    """Refuse what `part` calls its metrics, where `others` are called so or a table cannot be."""
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name):
            raise IdrlError(f"{part} has a metric {name!r}; a name is letters, digits and _.")
        if name in _TAKEN or name.startswith(("loss_", "at_ends_")) or name in others:
            raise IdrlError(
                f"{part} has a metric {name!r}, which a run records already; choose another name."
            )

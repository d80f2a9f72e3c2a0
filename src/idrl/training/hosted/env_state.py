"""What passes between environments on the host and the agent on the device."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from idrl.training.hosted.fleet import Fleet, Journal


class Waiting(NamedTuple):
    """On the device, `[S, E, ...]`: a row that waits for what its actions led to, and memories.
    `obs` is what the agent saw: whole stacks, where the environments show single frames."""

    obs: jax.Array
    action: jax.Array
    heads: jax.Array | None
    memory: jax.Array
    allowed: jax.Array | None = None  # that obs allows


class HostEnvState(NamedTuple):
    """The environments of all seeds in a state: seed s has numbers s·E to s·E + E - 1."""

    waiting: Waiting
    fleet: Fleet
    journal: Journal


class Shown(NamedTuple):
    """What the environments show the device, `[S, E, ...]` each."""

    obs: Any
    # `[S, E, 4]`: first, and of the row that waits reward, terminated, valid
    facts: Any
    allowed: Any  # or None

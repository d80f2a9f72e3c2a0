"""Which devices a run uses."""

from __future__ import annotations

import os

import jax


def use_all_cores() -> None:
    """Make every CPU core a device of its own, so that seeds run side by side.

    Small networks leave all but one core idle otherwise. It only works before JAX is first used;
    later it changes nothing. Machines with an accelerator ignore it.
    """
    if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        cores = os.cpu_count() or 1
    try:
        if getattr(jax.config, "jax_num_cpu_devices", -1) == -1:
            jax.config.update("jax_num_cpu_devices", cores)
    except RuntimeError:  # JAX is initialised already
        pass

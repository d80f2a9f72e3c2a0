"""Which devices a run uses, and where compiled programs are kept."""

from __future__ import annotations

import os
from pathlib import Path

import jax


def prepare() -> None:
    """Settings of JAX that a run wants; those of the user's own come first."""
    _use_all_cores()
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "idrl" / "xla"
        jax.config.update("jax_compilation_cache_dir", str(cache))


def _use_all_cores() -> None:
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

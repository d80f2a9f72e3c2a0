"""Which devices a run uses, and where compiled programs are kept."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import jax

from idrl.errors import IdrlError

_AMPERE = 8
_DETERMINISTIC = "--xla_gpu_deterministic_ops"
# Of compiling a program. JAX keeps what took a second; a run has ten programs that take less.
_JAXS_OWN_S, _WORTH_KEEPING_S = 1.0, 0.05
_LEAST = "jax_persistent_cache_min_compile_time_secs"
# Numbers of glibc's malloc.h, and what they are set to.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEEPING = {_TRIM_THRESHOLD: 2**31 - 1, _MMAP_THRESHOLD: 2**30}


def prepare(deterministic: bool = False) -> None:
    """Settings of JAX that a run wants; those of the user's own come first. `deterministic`: a GPU
    is to make the same bits every time."""
    if deterministic:
        _same_bits()
    _use_all_cores()
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        cache = _cache()
        if cache is None:
            return
        jax.config.update("jax_compilation_cache_dir", str(cache))
        if getattr(jax.config, _LEAST) == _JAXS_OWN_S:
            jax.config.update(_LEAST, _WORTH_KEEPING_S)


def _cache() -> Path | None:
    """Where compiled programs are kept. None where that cannot be written: of each program JAX
    would say so."""
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "idrl" / "xla"
        cache.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return None
    return cache if os.access(cache, os.W_OK | os.X_OK) else None


def sharing(seeds: int, devices: int) -> int:
    """How many of so many devices share the seeds evenly."""
    return max(n for n in range(1, devices + 1) if seeds % n == 0)


def cores() -> int:
    """CPU cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def has_bfloat16() -> bool:
    """Whether this is a GPU with units for bfloat16: NVIDIA's have them from Ampere on."""
    if jax.default_backend() != "gpu":
        return False
    told = str(getattr(jax.local_devices()[0], "compute_capability", ""))  # such as "9.0"
    major = told.partition(".")[0]
    return major.isdecimal() and int(major) >= _AMPERE


def keep_memory() -> None:
    """Keep memory that is freed instead of handing it back; to be called before JAX is first used.

    XLA on a CPU asks anew for what a program works with at every call. Of 32 MB and more glibc
    takes every page from the system and gives it back, which was a third of an update's time at
    Atari's size. Beyond 64 MB it does so on every thread but the main one, whatever it is told, so
    programs have to run there. (A single arena for all threads would do as well, but those that
    compile then wait for each other: with sixteen cores it took twice as long.)
    """
    own = any(name.startswith("MALLOC_") for name in os.environ)
    if own or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "") or sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
        jax.config.update("jax_cpu_enable_async_dispatch", False)
    except AttributeError:  # not every Linux has glibc, nor need every JAX have this
        return
    for option, value in _KEEPING.items():
        mallopt(option, value)


def _same_bits() -> None:
    """Ask XLA for GPU code without races, and for no choice between kernels by their timing.

    XLA reads its flags once, when JAX is first used. A CPU makes the same bits anyway.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if _DETERMINISTIC in flags:
        return
    if _started() and jax.default_backend() != "cpu":
        raise IdrlError(
            "deterministic has to be set before JAX is first used in a process; start a new one, "
            f"or set XLA_FLAGS={_DETERMINISTIC}=true before."
        )
    os.environ["XLA_FLAGS"] = f"{flags} {_DETERMINISTIC}=true".strip()


def _started() -> bool:
    """Whether JAX has opened its devices: from then on their number cannot be changed."""
    now = getattr(jax.config, "jax_num_cpu_devices", -1)
    try:
        jax.config.update("jax_num_cpu_devices", max(now, 0) + 1)
        jax.config.update("jax_num_cpu_devices", now)
    except RuntimeError:
        return True
    return False


def _use_all_cores() -> None:
    """Make every CPU core a device of its own, so that seeds run side by side.

    Small networks leave all but one core idle otherwise. It only works before JAX is first used;
    later it changes nothing. Machines with an accelerator ignore it.
    """
    if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return
    if getattr(jax.config, "jax_num_cpu_devices", -1) == -1 and not _started():
        jax.config.update("jax_num_cpu_devices", cores())

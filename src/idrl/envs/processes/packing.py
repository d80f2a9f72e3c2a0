"""An environment as another process can make it, with what it may need of this one."""

from __future__ import annotations

import os
import pickle
import sys
import warnings

import cloudpickle

from idrl.envs.host import HostEnv
from idrl.errors import IdrlError, in_a_line
from idrl.system import plugins


def packed(env: HostEnv, count: int, timeout_s: float) -> bytes:
    try:
        inner = cloudpickle.dumps((env, count, timeout_s))
    except Exception as error:  # of a class of anyone's
        raise IdrlError(
            f"{env.name} cannot be made in another process, because something that it refers to "
            f"cannot be sent there ({in_a_line(error)}); set training.env_processes=1."
        ) from None
    return pickle.dumps((plugins.files(), _registered(), inner))


def unpacked(file: int) -> tuple[HostEnv, int, float]:
    """From a file that several processes read."""
    modules, specs, inner = pickle.loads(os.pread(file, os.fstat(file).st_size, 0))
    plugins.bring(modules)
    if specs:
        from gymnasium import registry

        # A module that registers its own when it is imported will find them there.
        warnings.filterwarnings("ignore", ".*already in registry")
        for spec in map(pickle.loads, specs):
            registry.setdefault(spec.id, spec)
    return pickle.loads(inner)


def _registered() -> list[bytes]:
    """What was registered with Gymnasium beside its own: here, not there."""
    gymnasium = sys.modules.get("gymnasium")
    found = []
    for spec in gymnasium.registry.values() if gymnasium is not None else ():
        if str(spec.entry_point).startswith("gymnasium."):
            continue
        try:
            found.append(cloudpickle.dumps(spec))
        except Exception:  # perhaps nobody needs it
            continue
    return found

"""Environments on the host in processes of their own.

Each process steps some of them, in as many cores as it is given. Actions and what they bring lie in
memory that all share; a byte through a socket says when. What the environments do depends on their
seeds and actions alone, so how many processes step them changes no bit of a run.
"""

from __future__ import annotations

from idrl.envs.host import HostEnv, Vector
from idrl.envs.processes.child import Lost
from idrl.envs.processes.vector import ProcessVector
from idrl.system.devices import cores

__all__ = ["Lost", "ProcessVector", "how_many", "make_vector"]


def how_many(env: HostEnv, count: int, processes: int) -> int:
    """Processes for `count` environments; 1 is this one. `processes`: `training.env_processes`."""
    return max(1, min(processes or env.processes(count, cores()), count))


def make_vector(env: HostEnv, count: int, timeout_s: float, processes: int) -> Vector:
    """`count` environments, in this process or in others, which make them meanwhile."""
    processes = how_many(env, count, processes)
    if processes == 1:
        return env.make(count, timeout_s)
    return ProcessVector(env, count, timeout_s, processes)

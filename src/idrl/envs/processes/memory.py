"""Memory that processes share: what environments are told, and what came of it."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from typing import Any

import numpy as np

from idrl.envs.host import HostEnv

_LINE = 64  # bytes: no two arrays share a line of a core's cache


class Shared:
    """Arrays of `count` environments, side by side in one file without a name."""

    def __init__(self, env: HostEnv, count: int, file: int | None = None):
        """`file`: that of another process; None makes one."""
        no = env.no_actions(count)
        flag = ((count,), np.dtype(bool))
        layout: dict[str, tuple[tuple[int, ...], np.dtype[Any]] | None] = {
            "action": (no.shape, no.dtype),
            "seed": ((count,), np.dtype(np.int64)),
            "obs": ((count, *env.shown_shape), np.dtype(env.obs_dtype)),
            "reward": ((count,), np.dtype(np.float32)),
            **dict.fromkeys(("terminated", "truncated", "reset", "life_lost"), flag),
            "tells_lives": flag,
            "allowed": None,
        }
        if env.allowed_like is not None:
            shape, dtype = env.allowed_like
            layout["allowed"] = (count, *shape), np.dtype(dtype)
        ends, end = {}, 0
        for name, like in layout.items():
            if like is not None:
                ends[name] = end
                end += -(-math.prod(like[0]) * like[1].itemsize // _LINE) * _LINE
        self.file = nameless() if file is None else file
        if file is None:
            os.truncate(self.file, end)
        self.map = mmap.mmap(self.file, end)
        self.arrays: dict[str, np.ndarray | None] = {
            name: like and np.ndarray(like[0], like[1], self.map, ends[name])
            for name, like in layout.items()
        }

    def __getitem__(self, name: str) -> np.ndarray:
        array = self.arrays[name]
        assert array is not None
        return array

    def part(self, name: str, where: slice) -> np.ndarray | None:
        """Of the environments `where`; None where there is no such array."""
        array = self.arrays[name]
        return None if array is None else array[where]

    def close(self) -> None:
        """Nobody may look at the arrays any more."""
        if self.arrays:
            self.arrays = {}
            self.map.close()
            os.close(self.file)


def nameless() -> int:
    """A file that is gone with the last process that has it open."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("idrl")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())

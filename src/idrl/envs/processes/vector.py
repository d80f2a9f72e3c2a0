"""The side of a run: hands processes their actions, and collects what came of them."""

from __future__ import annotations

import itertools
import math
import os
import pickle
import time
from collections.abc import Callable
from multiprocessing.connection import wait

import numpy as np

from idrl.envs.host import History, HostEnv, Seen, Vector
from idrl.envs.processes import messages
from idrl.envs.processes.child import Child
from idrl.envs.processes.memory import Shared, nameless
from idrl.envs.processes.packing import packed
from idrl.system.devices import cores

_TOLD_S = 0.5  # between two words on how far a replay is


class ProcessVector(Vector):
    """N environments, neighbours in the same process. They are made while the caller goes on."""

    elsewhere = True

    def __init__(self, env: HostEnv, count: int, timeout_s: float, processes: int):
        told = packed(env, count, timeout_s)
        self.memory, self.sent = Shared(env, count), False
        self.children: list[Child] = []
        ends = [count * i // processes for i in range(processes + 1)]
        share, file = max(1, round(cores() / processes)), nameless()
        try:
            with open(file, "wb", closefd=False) as out:
                out.write(told)
            for first, end in itertools.pairwise(ends):
                part = slice(first, end)
                self.children.append(Child(env.name, part, share, self.memory.file, file))
        except BaseException:
            self.close()
            raise
        finally:
            os.close(file)

    def send(self, action: np.ndarray, seed: np.ndarray) -> None:
        self._collect()  # whoever begins anew need not know what was under way
        self.memory["action"][:] = action
        self.memory["seed"][:] = seed
        for child in self.children:
            child.tell(messages.STEP)
        self.sent = True

    def recv(self) -> Seen:
        if not self.sent:
            raise RuntimeError("recv must follow send")
        self.sent = False
        self._collect()
        return self._seen()

    def replay(self, env: HostEnv, history: History, told: Callable[[int], None]) -> Seen:
        """Each process by itself, from its own earliest reset on: none waits for another."""
        self._collect()
        skipped = 0
        for child in self.children:
            since = history.since[child.part]
            first = int(since.min())
            own = History(
                history.seed[child.part], since - first, history.actions[first:, child.part]
            )
            skipped += first * len(since)
            child.replay(messages.REPLAY + pickle.dumps(own), math.prod(own.actions.shape[:2]))
        while busy := {end: child for child in self.children if child.busy for end in child.ends}:
            told(skipped + sum(child.replayed for child in self.children))
            for child in {busy[end] for end in wait(list(busy), _TOLD_S)}:  # type: ignore[index]
                child.listen()
        self._collect()
        told(len(history.actions) * len(history.seed))
        return self._seen()

    def close(self) -> None:
        for child in self.children:
            child.dismiss()
        now = time.monotonic()
        for child in self.children:
            child.end(now)
        self.children = []
        self.memory.close()

    def _collect(self) -> None:
        """Wait for all answers. The first error is raised, and the others are forgotten."""
        for child in self.children:
            while child.busy:
                child.listen()
        errors = [child.forget() for child in self.children]
        for error in filter(None, errors):
            raise error

    def _seen(self) -> Seen:
        """What is handed out stays as it is: a copy."""
        arrays = (self.memory.arrays[name] for name in Seen._fields)
        seen = Seen(*(None if x is None else x.copy() for x in arrays))  # type: ignore[arg-type]
        return seen if self.memory["tells_lives"].all() else seen._replace(life_lost=None)

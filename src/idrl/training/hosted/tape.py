"""Frames of a replay that is too large to be saved whole.

The host has seen every frame, so a tape is told each row as it goes to the device, and nothing is
fetched from there. A state is saved without the replay's frames and gets them back from the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

Tape = Callable[[int, np.ndarray], None]  # vector step, what N environments showed in it

_CHUNK_BYTES = 64 * 2**20  # that are laid on the device at once


class FrameTape:
    """The frames of one program's replay: told each row, left out of what is saved, put back."""

    def __init__(self, program: Any):
        """`program`: a `Learner` whose observations are stacks of single frames."""
        self.program = program
        self.tape: Tape | None = None  # where rows go, or None where nobody keeps them

    def record(self, t: int, shown: np.ndarray) -> None:
        if self.tape is not None:
            self.tape(t, shown)

    def without(self, state: Any) -> Any:
        """A state, or the shapes of one, without its frames."""
        return state._replace(replay=state.replay._replace(obs=None))

    def span(self, iteration: int) -> tuple[int, int, int]:
        """After `iteration` iterations: the oldest row in the replay, the first that is not in it
        yet, and the first that the tape was not told yet."""
        program = self.program
        told = program.cadence.warmup_vector_steps + iteration * program.cadence.vector_steps
        written = told - program.rows_behind
        return max(0, written - program.replay_rows), written, told

    @property
    def row(self) -> tuple[tuple[int, ...], Any]:
        """Shape and dtype of what the tape is told."""
        program = self.program
        obs = program.like().replay.obs
        return (program.seeds * program.envs, *obs.shape[3:]), obs.dtype

    def refill(self, state: Any, iteration: int, pieces: Iterable[tuple[int, np.ndarray]]) -> Any:
        """What was left out, from pieces: the number of the first row, and rows `[n, N, ...]`."""
        program = self.program
        like, seeds = program.like().replay.obs, PartitionSpec("seeds")
        if program.host is not None:
            obs = self._on_host(iteration, pieces)
            return state._replace(replay=state.replay._replace(obs=obs))
        rows, frame = program.replay_rows, like.shape[3:]
        where = None if program.mesh is None else NamedSharding(program.mesh, seeds)
        ring = jax.jit(lambda: jnp.zeros(like.shape, like.dtype), out_shardings=where)()
        oldest, written, _ = self.span(iteration)
        row_bytes = int(np.prod(like.shape[2:])) * program.seeds * like.dtype.itemsize
        length = max(1, min(rows, _CHUNK_BYTES // row_bytes))  # one for all: it is compiled for it

        def lay(ring, chunk, at):
            return ring.at[:, at].set(chunk, mode="drop")

        lay = jax.jit(
            program._over_devices(lay, (seeds, seeds, PartitionSpec()), seeds), donate_argnums=0
        )
        for first, piece in pieces:
            for start in range(0, len(piece), length):
                part = piece[start : start + length]
                number = first + start + np.arange(length)
                there = (number < first + len(piece)) & (number >= oldest) & (number < written)
                at = np.where(there, number % rows, rows).astype(np.int32)  # beyond it: dropped
                chunk = np.zeros((program.seeds, length, program.envs, *frame), like.dtype)
                by_seed = part.reshape(len(part), program.seeds, program.envs, *frame)
                chunk[:, : len(part)] = by_seed.swapaxes(0, 1)
                ring = lay(ring, chunk, at)
        return state._replace(replay=state.replay._replace(obs=ring))

    def _on_host(self, iteration: int, pieces: Iterable[tuple[int, np.ndarray]]) -> np.ndarray:
        """The same where the host keeps the replay's frames."""
        program, (oldest, written, _) = self.program, self.span(iteration)
        obs = program.host.empty()
        for first, piece in pieces:
            number = first + np.arange(len(piece))
            there = (number >= oldest) & (number < written)
            rows = piece[there].reshape(-1, *obs.shape[:1], *obs.shape[2:]).swapaxes(0, 1)
            obs[:, number[there] % program.replay_rows] = rows
        return obs

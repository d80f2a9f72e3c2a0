"""Programs compiled ahead of their first call, side by side.

XLA keeps one core busy for much of a compilation, and Python for all of tracing. So a run traces
its programs one after the other as soon as it knows their shapes, and threads compile them while it
traces the next; by the time that the first has run, the second is there.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from idrl.system.devices import cores


class Early:
    """A function under `jax.jit` that may be compiled before it is called."""

    def __init__(self, function: Any, **how: Any):
        self.jitted = jax.jit(function, **how)
        self._coming: Future[Any] | None = None

    def __call__(self, *args: Any) -> Any:
        if self._coming is not None:
            # JAX keeps what it compiled with what it lowered: the call below finds it there.
            self._coming.result()
            self._coming = None
        return self.jitted(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jitted, name)

    def ahead(self, pool: ThreadPoolExecutor, *args: Any) -> Any:
        """Compile for `args` (arrays, or their shapes) in a thread of `pool`; returns the shapes of
        what a call will return."""
        traced = self.jitted.trace(*args)
        self._coming = pool.submit(traced.lower().compile)
        return traced.out_info


def compilers() -> ThreadPoolExecutor:
    """Two programs at a time or more: what XLA does on one core of one, it does beside another."""
    return ThreadPoolExecutor(max(2, cores()), "compile")

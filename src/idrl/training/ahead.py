"""Programs compiled ahead of their first call, side by side.

Tracing keeps Python busy and much of a compilation one core alone. So a run traces its programs one
after the other as soon as it knows their shapes, and threads compile them while it traces the next
and while the first of them run.
"""

from __future__ import annotations

import functools
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from idrl.system.devices import cores


class Early:
    """A function under `jax.jit` that can be compiled before it is called."""

    def __init__(self, function: Any, **how: Any):
        self.jitted = jax.jit(function, **how)
        self.coming: Future[Any] | None = None

    def __call__(self, *args: Any) -> Any:
        if self.coming is not None:
            # JAX keeps what was compiled with what was lowered: the call below finds it there. What
            # no thread has begun is compiled by that call.
            if not self.coming.cancel():
                self.coming.result()
            self.coming = None
        return self.jitted(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jitted, name)


class Ahead:
    """The threads that compile for one program of a run."""

    def __init__(self) -> None:
        # Two at least: what XLA does on one core, it does beside another program's.
        self._pool = ThreadPoolExecutor(max(2, cores()), "compile")

    def compile(self, function: Early, *args: Any) -> Any:
        """For `args` (arrays, or their shapes); returns the shapes of what a call will return."""
        traced = function.jitted.trace(*args)
        function.coming = self._pool.submit(traced.lower().compile)
        return traced.out_info

    def that_is_all(self) -> None:
        """Threads end with what they were given."""
        self._pool.shutdown(wait=False)

    def close(self) -> None:
        """What is not begun is not needed any more; the rest cannot be stopped, and nobody waits
        for it but the end of the process."""
        self._pool.shutdown(wait=False, cancel_futures=True)


@functools.cache
def quick() -> dict[str, Any] | None:
    """Compiler options of what runs once or rarely: 10 s of compiling become 2."""
    if jax.default_backend() != "cpu":
        return None
    level = {"xla_backend_optimization_level": 1}
    # Fusions by way of MLIR, each a module of LLVM's own, take twice the time of all the rest.
    plain = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": cores()}
    try:
        jax.jit(lambda x: x, compiler_options=level | plain).lower(0.0).compile()
    except jax.errors.JaxRuntimeError:  # an XLA without these options
        return level
    return level | plain

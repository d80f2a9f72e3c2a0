"""JAX's random numbers on a CPU, written out instead of as a loop: the same bits, less to compile.

JAX lowers its hash for CPUs as a loop of five turns whose rotations are looked up. Around it XLA
makes some ten kernels of their own for every key that is folded or split; a block of the default
run compiles in three quarters of the time without.
"""

from __future__ import annotations

import jax

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def hashed(key1, key2, x1, x2) -> tuple[jax.Array, ...]:
    """Threefry-2x32 of 20 rounds (Salmon et al. 2011), of `uint32` that broadcast."""
    keys = (key1, key2, key1 ^ key2 ^ _PARITY)
    x1, x2 = x1 + keys[0], x2 + keys[1]
    for turn in range(5):
        for bits in _ROTATIONS[turn % 2]:
            x1 = x1 + x2
            x2 = x1 ^ (x2 << bits | x2 >> 32 - bits)
        x1, x2 = x1 + keys[(turn + 1) % 3], x2 + keys[(turn + 2) % 3] + (turn + 1)
    # As the end of a loop is one: what follows is compiled as it was, so it rounds as it did.
    return tuple(jax.lax.optimization_barrier((x1, x2)))


def write_out() -> None:
    """For whatever is compiled in this process from now on."""
    try:
        from jax.extend.random import threefry2x32_p
        from jax.interpreters import mlir

        rule = mlir.lower_fun(hashed, multiple_results=True)
        mlir.register_lowering(threefry2x32_p, rule, platform="cpu")
    except (ImportError, AttributeError):  # a JAX without them has its loop
        pass

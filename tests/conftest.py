"""Two CPU devices for every test process: seeds are sharded as they are on a real machine. Compiled
in a hurry: nearly all of the time is compiling, and level 1 takes a third off it."""

import os

# Before JAX is imported; processes that a test starts inherit it.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_backend_optimization_level=1"

import jax
import pytest

jax.config.update("jax_num_cpu_devices", 2)


def pytest_addoption(parser):
    parser.addoption("--cases", type=int, default=150, help="cases of each fuzzed test")
    parser.addoption("--forged", type=int, default=500, help="cases of forged files")
    parser.addoption("--forged-case", type=int, help="one of them, to look at it again")


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory):
    """Programs that are built anew find their machine code again: most of the time is compiling."""
    from jax.experimental.compilation_cache import compilation_cache

    new = {
        "jax_compilation_cache_dir": str(tmp_path_factory.mktemp("xla")),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
    }
    old = {name: getattr(jax.config, name) for name in new}
    for settings in (new, old):
        for name, value in settings.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        if settings is new:
            yield

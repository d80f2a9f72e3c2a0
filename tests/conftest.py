"""Two CPU devices for every test process: seeds are sharded as they are on a real machine. Nearly
all of the time is compiling, so it is done in a hurry, and what one process has compiled the others
find, now and in the next run."""

import os
from importlib.metadata import version
from pathlib import Path

# Before JAX is imported; processes that a test starts inherit it. Emitting every fusion by MLIR, a
# module of LLVM each, takes twice the time of all the rest. JAX 0.11 does nothing else, and ends a
# process that asks for it.
os.environ["XLA_FLAGS"] = " ".join(
    [
        os.environ.get("XLA_FLAGS", ""), "--xla_backend_optimization_level=1",
        "--xla_cpu_parallel_codegen_split_count=1",
        *["--xla_cpu_use_fusion_emitters=false"]
        * (tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)),
    ]
)  # fmt: skip
os.environ["JAX_COMPILATION_CACHE_DIR"] = os.environ.get(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "xla")
)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"

import jax
import tiers

jax.config.update("jax_num_cpu_devices", 2)

KEPT = 2**30  # bytes of compiled programs


def pytest_addoption(parser):
    tiers.add_option(parser)
    parser.addoption("--cases", type=int, default=150, help="cases of each fuzzed test")
    parser.addoption("--forged", type=int, default=500, help="cases of forged files")
    parser.addoption("--forged-case", type=int, help="one of them, to look at it again")


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(tiers.Clock(config))
        forget_the_oldest(Path(os.environ["JAX_COMPILATION_CACHE_DIR"]))


def pytest_ignore_collect(collection_path, config):
    return True if tiers.is_other(collection_path, config) else None


def pytest_collection_modifyitems(config, items):
    tiers.select(config, items)


def forget_the_oldest(folder: Path) -> None:
    """Programs of code that is long gone are never asked for again."""
    files = sorted(folder.glob("*"), key=lambda path: path.stat().st_mtime, reverse=True)
    total = 0
    for path in files:
        total += path.stat().st_size
        if total > KEPT:
            path.unlink(missing_ok=True)

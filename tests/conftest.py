"""Two CPU devices for every test process: seeds are sharded as they are on a real machine."""

import jax

jax.config.update("jax_num_cpu_devices", 2)


def pytest_addoption(parser):
    parser.addoption("--cases", type=int, default=150, help="cases of each fuzzed test")

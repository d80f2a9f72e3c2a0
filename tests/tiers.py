"""The tiers: every test is in exactly one, and each ends with a table of where its time went.

A test's tier is its folder (`tests/faults`, `tests/learning`, `tests/slow`), or `slow` by its mark;
all others are `test`. `pytest --tier NAME` runs one, plain `pytest` runs `test`, and paths on the
command line run what they name, whatever its tier.
"""

import time
from collections import defaultdict
from pathlib import Path

TIERS = ("test", "slow", "learning", "faults")
SHOWN = 20
_HERE = Path(__file__).parent


def add_option(parser) -> None:
    parser.addoption("--tier", choices=TIERS, help="run the tests of one tier")


def of(item) -> str:
    """The tier of a test."""
    folder = item.path.relative_to(_HERE).parts[0] if item.path.is_relative_to(_HERE) else ""
    if folder in TIERS:
        return folder
    return "slow" if item.get_closest_marker("slow") else "test"


def chosen(config) -> str | None:
    """The tier that is asked for; none where paths are."""
    named = config.args != config.getini("testpaths")
    return config.getoption("--tier") or (None if named else "test")


def is_other(path, config) -> bool:
    """Whether all in this folder is of another tier, so that nobody need look into it."""
    tier = chosen(config)
    return tier is not None and path.parent == _HERE and path.name in TIERS and path.name != tier


def select(config, items) -> None:
    """Keep the tests of the tier."""
    if (tier := chosen(config)) is None:
        return
    others = [item for item in items if of(item) != tier]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if of(item) == tier]


class Clock:
    """Adds up what tests take, in the process that prints the report."""

    def __init__(self, config):
        self.config, self.began, self.seconds = config, time.monotonic(), defaultdict(float)

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration

    def pytest_terminal_summary(self, terminalreporter):
        if not self.seconds:
            return
        write = terminalreporter.write_line
        slowest = sorted(self.seconds.items(), key=lambda pair: -pair[1])[:SHOWN]
        terminalreporter.section(f"the slowest {len(slowest)} of {len(self.seconds):,} tests")
        for name, seconds in slowest:
            write(f"{seconds:7.1f} s  {name}")
        tier = chosen(self.config)
        whole = [self.config.getini("testpaths"), [f"tests/{tier}"]]
        if self.config.option.keyword or self.config.args not in whole:
            return
        known = self.config.cache.get("idrl/tiers", {})
        known[tier] = [len(self.seconds), time.monotonic() - self.began, sum(self.seconds.values())]
        self.config.cache.set("idrl/tiers", known)
        terminalreporter.section("tiers, as each last ran here")
        write(f"{'tier':<10}{'tests':>7}{'seconds':>9}{'of all workers':>16}")
        for name, (count, wall, own) in known.items():
            write(f"{name:<10}{count:>7,}{wall:>9.0f}{own:>16.0f}")

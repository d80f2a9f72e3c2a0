"""Fixtures of the fault suite, and the table that it ends with."""

import json
import shutil
from collections import defaultdict

import driver
import pytest

import idrl
from idrl.storage import checkpoint

_COLUMNS = ("fault", "tries", "survived", "lost rows", "differing bits", "tracebacks", "hangs")
_ANSWERS = ("sentence", "accepted", "traceback", "hang", "growth")  # to a forged file


@pytest.fixture(scope="session")
def nursery(tmp_path_factory):
    nursery = driver.Nursery(tmp_path_factory.mktemp("xla"))
    yield nursery
    nursery.close()


@pytest.fixture(scope="session")
def reference(nursery, tmp_path_factory):
    """An undisturbed run of each loop, made when it is first asked for."""
    made = {}

    def of(loop: str) -> driver.Reference:
        if loop not in made:
            made[loop] = driver.make_reference(nursery, tmp_path_factory.mktemp(loop), loop)
        return made[loop]

    return of


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A finished run with checkpoints at steps 200 and 300."""
    path = tmp_path_factory.mktemp("whole") / "run"
    return idrl.train("dqn", "deep_sea/4", steps=300, settings=driver.SETTINGS, out=path).path


@pytest.fixture
def copy(run, tmp_path):
    shutil.copytree(run, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def alone(copy):
    """A run with one checkpoint: there is none before it to go on from."""
    shutil.rmtree(checkpoint.listed(copy / "checkpoints")[0])
    return copy


@pytest.fixture
def tally(record_property):
    """Add to a row of the table."""

    def add(
        fault: str, tries: int, survived: int, lost: int = 0, bits: int = 0, tracebacks: int = 0,
        hangs: int = 0,
    ) -> None:  # fmt: skip
        wrong = [lost, bits, tracebacks, hangs]
        record_property("fault", json.dumps([fault, tries, survived, *wrong]))
        assert (survived, *wrong) == (tries, 0, 0, 0, 0), fault

    return add


@pytest.fixture
def cases(request) -> int:
    """How many cases a fuzzed test makes."""
    return request.config.getoption("--cases")


def pytest_terminal_summary(terminalreporter):
    rows = defaultdict(lambda: [0] * (len(_COLUMNS) - 1))
    answers = [0] * len(_ANSWERS)
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, text in getattr(report, "user_properties", ()):
                if name == "fault" and report.when == "call":
                    fault, *numbers = json.loads(text)
                    rows[fault] = [a + b for a, b in zip(rows[fault], numbers, strict=True)]
                elif name == "answers" and report.when == "call":
                    answers = [a + b for a, b in zip(answers, json.loads(text), strict=True)]
    if not rows:
        return
    width = max(map(len, rows))
    terminalreporter.section("faults")
    terminalreporter.write_line(
        _COLUMNS[0].ljust(width) + "".join(f"{c:>16}" for c in _COLUMNS[1:])
    )
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    for fault, numbers in rows.items():
        terminalreporter.write_line(fault.ljust(width) + "".join(f"{n:>16,}" for n in numbers))
    if any(answers):
        told = ", ".join(f"{n:,} {name}" for n, name in zip(answers, _ANSWERS, strict=True))
        terminalreporter.write_line(f"answers to forged files: {told}")

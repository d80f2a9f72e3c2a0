"""Options of the tier, and the table that it ends with."""

import csv
from pathlib import Path

_COLUMNS = ("agent", "task", "steps", "score", "threshold", "seconds", "verdict")
_TEXTS = ("agent", "task", "verdict")


def pytest_addoption(parser):
    parser.addoption("--first-seed", type=int, default=100, help="those below 100 are for tuning")
    parser.addoption("--rmsprop-eps", type=float, help="another ε, only for agents with RMSProp")
    parser.addoption("--table", type=Path, help="write the table to this file as CSV")


def pytest_terminal_summary(terminalreporter, config):
    rows = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, found in getattr(report, "user_properties", ()):
                if name == "learned" and report.when == "call":
                    rows.append(_row(*found))
    if not rows:
        return
    rows.sort(key=lambda row: (row[1], row[0]))
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
    terminalreporter.section("learning")
    for row in (_COLUMNS, *rows):
        cells = [
            cell.ljust(width) if name in _TEXTS else cell.rjust(width)
            for cell, width, name in zip(row, widths, _COLUMNS, strict=True)
        ]
        terminalreporter.write_line("  ".join(cells).rstrip())
    if (path := config.getoption("--table", None)) is not None:
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([_COLUMNS, *rows])


def _row(agent, task, steps, score, threshold, seconds) -> tuple[str, ...]:
    """`seconds` are the processor's: what else a machine does changes them little."""
    verdict = "learns" if score >= threshold else "does not learn"
    return agent, task, str(steps), f"{score:.2f}", f"{threshold:.2f}", f"{seconds:.0f}", verdict

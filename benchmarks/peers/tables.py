"""Medians, spreads and ratios of what was measured: python -m benchmarks.peers.tables"""

from __future__ import annotations

import csv
import os
import platform
import statistics
from collections.abc import Iterable
from typing import Any

from benchmarks.peers.libraries import CANNOT, LIBRARIES, ROOT, Missing, versions

OUT = ROOT / "results" / "speed"
RAW = (
    "task", "library", "algo", "seeds", "round", "steps_per_s", "updates_per_s", "steps_per_cpu_s",
    "steps", "seconds", "import_s", "ready_s", "peak_mib", "why",
)  # fmt: skip
NAMES = {
    "cartpole": "CartPole",
    "cartpole-2000": "CartPole, a replay of 2,000",
    "breakout": "MinAtar Breakout",
    "screens": "84×84×4, a free environment",
}


def write_csv(name: str, rows: Iterable[dict[str, Any]], columns: Iterable[str]) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    with open(OUT / name, "w", newline="") as file:
        writer = csv.DictWriter(file, list(columns), lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: _short(value) for key, value in row.items()})


def _short(value: Any) -> Any:
    return f"{value:.5g}" if isinstance(value, float) else value


def read_csv(name: str) -> list[dict[str, Any]]:
    if not (OUT / name).exists():
        return []
    with open(OUT / name, newline="") as file:
        return list(csv.DictReader(file))


def write_raw(task: str, rows: list[dict[str, Any]]) -> None:
    write_csv(f"peers_raw_{task}.csv", rows, RAW)


def middle(values: list[float]) -> tuple[float, float, float]:
    return statistics.median(values), min(values), max(values)


def summary() -> list[dict[str, Any]]:
    """A row for each task, algorithm, number of seeds and library."""
    rows = []
    for task in NAMES:
        raw = [row for row in read_csv(f"peers_raw_{task}.csv") if row["algo"]]
        keys = dict.fromkeys((row["algo"], row["seeds"], row["library"]) for row in raw)
        for algo, seeds, library in sorted(keys, key=lambda k: (k[0] != "dqn", k[0], int(k[1]))):
            mine = _series(raw, algo, seeds, "idrl")
            found = _series(raw, algo, seeds, library)
            rates = middle([float(row["steps_per_s"]) for row in found.values()])
            row = {
                "task": task, "algo": algo, "seeds": seeds, "library": library,
                "rounds": len(found), "steps_per_s": rates[0], "least": rates[1], "most": rates[2],
                "updates_per_s": _median(found, "updates_per_s"),
                "steps_per_cpu_s": _median(found, "steps_per_cpu_s"),
                "import_s": _median(found, "import_s"),
                "ready_s": float(next(iter(found.values()))["ready_s"]),
                "peak_mib": int(_median(found, "peak_mib")),
            }  # fmt: skip
            if library != "idrl" and mine:
                row |= _ratios(mine, found)
            rows.append(row)
    return rows


def _series(raw, algo, seeds, library) -> dict[str, dict[str, str]]:
    same = [r for r in raw if (r["algo"], r["seeds"], r["library"]) == (algo, seeds, library)]
    return {row["round"]: row for row in same}


def _median(found, name: str) -> float:
    return statistics.median(float(row[name]) for row in found.values())


def _ratios(mine, found) -> dict[str, float]:
    """Ours over theirs: work per second of the processor, and per second on the wall."""
    both = [number for number in found if number in mine]

    def of(name: str) -> tuple[float, float, float]:
        return middle([float(mine[n][name]) / float(found[n][name]) for n in both])

    ratio, least, most = of("steps_per_cpu_s")
    wall, wall_least, wall_most = of("steps_per_s")
    return {
        "ratio": ratio, "ratio_least": least, "ratio_most": most, "wall_ratio": wall,
        "wall_least": wall_least, "wall_most": wall_most,
    }  # fmt: skip


SUMMARY = (
    "task", "algo", "seeds", "library", "rounds", "steps_per_s", "least", "most", "updates_per_s",
    "steps_per_cpu_s", "ratio", "ratio_least", "ratio_most", "wall_ratio", "wall_least",
    "wall_most", "import_s", "ready_s", "peak_mib",
)  # fmt: skip


def hardware() -> str:
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            model = next(line for line in file if "model name" in line).partition(":")[2].strip()
    except (OSError, StopIteration):
        pass
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def summarise() -> None:
    rows = summary()
    write_csv("peers.csv", rows, SUMMARY)
    lines = [f"Measured on {hardware()}.", ""]
    for library in ("idrl", *LIBRARIES):
        try:
            lines.append(f"- {library}: {versions(library)}")
        except (Missing, OSError) as error:
            lines.append(f"- {library}: — ({error})")
    lines += [f"- — {name}: {why}" for name, why in CANNOT.items()]
    for task, name in NAMES.items():
        here = [row for row in rows if row["task"] == task]
        if here:
            lines += ["", f"## {name}", "", *_table(here)]
    (OUT / "peers.md").write_text("\n".join(lines) + "\n")


def _table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| | seeds | library | steps per s of processor time | steps/s on the wall (range) "
        "| idrl is ahead by, processor time (range) | on the wall (range) | import, s | ready, s "
        "| peak MiB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ratios = " | "
        if "ratio" in row:
            ratios = (
                f"{row['ratio']:.1f}× ({row['ratio_least']:.1f}–{row['ratio_most']:.1f}) "
                f"| **{row['wall_ratio']:.1f}×** ({row['wall_least']:.1f}–{row['wall_most']:.1f})"
            )
        lines.append(
            f"| {row['algo']} | {row['seeds']} | {row['library']} | {row['steps_per_cpu_s']:,.0f} "
            f"| {row['steps_per_s']:,.0f} ({row['least']:,.0f}–{row['most']:,.0f}) | {ratios} "
            f"| {row['import_s']:.1f} | {row['ready_s']:.1f} | {row['peak_mib']:,} |"
        )
    return lines


if __name__ == "__main__":
    summarise()

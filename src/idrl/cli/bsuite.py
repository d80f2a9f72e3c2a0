"""`idrl bsuite`: bsuite's exploration and noise experiments. Parse, call, print."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from idrl.errors import IdrlError


def add_parser(commands) -> None:
    """Add `bsuite` to the subparsers of the command line."""
    c = commands.add_parser(
        "bsuite", help="score an agent on bsuite's exploration and noise experiments"
    )
    c.add_argument("agent", help="see `idrl list agents`")
    c.add_argument(
        "--experiments", type=_words, metavar="NAME,…",
        help="deep_sea, deep_sea_stochastic, cartpole_swingup, bandit_noise, catch_noise, "
        "mountain_car_noise, cartpole_noise (default: all)",
    )  # fmt: skip
    c.add_argument("--sizes", type=_counts, metavar="N,…", help="of deep_sea (default: 10,12,…,50)")
    c.add_argument("--seeds", type=_count, help="runs of each point (default: bsuite's, 1 or 4)")
    c.add_argument("--episodes", type=_count, help="per run (default: bsuite's, 10,000 or 1,000)")
    c.add_argument("--out", help="the folder of all runs (default: runs/bsuite-AGENT)")
    c.add_argument(
        "--time-limit", type=_minutes, metavar="MINUTES",
        help="stop after this time; the same command continues from there",
    )  # fmt: skip
    c.set_defaults(call=_bsuite)


def _bsuite(options, console) -> int:
    deadline = time.monotonic() + 60 * (options.time_limit or float("inf"))
    from idrl.agents.registry import declared
    from idrl.bsuite.running import run_plan
    from idrl.bsuite.sweeps import plan
    from idrl.errors import Interrupted
    from idrl.runs.display import LiveDisplay

    declared(options.agent)  # refuses an unknown name before anything is made
    plans = plan(options.experiments, options.sizes, options.seeds, options.episodes)
    out = Path(options.out or f"runs/bsuite-{options.agent}")
    if out.exists() and not out.is_dir():
        raise IdrlError(f"--out {str(out)!r} is a file; it must be a folder.")
    display = (lambda: LiveDisplay(console)) if console.is_interactive else None
    results = []
    try:
        for one in plans:
            results.append(
                run_plan(
                    options.agent, one, out, deadline=deadline, display=display,
                    tell=lambda text: console.print(text, markup=False),
                )
            )  # fmt: skip
    except Interrupted as stop:
        console.print(f"{stop} Repeat the command to continue.", markup=False)
        return 130
    _show(options.agent, results, out, console)
    return 0


def _show(agent: str, results, out: Path, console) -> None:
    from idrl.bsuite import table as files
    from idrl.bsuite.radar import radar
    from idrl.system.tables import TextTable

    heads = ["experiment", agent, *(f"bsuite {name}" for name in files.AGENTS), "trimmed"]
    title, left = f"bsuite scores of {agent}", (0, len(heads) - 1)
    console.print(TextTable(heads, files.rows(results), title, [files.NOTE], left))
    out.mkdir(parents=True, exist_ok=True)
    files.write_scores(agent, results, out / "scores.csv")
    files.write_points(agent, results, out / "points.csv")
    said = f"The scores are in {out / 'scores.csv'}, each run's in {out / 'points.csv'}"
    scores = {r.plan.experiment.name: r.score for r in results if r.points}
    if scores:
        trimmed = any(files.note(result) for result in results)
        radar(agent, scores, out / "radar.png", "trimmed: see scores.csv" if trimmed else "")
        said += f", the picture in {out / 'radar.png'}"
    console.print(said, markup=False)
    if any(len(r.points) < len(r.plan.values) for r in results):
        console.print("The time limit left points open; repeat the command to continue.")


def _words(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list such as deep_sea,bandit_noise")
    return words


def _counts(text: str) -> list[int]:
    return [_count(word.strip()) for word in text.split(",")]


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or more")
    return int(text)


def _minutes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of minutes")
    return value

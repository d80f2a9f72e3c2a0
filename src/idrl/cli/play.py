"""`idrl play`: parse, call, print."""

from __future__ import annotations

import argparse
from pathlib import Path

from idrl.cli.choices import add_act, add_weights
from idrl.cli.counts import positive
from idrl.errors import IdrlError


def add_parser(commands) -> None:
    """Add `play` to the subparsers of the command line."""
    c = commands.add_parser("play", help="play an episode and show what the agent believes")
    c.add_argument("run", help="a run folder, or a file that agent.save(…) wrote")
    c.add_argument(
        "--page", metavar="FILE", help="one HTML file (default: RUN/play.html, of a file play.html)"
    )
    c.add_argument("--video", metavar="FILE", help="an .mp4 or a .gif instead, or as well")
    c.add_argument("--seed", type=int, help="which seed's agent (default: the best)")
    which = c.add_mutually_exclusive_group()
    add_weights(which)
    which.add_argument(
        "--at", type=positive, metavar="STEP",
        help="weights kept at this step (--set training.keep_weights=4)",
    )  # fmt: skip
    add_act(c, "explore")
    c.add_argument(
        "--episode", type=int, default=0, metavar="N",
        help="which episode: another number is another one (default: 0)",
    )  # fmt: skip
    c.add_argument(
        "--max-steps", type=_count, default=27_000, help="steps at most (default: 27,000)"
    )
    c.add_argument("--fps", type=_count, help="steps per second of the video (default: 5)")
    c.set_defaults(call=_play)


def _play(options, console) -> int:
    from idrl.inspect.play.episode import FPS, play
    from idrl.inspect.play.page import LIMIT
    from idrl.report.statistics import short
    from idrl.runs.loading import open_agent
    from idrl.runs.run import Run

    page, video = options.page, options.video
    if options.fps is not None and video is None:
        raise IdrlError("--fps is the speed of a video: add --video FILE, or omit it.")
    run = open_agent(options.run)
    if page is None and video is None:
        page = (run.path if isinstance(run, Run) else Path()) / "play.html"
    episode = play(
        run, seed=options.seed, weights=options.weights, at=options.at, acting=options.act,
        episode=options.episode, max_steps=options.max_steps, page=page, video=video,
        fps=FPS if options.fps is None else options.fps,
    )  # fmt: skip
    steps, differ = len(episode.action), len(episode.disagreements)
    console.print(
        f"{episode.title}: return {short(float(episode.reward.sum()))} in {steps:,} steps"
    )
    console.print(f"{episode.rule} and {episode.other} disagree in {differ:,} of them")
    if page:
        size = Path(page).stat().st_size
        console.print(f"The page is in {page} ({size / 1e6:.1f} MB)", markup=False)
        if size > LIMIT:
            console.print("That is much for a browser: --max-steps makes it smaller.")
    if video:
        console.print(f"The video is in {video}", markup=False)
    return 0


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or more")
    return int(text)

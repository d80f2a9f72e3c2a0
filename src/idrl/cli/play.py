"""`idrl play`: parse, call, print."""

from __future__ import annotations

import argparse
from pathlib import Path

from idrl.errors import IdrlError


def add_parser(commands) -> None:
    """Add `play` to the subparsers of the command line."""
    c = commands.add_parser("play", help="an episode with the agent's mind beside it")
    c.add_argument("run", help="a run folder")
    c.add_argument("--page", metavar="FILE", help="one HTML file (default: RUN/play.html)")
    c.add_argument("--video", metavar="FILE", help="an .mp4 or a .gif instead, or as well")
    c.add_argument("--seed", type=int, help="which seed's agent (default: the best)")
    c.add_argument("--weights", choices=("best", "latest"), default="best", help="default: best")
    c.add_argument(
        "--act", choices=("explore", "evaluate"), default="explore",
        help="by the rule it explores with (default), or the one it is evaluated with",
    )  # fmt: skip
    c.add_argument("--max-steps", type=_count, default=27_000, help="default: 27,000")
    c.add_argument("--fps", type=_count, default=5, help="steps per second of the video")
    c.set_defaults(call=_play)


def _play(options, console) -> int:
    from idrl.inspect.play.episode import play
    from idrl.inspect.play.page import LIMIT, write_page
    from idrl.inspect.play.sigma import read_sigma
    from idrl.inspect.play.video import check_target, write_video
    from idrl.runs import api

    run = api.open_run(options.run)
    video = Path(options.video) if options.video else None
    page = Path(options.page) if options.page else None
    if page is None and video is None:
        page = run.path / "play.html"
    for target in filter(None, (page, video)):
        if not target.parent.is_dir() or target.is_dir():
            raise IdrlError(
                f"{str(target)!r} is no file that can be written: name one in a folder."
            )
    if video:
        check_target(video)
    episode = play(
        run.path, seed=options.seed, weights=options.weights, acting=options.act,
        max_steps=options.max_steps,
    )  # fmt: skip
    steps, differ = len(episode.action), len(episode.disagreements)
    console.print(f"{episode.title}: return {episode.reward.sum():.4g} in {steps:,} steps")
    console.print(f"{episode.rule} and {episode.other} disagree in {differ:,} of them")
    if page:
        size = write_page(episode, page, read_sigma(run.path, episode.seed))
        console.print(f"The page is in {page} ({size / 1e6:.1f} MB)", markup=False)
        if size > LIMIT:
            console.print("That is much for a browser: --max-steps makes it smaller.")
    if video:
        write_video(episode, video, options.fps)
        console.print(f"The video is in {video}", markup=False)
    return 0


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or more")
    return int(text)

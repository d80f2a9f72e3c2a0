"""The episode as a video: what is seen, and bars per action beside it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from idrl.envs.views import CELLS, COLOURS
from idrl.errors import IdrlError
from idrl.inspect.play.candidates_video import (
    OTHER,
    TAKEN,
    draw_candidates,
    half_width,
    panels,
)
from idrl.inspect.play.episode import Episode
from idrl.report.style import caption, figure


def check_target(target: Path) -> None:
    """Refuse what cannot be written before anything is played."""
    if target.suffix not in (".mp4", ".gif"):
        raise IdrlError(f"--video {str(target)!r} must end in .mp4 or .gif.")
    if target.suffix == ".mp4" and _ffmpeg() is None:
        raise IdrlError(
            "an .mp4 needs ffmpeg: pip install 'idrl[video]', or name a .gif, which needs nothing."
        )


def _ffmpeg() -> str | None:
    found = shutil.which("ffmpeg")
    if found:
        return found
    try:
        import imageio_ffmpeg
    except ImportError:
        return None
    return imageio_ffmpeg.get_ffmpeg_exe()


def write_video(episode: Episode, target: Path, fps: int = 5) -> None:
    import matplotlib
    from matplotlib.animation import FFMpegWriter

    from idrl.inspect.play.gif import GifWriter

    writer: Any
    with matplotlib.rc_context({"animation.ffmpeg_path": _ffmpeg() or ""}):
        if target.suffix == ".gif":
            writer = GifWriter(fps=fps)
        else:  # yuv420p: what every player knows
            writer = FFMpegWriter(fps=fps, extra_args=["-pix_fmt", "yuv420p"])
        fig, steps = _scene(episode)
        with writer.saving(fig, str(target), dpi=100):
            for t, _ in enumerate(steps):
                if t == 1:  # the room for each axis stays as the first drawing settled it
                    fig.set_layout_engine("none")
                writer.grab_frame()


def _scene(episode: Episode) -> tuple[Any, Iterator[None]]:
    """A figure, and an iterator that sets it to one step after the other."""
    fig, axes = figure(2, 4, figsize=(10, 4.6), width_ratios=(1.7, 1, 1, 1))
    grid = axes[0, 0].get_gridspec()
    for axis in (axes[0, 0], axes[1, 0]):
        axis.remove()
    seen = fig.add_subplot(grid[:, 0])
    draw_seen = _draw_seen(episode, seen)
    places = [axes[0, 1], axes[0, 2], axes[0, 3], axes[1, 1], axes[1, 2]]
    for axis in places[len(panels(episode)) :]:
        axis.set_axis_off()
    draw_mind = _draw_numbered if episode.candidates is None else draw_candidates

    def steps() -> Iterator[None]:
        for t in range(len(episode.action)):
            draw_seen(t)
            draw_mind(places, episode, t)
            _distribution(axes[1, 3], episode, t)
            far = float(episode.reward[:t].sum())
            differ = episode.explored[t] != episode.greedy[t]
            split = f"   exploring ≠ {episode.other}" if differ else ""
            name = caption(episode.title)
            fig.suptitle(
                f"{name}\nstep {t}   action {episode.named(t)}   return so far {far:.3g}"
                + split, fontsize="medium",
            )  # fmt: skip
            yield

    return fig, steps()


def _draw_seen(episode: Episode, axis):
    kind, frames = episode.view.kind, episode.view.frames
    if kind == "numbers":
        bars = axis.bar(np.arange(frames.shape[1]), frames[0], color="#8C8C8C")
        axis.set(ylim=(frames.min() - 1e-6, frames.max() + 1e-6), title="observation")

        def numbers(t: int) -> None:
            for bar, height in zip(bars, frames[t], strict=True):
                bar.set_height(height)

        return numbers
    if kind == "strokes":
        return _draw_strokes(episode, axis)
    axis.set_axis_off()
    image = axis.imshow(_coloured(kind, frames[0]), interpolation="nearest")
    return lambda t: image.set_data(_coloured(kind, frames[t]))


def _coloured(kind: str, frame: np.ndarray) -> np.ndarray:
    if kind == "cells":
        return np.array([_rgb(colour) for colour in CELLS], np.uint8)[frame]
    return np.repeat(frame[..., None], 3, -1) if kind == "grey" else frame


def _draw_strokes(episode: Episode, axis):
    from matplotlib.collections import LineCollection

    view = episode.view
    axis.set_axis_off()
    axis.set(xlim=(0, 1.5), ylim=(0, 1), aspect="equal")
    axis.figure.draw_without_rendering()  # settles how large a picture is
    points = axis.get_window_extent().height * 72 / axis.figure.dpi
    lines = LineCollection(
        [], capstyle="round", colors=[COLOURS[pen.colour] for pen in view.pens],
        linewidths=[pen.width * points for pen in view.pens],
    )  # fmt: skip
    axis.add_collection(lines)

    def draw(t: int) -> None:
        strokes = np.array(view.frames[t]).reshape(-1, 2, 2)
        discs = (strokes[:, 0] == strokes[:, 1]).all(-1)
        strokes[discs, 1, 0] += 1e-4  # matplotlib draws nothing of no length
        lines.set_segments(list(strokes))

    return draw


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:])) if colour else (244, 245, 246)


def _draw_numbered(places, episode: Episode, t: int) -> None:
    actions = np.arange(episode.mu.shape[1])
    tint = [TAKEN if a == episode.action[t] else OTHER for a in actions]
    for axis, (name, label) in zip(places, panels(episode).items(), strict=False):
        if name == "mu":
            _means(axis, episode, t, label, actions, tint)
        else:
            _bars(axis, getattr(episode, name)[t], label, actions, tint)


def _fresh(axis, title: str, actions) -> None:
    axis.clear()
    axis.set_title(title, fontsize="small")
    axis.tick_params(labelsize="x-small")
    axis.set_xticks(actions[:: -(-len(actions) // 9)])
    axis.grid(True, alpha=0.25)


def _means(axis, episode: Episode, t: int, label: str, actions, tint) -> None:
    _fresh(axis, label, actions)
    half = half_width(episode, t)
    if half is not None:
        axis.errorbar(actions, episode.mu[t], half, fmt="none", ecolor="#8C8C8C", capsize=3)
    axis.scatter(actions, episode.mu[t], color=tint, zorder=3)
    axis.margins(x=0.2)


def _bars(axis, values, label: str, actions, tint) -> None:
    _fresh(axis, label, actions)
    axis.bar(actions, np.where(np.isfinite(values), values, 0), color=tint)


def _distribution(axis, episode: Episode, t: int) -> None:
    """Of the action taken."""
    axis.clear()
    if episode.returns is None:
        axis.set_axis_off()
        return
    low, high, probs = episode.returns
    axis.set_title("return of the action taken", fontsize="small")
    edges = np.linspace(low, high, probs.shape[-1] + 1)
    taken = episode.action[t] if episode.candidates is None else 0
    axis.stairs(probs[t, taken], edges, fill=True, color=TAKEN)
    axis.tick_params(labelsize="x-small")

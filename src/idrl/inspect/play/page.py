"""The episode as one page: what is seen, and per action what is believed and decided."""

from __future__ import annotations

import html
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from idrl.envs.views import CELLS
from idrl.inspect.play.episode import Episode
from idrl.inspect.play.packing import TooLarge, pack_bytes, pack_floats
from idrl.report.html import asset, page_parts, plain
from idrl.report.statistics import short

LIMIT = 20_000_000  # bytes


class Fidelity(NamedTuple):
    bits: int  # of each number
    bins: int  # of each histogram
    every: int = 1  # of so many steps one has a picture


_LEVELS = (
    Fidelity(16, 64), Fidelity(8, 24), Fidelity(6, 12), Fidelity(6, 12, 2), Fidelity(6, 12, 4),
    Fidelity(6, 12, 8), Fidelity(6, 12, 16), Fidelity(4, 6, 16), Fidelity(4, 6, 64),
)  # fmt: skip
_FOLLOWS = ("ratio",)  # from two others: it is not stored


def write_page(episode: Episode, target: Path) -> int:
    """As finely as fits into 20 MB; the number of bytes."""
    view, every = None, 0  # of the level before
    for level in _LEVELS:
        coarsest = level is _LEVELS[-1]
        most = math.inf if coarsest else LIMIT
        try:
            if level.every != every:
                view, every = None, level.every
                view = _view(episode, every, most)
            if view is None:  # with so many pictures it was too large before
                continue
            parts = _page(episode, level, view, most)
        except TooLarge:
            continue
        size = sum(len(part.encode()) for part in parts)
        if size < LIMIT or coarsest:
            break
    with target.open("w", encoding="utf-8") as file:
        file.writelines(parts)
    return size


def _page(episode: Episode, level: Fidelity, view: dict[str, Any], most: float) -> list[str]:
    """TooLarge where what is packed is more than `most` bytes."""
    body = asset("idrl.inspect.play", "play.html")
    rule = re.sub(r"\bids\b", "IDS", episode.rule.replace("_", " "))
    facts = {
        "TITLE": episode.title,
        "FACTS": _facts(episode, rule),
        "ABOUT": episode.view.about + _rarely(level.every),
        "RULE": rule,
        "OTHER": episode.other,
        "WHAT": _what(episode, rule),
    }
    # In one go: a name that looks like a place to fill in is none.
    body = re.sub(f"@({'|'.join(facts)})@", lambda found: html.escape(facts[found[1]]), body)
    return page_parts(
        episode.title, style=asset("idrl.inspect.play", "play.css"), body=body,
        data=_data(episode, level, most) | {"rule": rule, "view": view},
        script=asset("idrl.inspect.play", "play.js"),
    )  # fmt: skip


def _rarely(every: int) -> str:
    return "" if every == 1 else f"; to keep the page small, one step in {every} has a new picture"


def _what(episode: Episode, rule: str) -> str:
    """How to read the bars."""
    spread = f"; λ = {episode.lam:g}" if "sigma" in episode.shown else ""
    ratio = f" The ratio is regret² per information gain: {rule} takes the smallest."
    return f"{spread}.{ratio if 'ratio' in episode.shown else ''}"


def _facts(episode: Episode, rule: str) -> str:
    steps = len(episode.action)
    acted = f"by the rule it explores with ({rule})"
    if episode.acting == "evaluate":
        acted = "by the rule it is evaluated with"
    end = "" if episode.ended else ", cut off there"
    differ = len(episode.disagreements)
    return (
        f"Return {short(float(episode.reward.sum()))} in {steps:,} steps{end}, acting {acted}. "
        f"{rule[0].upper()}{rule[1:]} and {episode.other} disagree in {differ:,} of them."
    )


def _data(episode: Episode, level: Fidelity, most: float) -> dict[str, Any]:
    names = [name for name in episode.shown if name not in _FOLLOWS]
    values = np.stack([getattr(episode, name) for name in names], axis=1)  # [T, names, A]
    data: dict[str, Any] = {
        "steps": len(episode.action),
        "actions": episode.mu.shape[1],
        "lam": episode.lam,
        "other": episode.other,
        "action": episode.action.tolist(),
        "greedy": episode.greedy.tolist(),
        "explored": episode.explored.tolist(),
        "reward": plain(episode.reward),
        "names": names,
        "shown": list(episode.shown),
        "values": pack_floats(values, level.bits, most=most),
    }
    if episode.candidates is not None:
        data["candidates"] = pack_floats(episode.candidates, max(level.bits, 8), most=most)
    if episode.returns is not None:
        low, high, probs = episode.returns
        roots = pack_bytes(probs, lambda chunk: _roots(coarser(chunk, level.bins)), most=most)
        data["returns"] = {"low": low, "high": high, "roots": roots}
    if (sigma := episode.sigma_map) is not None:
        data["sigma"] = {
            "steps": sigma.steps.tolist(),
            "maps": [[plain(row, 3) for row in one] for one in sigma.maps],
        }
    return data


def _roots(probs: np.ndarray) -> np.ndarray:
    """Of probabilities: so a byte tells small ones apart."""
    return np.rint(255 * np.sqrt(probs)).clip(0, 255).astype(np.uint8)


def _view(episode: Episode, every: int, most: float) -> dict[str, Any]:
    kind, frames = episode.view.kind, episode.view.frames
    if kind == "strokes":
        pens = [[pen.colour, pen.width] for pen in episode.view.pens]
        packed = pack_floats(frames, 16, every=every, most=most)
        return {"kind": kind, "frames": packed, "pens": pens}
    if kind == "numbers":
        ends = [float(frames.min()), float(frames.max())]  # one scale for all steps
        packed = pack_floats(frames, 16, every=every, most=most)
        return {"kind": kind, "frames": packed, "range": ends}
    packed = pack_bytes(frames, every=every, most=most)
    return {"kind": kind, "frames": packed, "cells": list(CELLS)}


def coarser(probs: np.ndarray, bins: int) -> np.ndarray:
    """Neighbouring bins joined until there are at most `bins`."""
    together = -(-probs.shape[-1] // bins)
    pad = -probs.shape[-1] % together
    padded = np.pad(probs, [(0, 0)] * (probs.ndim - 1) + [(0, pad)])
    return padded.reshape(*probs.shape[:-1], -1, together).sum(-1)

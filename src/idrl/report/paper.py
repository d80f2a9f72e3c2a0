"""The paper's scores (Nikolov et al. 2019) and the human-normalised table that they give.

Which random score of Video Pinball is subtracted changes every mean by a factor: the appendix
prints 16,256.9, the means of Table 1 come out with 0. Both are computed, and the median, which
does not care, goes first.
"""

from __future__ import annotations

import csv
import functools
import re
from importlib import resources
from typing import NamedTuple

import numpy as np

from idrl.report.sheets import Column, Sheet

PINBALL = "video_pinball"
PRINTED_PINBALL = 0.0  # reproduces Table 1
FRAMES_PER_STEP = 4  # of the games' action repeat
LEFT_OUT = "Defender and Surround, which complete the usual 57 games, are not in the paper"
FAMILY = "atari"  # that its games are tasks of


class PaperGame(NamedTuple):
    title: str
    random: float
    human: float
    scores: dict[str, float]  # by agent; none of a game that is not in the paper

    def normalised(self, score):
        """Percent of the way from random play to a human's."""
        return 100 * (score - self.random) / (self.human - self.random)


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files("idrl.report").joinpath("data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@functools.cache
def games(*, printed: bool = True) -> dict[str, PaperGame]:
    """The 55 games by ROM name. `printed`: with the constant that reproduces Table 1."""
    found = {}
    for row in _rows("paper_scores.csv"):
        name, title = row.pop("game"), row.pop("title")
        random, human = float(row.pop("random")), float(row.pop("human"))
        if printed and name == PINBALL:
            random = PRINTED_PINBALL
        scores = {agent: float(score) for agent, score in row.items()}
        found[name] = PaperGame(title, random, human, scores)
    return found


@functools.cache
def all_games(*, printed: bool = True) -> dict[str, PaperGame]:
    """The usual 57: the paper's, and the two that it leaves out. Their scores of random play and of
    a human are DQN Zoo's (`atari_data.py`), which has the paper's numbers for the other 55."""
    found = dict(games(printed=printed))
    for row in _rows("other_games.csv"):
        found[row["game"]] = PaperGame(row["title"], float(row["random"]), float(row["human"]), {})
    return found


def agents() -> list[str]:
    """Agents with a score for every game."""
    return list(next(iter(games().values())).scores)


_GYM = re.compile(r"(ALE/)?(\w+?)((?:NoFrameskip|Deterministic)?-v\d+)")  # prefix, game, version


def game_of(env: str) -> str | None:
    """The Atari game that an environment's name stands for: atari/pong, gym/ALE/Pong-v5, …"""
    family, _, rest = env.partition("?")[0].partition("/")
    if family in (FAMILY, "ale"):
        words = rest
    elif family == "gym" and (found := _GYM.fullmatch(rest)):
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", found[2])
    else:
        return None
    words = words.lower().replace("-", "_")
    return words if words in all_games() else None


def family_of(env: str) -> str:
    """What an environment's name says before its task. Gymnasium's games have sticky actions or
    other frames to an action by their version, so each version is a family of its own."""
    family, _, rest = env.partition("?")[0].partition("/")
    if not game_of(env):
        return family
    found = _GYM.fullmatch(rest) if family == "gym" else None
    return FAMILY if found is None else f"gym/{found[1] or ''}GAME{found[3]}"


def aggregate(agent: str, *, printed: bool) -> tuple[float, float]:
    """Mean and median over the games, in percent."""
    values = [game.normalised(game.scores[agent]) for game in games(printed=printed).values()]
    return float(np.mean(values)), float(np.median(values))


def table1() -> Sheet:
    """Table 1 recomputed from the per-game scores, beside what was printed."""
    appendix = games(printed=False)[PINBALL].random
    columns = [
        Column("agent"), Column("median", 0), Column("mean", 0),
        Column(f"mean, Video Pinball − {appendix:,}", 0),
        Column("printed median", 0), Column("printed mean", 0),
    ]  # fmt: skip
    rows: list[list] = []
    for printed in _rows("paper_table1.csv"):
        cells: list[float | None] = [None, None, None]
        if printed["agent"] in agents():
            mean, median = aggregate(printed["agent"], printed=True)
            cells = [median, mean, aggregate(printed["agent"], printed=False)[0]]
        rows.append([printed["title"], *cells, int(printed["median"]), int(printed["mean"])])
    notes = [
        "Human-normalised percent over 55 games, from the paper's own scores of each game; "
        "the median first, since one game decides the means.",
        "mean: with Video Pinball's random score taken as 0, which reproduces the print; the next "
        f"column subtracts the {appendix:,} of the paper's appendix.",
        "QR-DQN and IQN were printed from another source than the scores of each game; agents "
        "without a recomputed value have no scores of each game in the paper.",
    ]
    return Sheet("paper_table1", "The paper's Table 1, recomputed", columns, rows, notes)


def per_game() -> Sheet:
    """Raw scores of each game."""
    columns = [Column("game"), Column("random", 1), Column("human", 1)]
    columns += [Column(agent, 1) for agent in agents()]
    rows = [
        [game.title, game.random, game.human, *game.scores.values()]
        for game in games(printed=False).values()
    ]
    return Sheet("paper_games", "The paper's scores", columns, rows, [f"{LEFT_OUT}."])

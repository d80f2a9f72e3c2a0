"""The page that `idrl demo` ends with."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from idrl.envs.views import CELLS
from idrl.inspect.demo.moments import Moment, sentence, three_moments
from idrl.inspect.play.sigma import SigmaMap, read_sigma
from idrl.report.curves import acting, over_seeds
from idrl.report.decisions import SYMBOLS
from idrl.report.html import asset, page, plain
from idrl.report.statistics import mean_over_seeds, short, solved_episode
from idrl.report.style import colour
from idrl.runs.run import Run
from idrl.storage.files import write_whole
from idrl.storage.records import numbers, read_episodes, read_evaluations
from idrl.system import words

_MAPS = 6


def write_demo(run: Run, target: Path) -> Path:
    """What the run learned, how sure it became and why it acted, as one file."""
    moments = three_moments(run)
    seed = moments[0].episode.seed
    sigma = read_sigma(run.path, seed)
    assert sigma is not None  # its task lists its states
    facts = {
        "TITLE": words.title(run.config.agent, run.config.env),
        "RESULT": _result(run),
        "SIGMA": _shrunk(sigma),
        "SEED": str(seed),
        "RUN": shlex.quote(words.name(run.path, 1_000)),  # in commands to copy
        "STEP": str(moments[0].at),
    }
    filled = {name: html.escape(text) for name, text in facts.items()}
    first, second, last = moments
    filled["DECISIONS"] = _decision(first) + _decision(second) + _decision(last, first)
    body = asset("idrl.inspect.demo", "demo.html")
    # In one go: a name that looks like a place to fill in is none.
    body = re.sub(f"@({'|'.join(filled)})@", lambda found: filled[found[1]], body)
    made = page(
        f"{facts['TITLE']}: what just happened", body=body, data=_data(run, sigma),
        style=asset("idrl.inspect.demo", "demo.css"), script=asset("idrl.inspect.demo", "demo.js"),
    )  # fmt: skip
    write_whole(target, made)
    return target


def _result(run: Run) -> str:
    """The run in two sentences."""
    latest = {row["seed"]: row for row in read_evaluations(run.path)}
    last = mean_over_seeds(numbers(list(latest.values()), "return_mean"))
    episodes = read_episodes(run.path)
    by_seed = [[row for row in episodes if row["seed"] == str(seed)] for seed in run.seeds]
    when = [solved_episode(numbers(rows, "bad")) for rows in by_seed]
    solved = [episode for episode in when if episode is not None]
    found = f", in the median after {np.median(solved):.0f} episodes" if solved else ""
    return (
        f"{len(solved)} of {len(when)} seeds solved it{found}. After {run.steps:,} steps an "
        f"episode brings {short(last.value)} on average."
    )


def _shrunk(sigma: SigmaMap) -> str:
    first, last = (short(float(np.nanmean(sigma.maps[i]))) for i in (0, -1))
    return f"On average over all places it went from {first} to {last}."


def _data(run: Run, sigma: SigmaMap) -> dict[str, Any]:
    steps, mean, low, high = over_seeds(read_evaluations(run.path), "return_mean")
    acted, returns = acting(read_episodes(run.path))
    few = np.unique(np.geomspace(1, len(sigma.steps), _MAPS).round().astype(int)) - 1
    return {
        "colour": colour(run.config.agent),
        "evaluated": {
            "steps": steps.tolist(), "mean": plain(mean), "low": plain(low), "high": plain(high),
        },
        "acting": {"steps": plain(acted, 9), "mean": plain(returns)},
        "sigma": {
            "steps": sigma.steps[few].tolist(),
            "maps": [[plain(row, 3) for row in sigma.maps[i]] for i in few],
        },
    }  # fmt: skip


def _decision(moment: Moment, before: Moment | None = None) -> str:
    """`before`: an earlier moment of the same seed."""
    episode, t = moment.episode, moment.t
    when = "Trained" if moment.at is None else f"After {moment.at:,} steps"
    head = f"{when}: seed {episode.seed}, step {t} of the episode"
    names = episode.shown
    heads = "".join(f'<th scope="col" class="number">{SYMBOLS[name]}</th>' for name in names)
    rows = []
    for action in range(episode.mu.shape[1]):
        kind = ' class="taken"' if action == moment.chosen else ""
        cells = (f'<td class="number">{short(moment.of(name, action))}</td>' for name in names)
        takers = {"IDS": moment.chosen, "greedy": moment.greedy}
        told = f"<td>{', '.join(who for who, taken in takers.items() if taken == action)}</td>"
        rows.append(f"<tr{kind}><td>{action}</td>{''.join(cells)}{told}</tr>")
    return (
        f'<section class="card decision"><div class="board">{_board(episode.view.frames[t])}</div>'
        f"<div><h3>{html.escape(head)}</h3><p>{html.escape(sentence(moment, before))}</p>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="The same in numbers"><table>'
        f'<thead><tr><th scope="col">action</th>{heads}<th></th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></div></section>\n"
    )


def _board(cells: np.ndarray) -> str:
    """A board `[H, W]` of numbered colours."""
    height, width = cells.shape
    squares = "".join(
        f'<rect x="{x}" y="{y}" width="1" height="1" fill="{CELLS[cells[y, x]]}"/>'
        for y, x in np.argwhere(cells)
    )
    lines = "".join(f"M{x} 0V{height}" for x in range(width + 1))
    lines += "".join(f"M0 {y}H{width}" for y in range(height + 1))
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="Where the agent is">'
        f'{squares}<path d="{lines}" class="mesh"/></svg>'
    )

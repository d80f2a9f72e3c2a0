"""`idrl evaluate`: parse, call, print."""

from __future__ import annotations

from idrl.cli.choices import add_act, add_weights
from idrl.cli.counts import positive
from idrl.system import words


def add_parser(commands) -> None:
    """Add `evaluate` to the subparsers of the command line."""
    c = commands.add_parser("evaluate", help="score a run or a trained agent")
    c.add_argument("run", help="a run folder, or a file that agent.save(…) wrote")
    c.add_argument("--episodes", type=positive, help="episodes per seed (default: 100)")
    c.add_argument(
        "--frames", type=positive,
        help="for atari/…: score the episodes completed in this many frames instead",
    )  # fmt: skip
    add_weights(c)
    add_act(c, "evaluate")
    c.add_argument(
        "--deterministic", action="store_true",
        help="make a GPU compute the same bits every time, as it does for runs trained so",
    )  # fmt: skip
    c.set_defaults(call=_evaluate)


def _evaluate(options, console) -> int:
    import numpy as np

    from idrl.report.statistics import INTERVAL, mean_over_seeds, short
    from idrl.runs import api
    from idrl.runs.loading import open_agent
    from idrl.runs.policy import Policy
    from idrl.system.devices import prepare
    from idrl.system.tables import TextTable

    if options.deterministic:
        prepare(deterministic=True)  # to load a model file is to use JAX
    run = open_agent(options.run)
    fixed = not isinstance(run, Policy) and run.deterministic
    score = api.evaluate(
        run, episodes=options.episodes, frames=options.frames, weights=options.weights,
        acting=options.act, deterministic=options.deterministic or fixed,
    )  # fmt: skip
    means, spreads, counts, lengths, cuts = map(np.atleast_1d, score[:5])
    rows = []
    for i, seed in enumerate([run.seed] if isinstance(run, Policy) else run.seeds):
        n, cut = int(counts[i]), int(cuts[i])
        told = (means[i], spreads[i], lengths[i])
        mean, spread, length = (short(float(x)) if n else "–" for x in told)
        rows.append([str(seed), mean, spread, f"{n:,}", length, f"{cut:,} of {n:,}" if cut else ""])
    together = ["mean", str(mean_over_seeds(means)), "", "", "", ""]
    notes = [f"In brackets: {INTERVAL}."] if len(rows) > 1 else []
    if not counts.all():
        notes.append("Where no episode ended there is no score.")
    heads = ["seed", "return", "standard deviation", "episodes", "length", "at the time limit"]
    if not cuts.any():
        heads, together = heads[:-1], together[:-1]
        rows = [row[:-1] for row in rows]
    which = "" if isinstance(run, Policy) else f", {options.weights} weights"
    which += ", as it explores" if options.act == "explore" else ""
    title = words.title(run.config.agent, run.config.env) + which
    below = [together] if len(rows) > 1 else []
    console.print(TextTable(heads, rows, title, notes, below=below))
    return 0

"""`idrl bandit`: the figure, and the rules compared. Parse, call, print."""

from __future__ import annotations

import argparse
from pathlib import Path

from idrl.errors import IdrlError

# What only one of the two understands, so that an option is never taken and left unused.
_ONLY = {
    "regret": ("setting", "seeds", "steps", "rules"),
    "figure": ("samples",),
}


def add_parser(commands) -> None:
    """Add `bandit` to the subparsers of the command line."""
    c = commands.add_parser(
        "bandit",
        help="draw the paper's bandit figure, or compare the regret of bandit rules",
    )
    c.add_argument(
        "what", nargs="?", choices=("figure", "regret"), default="figure",
        help="draw UCB, Thompson sampling and IDS on one function (default), or compare all rules",
    )  # fmt: skip
    c.add_argument("--setting", help="regret: gp, linear, two-group, camelback or bernoulli")
    c.add_argument("--seeds", type=_count, help="regret: how many problems (default: 20)")
    c.add_argument(
        "--steps", type=_count, help="regret: steps per problem (default: the setting's)"
    )
    c.add_argument(
        "--rules", nargs="+", metavar="RULE", help="regret: the rules to compare (default: all)"
    )
    c.add_argument("--samples", type=_count, help="figure: samples to take (default: 20)")
    c.add_argument("--seed", type=_seed, help="of the first problem (default: 0; figure: 4)")
    c.add_argument(
        "--lam", type=float, default=2.0, help="width of the confidence interval in σ (default: 2)"
    )
    c.add_argument("--out", help="the picture (default: bandit.png, or bandit-SETTING.png)")
    c.set_defaults(call=_bandit)


def _bandit(options, console) -> int:
    for what, names in _ONLY.items():
        for name in names:
            if what != options.what and getattr(options, name) is not None:
                asked = "bandit" if options.what == "figure" else "bandit regret"
                meant = "bandit" if what == "figure" else "bandit regret"
                raise IdrlError(
                    f"--{name} belongs to `idrl {meant}`, and `idrl {asked}` has no use for it."
                )
    return _figure(options, console) if options.what == "figure" else _regret(options, console)


def _figure(options, console) -> int:
    target = _picture(options.out or "bandit.png")
    from idrl.bandits.figure import PANELS, SEED, bandit_figure

    samples = options.samples or 20
    seed = SEED if options.seed is None else options.seed
    played = bandit_figure(target, seed=seed, samples=samples, lam=options.lam)
    for name, title in PANELS:
        loud = int(played[name].noisy.sum())
        console.print(
            f"{title}: {loud} of {samples} samples where ρ² is above its median", markup=False
        )
    console.print(f"The picture is in {target}", markup=False)
    return 0


def _regret(options, console) -> int:
    setting = options.setting or "gp"
    target = _picture(options.out or f"bandit-{setting}.png")
    from idrl.bandits.choosing import RULES
    from idrl.bandits.comparing import compare, regret_figure, table_rows, write_csv
    from idrl.bandits.settings import SETTINGS
    from idrl.report.statistics import INTERVAL
    from idrl.system.tables import TextTable

    with console.status("starting") as status:
        comparison = compare(
            setting, options.rules or tuple(RULES), seeds=options.seeds or 20,
            first_seed=options.seed or 0, steps=options.steps, lam=options.lam,
            tell=lambda rule: status.update(f"playing {rule}"),
        )  # fmt: skip
    heads, rows = table_rows(comparison)
    notes = [f"In brackets: {INTERVAL}."]
    title = f"{setting}: {SETTINGS[setting].line}"
    console.print(TextTable(heads, rows, title, notes, left=[0]))
    regret_figure(comparison, target)
    write_csv(comparison, target.with_suffix(".csv"))
    console.print(
        f"The picture is in {target}, the table in {target.with_suffix('.csv')}", markup=False
    )
    return 0


def _picture(path: str) -> Path:
    from idrl.storage.files import check_writable

    target = Path(path)
    if target.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise IdrlError(f"--out {path!r} must end in .png, .pdf or .svg.")
    check_writable(target)
    return target


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or more")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 0 or more")
    return int(text)

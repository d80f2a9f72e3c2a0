"""`idrl report`, `idrl compare` and `idrl paper`: parse, call, print."""

from __future__ import annotations

import argparse
import os

from idrl.report.sheets import FORMATS
from idrl.system import plugins


def add_parsers(commands) -> None:
    """Add the commands to the subparsers of the command line."""
    c = commands.add_parser("report", help="make tables, figures and a page from run folders")
    c.add_argument("runs", nargs="+", metavar="RUN", help="run folders, or folders of them")
    c.add_argument("-o", "--out", default="report", help="the report's folder (default: report)")
    c.add_argument(
        "--reference", metavar="FILE", help="published curves: agent, game, frames, eval_return"
    )
    c.add_argument(
        "--bands", choices=("range", "interval"), default="range",
        help="bands around curves: lowest to highest seed (default), or 95%% intervals",
    )  # fmt: skip
    c.set_defaults(call=_report)

    c = commands.add_parser(
        "compare", help="tell which of two runs is better, with what probability"
    )
    c.add_argument(
        "one", metavar="RUN_A",
        help="a run folder, a folder of one agent's runs, or FILE.py:NAME, an object with predict",
    )  # fmt: skip
    c.add_argument("other", metavar="RUN_B")
    c.add_argument("--env", help="the task to play (default: the run's)")
    c.add_argument(
        "--episodes", type=_count, help="new episodes to play (default with objects: 100)"
    )
    c.set_defaults(call=_compare)

    c = commands.add_parser("paper", help="print the paper's Table 1, recomputed from its scores")
    c.add_argument("--games", action="store_true", help="print the scores of each game instead")
    c.add_argument(
        "--format", choices=FORMATS, default="table", help="of the output (default: table)"
    )
    c.set_defaults(call=_paper)


def _report(options, console) -> int:
    from idrl.report.tables import summary
    from idrl.report.writing import make_report

    report = make_report(options.runs, options.out, reference=options.reference, band=options.bands)
    for part in report.parts:
        console.print(summary(part.section).rich())
    for remark in report.remarks:
        console.print(remark, markup=False)
    _say_left_out(report.left_out, console)
    console.print(f"The report is in {options.out}: index.html, report.md, tables and figures.")
    return 0


def _compare(options, console) -> int:
    from idrl.report import comparing

    given = (options.one, options.other)
    if any(map(_is_object, given)):
        from idrl.runs.run import open_run

        for path in (side for side in given if not _is_object(side)):
            open_run(path)  # before anybody's code is run
    one, other = (_side(side) for side in given)
    how = {"env": options.env, "episodes": options.episodes}
    if isinstance(one, str) and isinstance(other, str) and not any(how.values()):
        found = comparing.compare(one, other)  # of tables: no need for JAX
    else:
        from idrl.runs.comparing import compare

        found = compare(one, other, **how)
    console.print(found.sheet.rich())
    _say_left_out(found.left_out, console)
    console.print(found.verdict, markup=False)
    return 0


def _is_object(given: str) -> bool:
    return ":" in given and not os.path.exists(given)


def _side(given: str):
    """A path, or the object that FILE.py:NAME or module:NAME stands for."""
    if not _is_object(given):
        return given
    from idrl.system.devices import prepare

    prepare()  # an import may be the first to use JAX
    return plugins.named_object(given)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or more")
    return int(text)


def _say_left_out(left_out, console) -> None:
    for one in left_out:
        console.print("Left out: " + ": ".join(one.shown), markup=False)


def _paper(options, console) -> int:
    from idrl.report import paper

    sheet = paper.per_game() if options.games else paper.table1()
    show(sheet, options.format, console)
    return 0


def show(sheet, form: str, console) -> None:
    if form == "table":
        console.print(sheet.rich())
    else:  # as it is: no wrapping, no colours
        console.out(getattr(sheet, form)(), end="", highlight=False)

"""`idrl paper`: parse, call, print."""

from __future__ import annotations

from idrl.report.sheets import FORMATS


def add_parsers(commands) -> None:
    """Add the commands to the subparsers of the command line."""
    c = commands.add_parser("paper", help="the paper's Table 1, recomputed from its scores")
    c.add_argument("--games", action="store_true", help="the scores of each game instead")
    c.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    c.set_defaults(call=_paper)


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

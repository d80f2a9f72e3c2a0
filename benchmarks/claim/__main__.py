"""From finished studies to CSV files, tables, figures, models and a page.

    python -m benchmarks.claim collect STUDY-FOLDER... --out results/minatar
    python -m benchmarks.claim collect OTHER-FOLDER --out results/minatar --variant Adam
    python -m benchmarks.claim tables minatar --out results/minatar
    python -m benchmarks.claim models STUDY-FOLDER... --agents dqn c51-ids
    python -m benchmarks.claim page minatar --out results/minatar

`tables` and `page` need the CSV files alone.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.claim.collecting import collect
from benchmarks.claim.models import save_models
from benchmarks.claim.paging import fill
from benchmarks.claim.tabulating import tabulate
from idrl.errors import IdrlError

PAGE = Path("docs/benchmark.md")


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        for line in options.call(options):
            print(line)
    except IdrlError as error:
        print(f"benchmarks.claim: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(required=True)
    c = commands.add_parser("collect", help="CSV files of the finished runs of studies")
    c.add_argument("studies", nargs="+", help="folders of studies, or of runs")
    c.add_argument("--out", type=Path, required=True)
    c.add_argument("--variant", default="", help="a word for runs with settings of their own")
    c.set_defaults(call=_collect)
    c = commands.add_parser("tables", help="tables and figures from those files")
    c.add_argument("study", help="the study by name: minatar, atari-short")
    c.add_argument("--out", type=Path, required=True, help="the folder of the files")
    c.add_argument("--reference", type=Path, help="published curves to draw beside")
    c.set_defaults(call=_tables)
    c = commands.add_parser("models", help="the best weights of a seed of each run")
    c.add_argument("studies", nargs="+", help="folders of studies, or of runs")
    c.add_argument("--out", type=Path, default=Path("results/models"))
    c.add_argument("--agents", nargs="+", default=[])
    c.add_argument("--envs", nargs="+", default=[])
    c.set_defaults(call=_models)
    c = commands.add_parser("page", help=f"put tables and figures into {PAGE}")
    c.add_argument("name", help="of the marks in the page: minatar, atari")
    c.add_argument("--out", type=Path, required=True, help="the folder of the tables")
    c.add_argument("--page", type=Path, default=PAGE)
    c.set_defaults(call=_page)
    return top


def _collect(options):
    left_out = collect(options.studies, options.out, options.variant)
    yield f"{options.out}: evaluations.csv, training.csv, diagnostics.csv"
    for one in left_out:
        yield "left out: " + ": ".join(one.shown)


def _tables(options):
    yield str(tabulate(options.out, options.study, options.reference))


def _models(options):
    for path in save_models(options.studies, options.out, options.agents, options.envs):
        yield f"{path} ({path.stat().st_size / 1e6:.1f} MB)"


def _page(options):
    fill(options.page, options.name, options.out)
    yield str(options.page)


if __name__ == "__main__":
    sys.exit(main())

"""`idrl sweep`: parse, call, print."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace
from pathlib import Path

from idrl.errors import IdrlError


def add_parser(commands) -> None:
    """Add `sweep` to the subparsers of the command line."""
    c = commands.add_parser(
        "sweep", help="run a study: agents × environments × seeds × settings",
        description="STUDY is a TOML file, or built in: paper, paper-ablations, atari-short, "
        "minatar, deep_sea, bsuite.",
    )  # fmt: skip
    c.add_argument("study", nargs="?", metavar="STUDY", help="a study file, or one built in")
    c.add_argument("--out", help="the study's folder, or an fsspec address (default: runs/STUDY)")
    c.add_argument("--plan", action="store_true", help="estimate hours and disk; start nothing")
    c.add_argument(
        "--price",
        type=_price,
        help="for --plan: price of an hour of one GPU (without one: of a core)",
    )
    c.add_argument("--address", help="address of a Ray cluster: auto, or HOST:6379")
    c.add_argument(
        "--engine", choices=("auto", "ray", "processes"), default="auto",
        help="what runs the study (default: Ray if installed, else processes of this machine)",
    )  # fmt: skip
    c.add_argument("--resume", metavar="FOLDER", help="continue the study in this folder")
    c.add_argument(
        "--retry", action="store_true", help="with --resume: also retry runs set aside as failed"
    )
    c.add_argument(
        "--status", metavar="FOLDER", help="show the progress of the study in this folder"
    )
    c.add_argument(
        "--table", metavar="FILE", help="with --status: write all runs to a .csv or .parquet"
    )
    c.set_defaults(call=_sweep)


def _price(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a price")
    return value


def _sweep(options, console) -> int:
    _check(options)
    if options.status:
        return _status(options, console)
    if options.plan:
        return _plan(options, console)
    return _resume(options, console) if options.resume else _start(options, console)


def _check(options) -> None:
    given = [n for n in ("study", "resume", "status") if getattr(options, n) is not None]
    if len(given) != 1:
        raise IdrlError(
            "say one of: a STUDY to run, --resume FOLDER, or --status FOLDER. See "
            "`idrl sweep --help`."
        )
    for name, needed in (
        ("retry", "resume"), ("table", "status"), ("price", "plan"), ("plan", "study"),
        ("out", "study"),
    ):  # fmt: skip
        value = getattr(options, name)
        if value is not None and value is not False and not getattr(options, needed):
            told = "a STUDY" if needed == "study" else f"--{needed}"
            raise IdrlError(f"--{name} goes with {told} only.")
    for name, default in (("out", None), ("address", None), ("engine", "auto")):
        if options.plan and getattr(options, name) != default:
            raise IdrlError(f"--plan starts nothing: omit --{name}.")


def _start(options, console) -> int:
    from idrl.runs.reading import modules_of
    from idrl.sweep.folder import StudyFolder
    from idrl.sweep.jobs import pack
    from idrl.sweep.planning import costs
    from idrl.sweep.searching import optuna
    from idrl.sweep.store import open_store
    from idrl.sweep.work import check_installed
    from idrl.system import plugins

    data, study, found, tried = _checked(options.study)
    check_installed(c.config.env for c in found)
    if study.search:
        optuna()  # refuses where it is not installed
    where = options.out or str(Path("runs") / study.name)
    if open_store(where).exists():
        raise IdrlError(
            f"{where!r} exists already; continue with idrl sweep --resume {shlex.quote(where)}, "
            "or choose another --out."
        )
    with _engine(options, console) as engine:
        capacity = engine.capacity()
        jobs = pack(found, study.resources, capacity, whole=study.search is not None)
        for job in jobs:
            capacity.check(job)
        cost = costs(_machine(capacity))
        by_name = {c.name: c.config for c in found}
        jobs = [replace(job, cost_s=cost(by_name[_base(job.name)], job.seeds)) for job in jobs]
        used = plugins.record(module for config in tried for module in modules_of(config))
        folder = StudyFolder.create(where, data, study.name, [] if study.search else jobs, used)
        return _drive(folder, engine, capacity, console)


def _checked(name: str):
    """The study as it is written and as it is read, its combinations, and all configs that were
    tried, of a search those of its space; what cannot be run is refused."""
    from idrl.sweep import searching
    from idrl.sweep.jobs import combinations
    from idrl.sweep.study import find, parse
    from idrl.sweep.work import check_replays

    stem, data = find(name)
    study = parse(data, stem)
    found = combinations(study)
    tried = [c.config for c in found]
    check_replays(tried)
    if study.search:
        tried += searching.check(study.search, study.groups)
    return data, study, found, tried


def _base(name: str) -> str:
    return name.rpartition("-s")[0]


def _resume(options, console) -> int:
    from idrl.sweep.folder import Outcome, StudyFolder, write_outcome

    folder = StudyFolder.open(options.resume, writing=True)
    folder.lock()  # before anything is written to a study that another may be driving
    try:
        with _engine(options, console) as engine:
            capacity = engine.capacity()
            known = folder.outcomes()
            again = [n for n, o in known.items() if options.retry and o.status == "aside"]
            for name in (*again, *(n for n, o in known.items() if not o.over)):
                capacity.check(folder.jobs[name])
            for name in again:
                write_outcome(folder.store, name, Outcome(attempts=known[name].attempts))
            return _drive(folder, engine, capacity, console)
    finally:
        folder.unlock()


class _engine:
    """Opened with a sentence where something is missing; closed whatever happens."""

    def __init__(self, options, console):
        self.options, self.console = options, console

    def __enter__(self):
        from idrl.sweep.engines import INSTALL, has_ray, open_engine

        if self.options.engine == "auto" and not self.options.address and not has_ray():
            self.console.print(
                f"Ray is not installed ({INSTALL}): processes of this machine run the study.",
                markup=False,
            )
        self.engine = open_engine(self.options.engine, self.options.address)
        return self.engine

    def __exit__(self, *error):
        self.engine.close()


def _machine(capacity):
    from idrl.sweep.speeds import this_machine

    return this_machine(capacity.cpus)


def _drive(folder, engine, capacity, console) -> int:
    from idrl.sweep.driving import Grid, SweepStopped, drive
    from idrl.sweep.searching import Trials
    from idrl.sweep.showing import LiveTable

    search = folder.study.search
    source = Trials(folder, capacity, _machine(capacity)) if search else Grid(folder)
    console.print(
        f"{folder.name}: {engine.name} on {capacity.cpus} cores, {capacity.gpus:g} GPUs; "
        f"{search.trials if search else len(folder.jobs)} runs in {folder.store.where}",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    try:
        with LiveTable(folder, console) as live:
            drive(folder, engine, source, live.tell, live.show)
    except SweepStopped:
        console.print(
            "Stopped. Runs continue from their last checkpoints with: idrl sweep --resume "
            f"{shlex.quote(folder.store.where)}",
            markup=False, soft_wrap=True,
        )  # fmt: skip
        return 130
    return _finish(folder, source, console)


def _finish(folder, source, console) -> int:
    """The table of all runs and the report of those that finished."""
    from idrl.report.writing import make_report
    from idrl.sweep import table

    where = folder.store.where
    counts = folder.counts()
    console.print(
        f"{counts['done']} runs done, {counts['pruned']} ended early, {counts['aside']} set aside",
        markup=False,
    )
    if hasattr(source, "best"):
        console.print(source.best(), markup=False)
    found = table.rows(folder)
    folder.store.write("runs.csv", table.as_csv(found))
    told = f"All runs are in {where}/runs.csv"
    if counts["done"]:
        try:
            make_report([folder.runs()], folder.store.local / "report")
            told += f", the report in {folder.store.local / 'report' / 'index.html'}"
        except IdrlError as error:
            console.print(f"No report: {error}", markup=False)
    console.print(told, markup=False, soft_wrap=True)
    return 1 if counts["aside"] else 0


def _status(options, console) -> int:
    from idrl.sweep import table
    from idrl.sweep.folder import StudyFolder
    from idrl.sweep.showing import status

    folder = StudyFolder.open(options.status)
    target = Path(options.table) if options.table else None
    if target:
        table.check_target(target)
    status(folder, console)
    if target:
        if not folder.jobs:
            raise IdrlError(f"the study in {options.status!r} has no runs yet.")
        table.write_table(table.rows(folder), target)
        console.print(f"All runs are in {target}", markup=False)
    return 0


def _plan(options, console) -> int:
    from idrl.sweep import planning, speeds
    from idrl.sweep.probing import PROBE_S, probe
    from idrl.system.devices import cores

    _, study, found, _ = _checked(options.study)
    hardware = list(speeds.KNOWN)
    mine = speeds.this_machine(cores())
    if mine is None or any(mine.estimate(c.config, 1) is None for c in found):
        console.print(f"Not measured on this machine yet: trying it, {PROBE_S:.0f} s a family …")
        hardware.append(probe([c.config for c in found]))
    elif str(mine) not in map(str, hardware):
        hardware.append(mine)
    rows = planning.rows(found, hardware, study.search.trials if study.search else 1)
    rows, hardware = planning.measured_only(rows, hardware)
    console.print(planning.show(f"{study.name}: the plan", rows, hardware, options.price))
    return 0

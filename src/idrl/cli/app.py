"""The command line: parse, call, print. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from idrl import __version__
from idrl.cli.bandit import add_parser as add_bandit
from idrl.cli.bsuite import add_parser as add_bsuite
from idrl.cli.counts import positive
from idrl.cli.demo import add_parser as add_demo
from idrl.cli.evaluate import add_parser as add_evaluate
from idrl.cli.export import add_parser as add_export
from idrl.cli.play import add_parser as add_play
from idrl.cli.report import add_parsers as add_reports
from idrl.cli.sweep import add_parser as add_sweep
from idrl.cli.training import trained
from idrl.errors import IdrlError, RunFailed, nearest
from idrl.system import plugins, words
from idrl.system.printing import Printer, outputs
from idrl.system.signals import interruptible, last_resort


class _Parser(argparse.ArgumentParser):
    """argparse whose errors are one sentence, with the nearest option for an unknown one."""

    def error(self, message: str) -> NoReturn:
        raise IdrlError(f"{message}. See `{self.prog} --help`.")

    def parse_known_args(self, args=None, namespace=None):
        known, rest = super().parse_known_args(args, namespace)
        # What may be left out argparse takes to be, once an option came before it.
        for action in self._get_positional_actions():
            missing = action.nargs == "?" and getattr(known, action.dest) is None
            if missing and not action.choices and rest and not rest[0].startswith("-"):
                setattr(known, action.dest, rest.pop(0))
        wrong = [word for word in rest if word.startswith("-")] or rest
        if wrong and self._subparsers is None:
            word = wrong[0].split("=")[0]
            if word.startswith("-"):
                hint = nearest(word, self._option_string_actions)
                raise IdrlError(f"unknown option {word!r} of `{self.prog}`; {hint}")
            raise IdrlError(f"`{self.prog}` does not know what to do with {word!r}.")
        return known, rest


def parser() -> argparse.ArgumentParser:
    top = _Parser(prog="idrl", description="Information-directed exploration in deep RL.")
    top.add_argument("--version", action="version", version=f"idrl {__version__}")
    commands = top.add_subparsers(dest="command", parser_class=_Parser, metavar="COMMAND")

    c = commands.add_parser("train", help="train an agent on an environment")
    c.add_argument("agent", nargs="?", help="see `idrl list agents` (default: c51-ids)")
    c.add_argument("env", nargs="?", help="see `idrl list envs` (default: deep_sea/10)")
    c.add_argument(
        "--preset",
        help="paper: the paper's constants, on any task; atari/…: release, sticky, short",
    )
    c.add_argument("--steps", type=positive, help="steps to train each seed for")
    c.add_argument("--frames", type=positive, help="for atari/…: the same in frames, 4 per step")
    c.add_argument("--envs", type=positive, help="environments per seed")
    c.add_argument("--seeds", type=positive, help="how many seeds to train side by side")
    c.add_argument("--seed", type=int, help="the first seed (default: 0)")
    c.add_argument("--out", help="the run's folder (default: runs/AGENT-ENV-001, …)")
    c.add_argument("--config", help="a TOML file of settings, such as a run's config.toml")
    c.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="NAME=VALUE", dest="settings",
        help="change settings, for example --set heads.q.k=20 explore.lam=0.5",
    )  # fmt: skip
    c.add_argument("--resume", metavar="RUN", help="continue the run in this folder")
    for sink, where in (("tensorboard", "TensorBoard events"), ("wandb", "Weights & Biases")):
        c.add_argument(
            f"--{sink}", action=argparse.BooleanOptionalAction,
            help=f"also record to {where}; a resumed run keeps it",
        )  # fmt: skip
    c.add_argument(
        "--sink", action="append", default=[], metavar="NAME", dest="sinks",
        help="also record to a sink of a plugin; a resumed run keeps it",
    )  # fmt: skip
    c.add_argument(
        "--debug-nans", action="store_true",
        help="name the operation that makes the first NaN or infinity; takes twice the memory",
    )  # fmt: skip
    c.add_argument(
        "--deterministic", action="store_true",
        help="make a GPU compute the same bits every time, more slowly; a resumed run keeps it",
    )  # fmt: skip
    c.set_defaults(call=_train)

    add_evaluate(commands)
    c = commands.add_parser("explain", help="show why a trained agent acts as it does")
    c.add_argument("run", help="a run folder, or a file that agent.save(…) wrote")
    c.add_argument("--seed", type=int, help="which seed's agent (default: the best)")
    c.add_argument("--step", type=int, default=0, help="which step of an episode (default: 0)")
    c.add_argument(
        "--png", help="where the picture goes (default: RUN/explain.png, of a file explain.png)"
    )
    c.set_defaults(call=_explain)

    c = commands.add_parser("list", help="list agents, environments and parts, with a line on each")
    c.add_argument("what", nargs="?", choices=_LISTS)
    c.set_defaults(call=_list)
    add_bandit(commands)
    add_bsuite(commands)
    add_demo(commands)
    add_export(commands)
    add_play(commands)
    add_reports(commands)
    add_sweep(commands)
    for name in _OPEN:
        commands.choices[name].add_argument(
            "--plugin", action="append", default=[], metavar="MODULE",
            help="import a module that registers parts, agents or environments of your own",
        )  # fmt: skip
    return top


# Commands that agents and environments of one's own may be given to.
_OPEN = (
    "train", "evaluate", "explain", "list", "bsuite", "play", "sweep", "export", "compare",
)  # fmt: skip
_LISTS = ("agents", "envs", "rules", "heads", "trunks", "optimisers")
_LONG = ("train", "demo", "sweep", "bsuite")  # whose work is more than what they print


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, or 2 for bad input, 1 for a run that went wrong or
    output that could not be written, 141 where nobody read it to its end."""
    with outputs() as (out, _):
        errors = Printer(stderr=True)
        status = _guarded(arguments, errors)
        out.flush()
        if out.error is None or status:
            return status
        closed = isinstance(out.error, BrokenPipeError)
        if not closed:
            errors.say(f"the output could not be written: {out.error}.")
        elif _command(arguments) in _LONG:
            errors.say("the output was not read to its end; the work is done all the same.")
        return 141 if closed else 1


def _guarded(arguments: Sequence[str] | None, errors: Printer) -> int:
    """Whatever goes wrong is a sentence."""

    def farewell() -> None:
        errors.show_cursor()
        errors.say("stopped halfway; continue runs with --resume.")

    def warned(message, category, filename, lineno, file=None, line=None) -> None:
        errors.say(words.colourless(str(message)))  # Gymnasium's own are yellow

    try:
        with warnings.catch_warnings(), last_resort(farewell), interruptible(errors.show_cursor):
            warnings.showwarning = warned  # a sentence, as errors are, without our line numbers
            return _run(arguments, Printer())
    except IdrlError as error:
        errors.say(error)
        return 2
    except (RunFailed, OSError) as error:  # what the system refuses
        errors.say(error)
        return 1
    except KeyboardInterrupt:
        return 130


def _command(arguments: Sequence[str] | None) -> str:
    given = sys.argv[1:] if arguments is None else arguments
    return next((word for word in given if not word.startswith("-")), "")


def _run(arguments: Sequence[str] | None, console) -> int:
    top = parser()
    try:
        options = top.parse_args(arguments)
    except SystemExit as end:  # --help and --version
        return int(end.code or 0)
    if options.command is None:
        top.print_help()
        return 0
    try:
        if options.command in _OPEN:
            _import_plugins(options)
        return options.call(options, console)
    except SystemExit as error:  # of somebody's environment or package: nothing is finished
        raise RunFailed(
            f"`idrl {options.command}` is not finished: code that it called raised SystemExit"
            f"{'' if error.code is None else f'({error.code!r})'}."
        ) from None


def _import_plugins(options) -> None:
    if not options.plugin and not plugins.are_installed():
        return
    from idrl.system.devices import prepare

    prepare(getattr(options, "deterministic", False))  # an import may be the first to use JAX
    plugins.load_installed()
    plugins.load(options.plugin)


def _train(options, console) -> int:
    run = trained(
        console, agent=options.agent, env=options.env, preset=options.preset, steps=options.steps,
        frames=options.frames, envs=options.envs, seeds=options.seeds, seed=options.seed,
        out=options.out, config=options.config,
        settings=options.settings, resume=options.resume,
        tensorboard=options.tensorboard, wandb=options.wandb, sinks=options.sinks,
        debug_nans=options.debug_nans, deterministic=options.deterministic,
    )  # fmt: skip
    return 130 if run is None else 0


def _explain(options, console) -> int:
    from idrl.inspect.explain import explain
    from idrl.report.decisions import decision_figure
    from idrl.runs.loading import open_agent
    from idrl.runs.run import Run

    run = open_agent(options.run)
    home = run.path if isinstance(run, Run) else Path()
    target = Path(options.png) if options.png else home / "explain.png"
    _check_picture(target)
    moment = explain(run, seed=options.seed, step=options.step)
    console.print(moment.table())
    decision_figure(moment.decision, target, moment.title, moment.names)
    console.print(f"The picture is in {target}", markup=False)
    return 0


def _check_picture(target: Path) -> None:
    """Refuse what cannot be drawn before anything is computed."""
    from idrl.storage.files import check_writable

    if not target.is_dir() and target.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise IdrlError(f"--png {str(target)!r} must end in .png, .svg or .pdf.")
    check_writable(target)


def _list(options, console) -> int:
    from idrl.cli import listing

    for title, entries in listing.everything(options.what).items():
        console.print(listing.shown(title, entries, console.width), soft_wrap=True)
    return 0

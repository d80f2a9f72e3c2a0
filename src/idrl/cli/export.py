"""`idrl export`: parse, call, print."""

from __future__ import annotations

from pathlib import Path


def add_parser(commands) -> None:
    """Add `export` to the subparsers of the command line."""
    c = commands.add_parser("export", help="export an agent as ONNX or StableHLO")
    c.add_argument("run", help="a run folder, or a file that agent.save(…) wrote")
    c.add_argument("file", help="what to write; its name ends in .onnx or .stablehlo")
    c.add_argument("--seed", type=int, help="which seed's agent (default: the best)")
    c.add_argument(
        "--rule", choices=("evaluate", "explore"), default="evaluate",
        help="act by the rule it is evaluated with (default), or the one it explores with",
    )  # fmt: skip
    c.add_argument(
        "--weights",
        choices=("best", "latest"),
        default="best",
        help="which weights (default: best)",
    )
    c.add_argument(
        "--mask", action="store_true", help="add a second input: which actions are allowed"
    )
    c.add_argument(
        "--dtype", choices=("float32", "uint8"),
        help="type of observations (default: uint8 for nature_cnn, else float32)",
    )  # fmt: skip
    c.set_defaults(call=_export)


def _export(options, console) -> int:
    from idrl.runs.exporting import check_target
    from idrl.runs.loading import load

    check_target(Path(options.file))
    agent = load(options.run, options.seed, options.weights)
    path = agent.export(options.file, rule=options.rule, mask=options.mask, dtype=options.dtype)
    console.print(repr(agent), markup=False)
    console.print(f"is in {path} ({path.stat().st_size / 1e6:.2g} MB)", markup=False)
    return 0

"""`idrl demo`: parse, call, print."""

from __future__ import annotations

from idrl.cli.training import trained

KEPT = 4  # weights from early in training, for the page and for `idrl play --at`


def add_parser(commands) -> None:
    """Add `demo` to the subparsers of the command line."""
    c = commands.add_parser("demo", help="train the default run and write a page on what happened")
    c.add_argument("--out", help="the run's folder (default: runs/AGENT-ENV-001, …)")
    c.add_argument("--open", action="store_true", help="open the page in a browser")
    c.set_defaults(call=_demo)


def _demo(options, console) -> int:
    run = trained(console, out=options.out, settings={"training": {"keep_weights": KEPT}})
    if run is None:
        return 130
    from idrl.inspect.demo.page import write_demo

    target = write_demo(run, run.path / "demo.html")
    console.print(f"The page is in {target}", soft_wrap=True)
    if options.open:
        import webbrowser

        if not webbrowser.open(target.resolve().as_uri()):
            console.print("There is no browser here to open it.")
    return 0

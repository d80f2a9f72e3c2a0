"""The command line: parse, call, print."""

from __future__ import annotations

from collections.abc import Sequence

from idrl.system.signals import own_process

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, without `arguments` that of this process; see `idrl.cli.app`."""
    if arguments is None:
        own_process()  # before all other imports: Ctrl-C in their midst is a traceback
    from idrl.cli import app

    return app.main(arguments)

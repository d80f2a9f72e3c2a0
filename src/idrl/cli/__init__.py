"""The command line: parse, call, print."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, without `arguments` that of this process; see `idrl.cli.app`."""
    if sys.platform == "win32":
        print("idrl: training needs Linux or macOS; on Windows use WSL.", file=sys.stderr)
        return 2
    if arguments is None:
        from idrl.system.signals import own_process

        own_process()  # before all other imports: Ctrl-C in their midst is a traceback
    from idrl.cli import app

    return app.main(arguments)

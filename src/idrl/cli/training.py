"""A run with its display, for commands that train."""

from __future__ import annotations

import shlex
from typing import Any


def trained(console: Any, **how: Any) -> Any:
    """Train as `idrl.train` does, show it, and end with its table. None: it was interrupted, and
    how to go on was said."""
    from idrl.errors import Interrupted
    from idrl.runs import api
    from idrl.runs.display import LiveDisplay, summary

    with LiveDisplay(console) as display:
        try:
            run = api.train(display=display, **how)
        except Interrupted as stop:
            folder = shlex.quote(str(stop.path))
            display.tell(f"{stop} Continue with: idrl train --resume {folder}")
            return None
    display.tell(summary(run), f"The run is in {run.path}")
    return run

"""Tables, figures and pages. They read run folders, never live training.

`idrl.report(runs, out)` writes a report: this package is also a function, since users and the plan
of the house agree on its name.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from os import PathLike
from types import ModuleType
from typing import Any


class _ReportPackage(ModuleType):
    def __call__(
        self, runs: str | PathLike[str] | Sequence[str | PathLike[str]],
        out: str | PathLike[str] = "report", *,
        reference: str | PathLike[str] | None = None, bands: str = "range",
    ) -> Any:  # fmt: skip
        """Write tables, figures and a page of `runs` (run folders, folders of them, or `Run`s) to
        the folder `out`, as `idrl report` does: `out`/index.html, report.md, and a folder for each
        kind of task.

        `reference` is a file of published curves; `bands` around curves are the "range" from the
        lowest to the highest seed, or 95% "interval"s.
        """
        from idrl.report.writing import make_report

        return make_report(runs, out, reference=reference, band=bands)


sys.modules[__name__].__class__ = _ReportPackage

"""What every page is made of: one file, with its styles, its scripts and Plotly inside."""

from __future__ import annotations

import functools
import html
import json
import math
from importlib import resources
from typing import Any

import numpy as np


def asset(package: str, name: str) -> str:
    return resources.files(package).joinpath("assets", name).read_text(encoding="utf-8")


@functools.cache
def plotly_js() -> str:
    from plotly.offline import get_plotlyjs

    return get_plotlyjs()


def page(title: str, *, style: str, body: str, data: Any, script: str) -> str:
    """`data` is what `script` finds as JSON in #data. What can be read comes before Plotly, which
    takes a browser about a second to load."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("</", "<\\/")  # must not end the element it stands in
    theme = asset("idrl.report", "theme.css")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
<style>
{theme}{style}</style>
</head>
<body>
{body}
<script type="application/json" id="data">{text}</script>
<script>{plotly_js()}</script>
<script>
{script}</script>
</body>
</html>
"""


def plain(values, digits: int = 4) -> list:
    """Numbers for JSON: so many significant digits, null for what is none."""
    return [_short(v, digits) for v in np.asarray(values, float).tolist()]


def _short(value: float, digits: int) -> float | int | None:
    if not math.isfinite(value):
        return None
    value = float(f"{value:.{digits}g}")
    return int(value) if value == int(value) and abs(value) < 2**53 else value

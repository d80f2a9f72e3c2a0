"""What every page is made of: one file, with its styles, its scripts and Plotly inside."""

from __future__ import annotations

import base64
import functools
import hashlib
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
    """See `page_parts`."""
    return "".join(page_parts(title, style=style, body=body, data=data, script=script))


def page_parts(title: str, *, style: str, body: str, data: Any, script: str) -> list[str]:
    """One after the other they are the page: of a large one there is no second copy.

    `data` is what `script` finds as JSON in #data. What can be read comes before Plotly, which
    takes a browser about a second to load."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Nothing in it may look like an element: a script's end is told by more than one sign.
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    scripts = [text, plotly_js(), f"\n{script}"]
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
        f"base-uri 'none'; form-action 'none'; script-src {' '.join(map(_hash, scripts[1:]))}"
    )
    theme = asset("idrl.report", "theme.css")
    head = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
<style>
{theme}{style}</style>
</head>
<body>
{body}
<script type="application/json" id="data">"""
    tail = f"""</script>
<script>{scripts[1]}</script>
<script>{scripts[2]}</script>
</body>
</html>
"""
    return [head, scripts[0], tail]


def _hash(script: str) -> str:
    """What lets a browser run this script and no other."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def plain(values, digits: int = 4) -> list:
    """Numbers for JSON: so many significant digits, null for what is none."""
    return [_short(v, digits) for v in np.asarray(values, float).tolist()]


def _short(value: float, digits: int) -> float | int | None:
    if not math.isfinite(value):
        return None
    value = float(f"{value:.{digits}g}")
    return int(value) if value == int(value) and abs(value) < 2**53 else value

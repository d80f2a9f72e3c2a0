"""Texts of unknown origin, made fit to be shown: names out of files, paths, what others' code says.

Whatever leaves the process for somebody to read goes through here once: a name where it is read,
a sentence where it is printed. Nothing in here knows where it will be shown.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

LONGEST_NAME = 80  # letters
LONGEST_SENTENCE = 2_000


def visible(text: str, keep: str = "") -> str:
    """Without what acts instead of being seen: control characters, escape sequences, marks that
    turn the direction of a line. Each is written as Python would, but for those in `keep`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else _escaped(c) for c in text)


def colourless(text: str) -> str:
    """Without the colours of a terminal; other escape sequences stay, to be made visible."""
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def name(text: Any, most: int = LONGEST_NAME) -> str:
    """A name on one line. One that had to be changed ends in letters of its checksum, so that no
    two names become one."""
    text = str(text)
    shown = visible(text[:most])[:most]
    if shown == text:
        return text
    return f"{shown}…{_digest(text)}"


def title(agent: str, env: str) -> str:
    """Of a run."""
    return f"{name(agent)} on {name(env)}"


def sentence(text: Any, most: int = LONGEST_SENTENCE) -> str:
    """On one line, and no longer than anybody reads: of a long one the beginning and the end."""
    text = str(text)
    if len(text) > most:
        end = most // 5
        text = f"{text[: most - end]} … {text[-end:]}"
    return visible(text)


def value(data: Any) -> str:
    """What a file has in place of something else, as a sentence may quote it."""
    try:
        return sentence(repr(data), 60)
    except (RecursionError, ValueError):  # nested too deeply, or a number of too many digits
        return f"a {type(data).__name__}"


def file_name(text: str, most: int = 60) -> str:
    """A part of a path, of letters that every disk takes."""
    plain = re.sub(r"[^A-Za-z0-9_.=-]+", "-", text).lstrip(".")
    return plain if len(plain) <= most else f"{plain[: most - 7]}-{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def markdown(text: str) -> str:
    """As itself within a line of Markdown."""
    return re.sub(r"([\\`*\[\]<>|])", r"\\\1", text)


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """A CSV file in which no cell is a formula: spreadsheets run what begins like one."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_cell(cell) for cell in row] for row in rows)
    return text.getvalue()


def _cell(cell: Any) -> Any:
    risky = isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{cell}" if risky else cell


_SPELLED = str.maketrans({
    "…": "...", "–": "-", "−": "-", "×": "x", "±": "+/-", "²": "^2", "³": "^3", "→": "->",
    "←": "<-", "↔": "<->", "≈": "~", "≠": "!=", "≥": ">=", "≤": "<=", "∞": "inf", "·": "*",
    "μ": "mu", "σ": "sigma", "ρ": "rho", "λ": "lambda", "τ": "tau", "ε": "epsilon", "θ": "theta",
    "α": "alpha", "β": "beta", "γ": "gamma", "ψ": "psi", "Ψ": "Psi", "δ": "delta", "Δ": "Delta",
    "Γ": "Gamma", "Φ": "Phi", "φ": "phi", "π": "pi", "Σ": "Sigma", "η": "eta", "κ": "kappa",
    "\u0302": "", "√": "sqrt", "∈": "in", "é": "e", "ö": "o", "ü": "u", "ä": "a",
})  # fmt: skip


def spelled(text: str, encoding: str) -> str:
    """What an output of another encoding than UTF-8 can show of it: σ as sigma, others as ?."""
    try:
        text.encode(encoding)
        return text
    except UnicodeEncodeError:
        pass
    except LookupError:
        encoding = "ascii"
    letters = (c if _fits(c, encoding) else c.translate(_SPELLED) for c in text)
    return "".join(letters).encode(encoding, "replace").decode(encoding)


def _fits(letter: str, encoding: str) -> bool:
    try:
        letter.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True

"""A table once, in every form it is wanted in: Markdown, CSV, LaTeX, HTML, a terminal's."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from idrl.system.tables import TextTable
from idrl.system.words import csv_text, markdown

NOTHING = "–"
FORMATS = ("table", "markdown", "csv", "latex")


class Column(NamedTuple):
    """`digits` after the point, for numbers; None for text."""

    name: str
    digits: int | None = None


@dataclass
class Sheet:
    """Rows hold text, numbers, or None where there is nothing. CSV gets numbers in full."""

    name: str  # of its files
    title: str
    columns: Sequence[Column]
    rows: list[list[Any]]
    notes: list[str] = field(default_factory=list)
    keys: int = 1  # columns that say what a row is of

    def cells(self) -> list[list[str]]:
        return [
            [_shown(value, column.digits) for value, column in zip(row, self.columns, strict=True)]
            for row in self.rows
        ]

    def markdown(self) -> str:
        rule = ["---" if c.digits is None else "--:" for c in self.columns]
        lines = [[c.name for c in self.columns], rule, *self.cells()]
        table = "\n".join("| " + " | ".join(map(markdown, line)) + " |" for line in lines)
        notes = map(markdown, self.notes)
        return "\n\n".join([f"### {markdown(self.title)}", table, *notes]) + "\n"

    def csv(self) -> str:
        rows = [["" if _missing(value) else value for value in row] for row in self.rows]
        return csv_text([[c.name for c in self.columns], *rows])

    def latex(self) -> str:
        """A booktabs table."""
        align = "".join("l" if c.digits is None else "r" for c in self.columns)
        head = " & ".join(_tex(c.name) for c in self.columns) + r" \\"
        body = [" & ".join(map(_tex, line)) + r" \\" for line in self.cells()]
        notes = [rf"% {note}" for note in self.notes]
        lines = [
            rf"% {self.title}", *notes, rf"\begin{{tabular}}{{{align}}}", r"\toprule", head,
            r"\midrule", *body, r"\bottomrule", r"\end{tabular}",
        ]  # fmt: skip
        return "\n".join(lines) + "\n"

    def html(self, prefix: str = "") -> str:
        """Headers are buttons that sort; numbers carry their value for it. `prefix`: what makes
        its name one of a kind on the page."""
        head = "".join(
            f'<th scope="col"{_side(c)}><button type="button">{html.escape(c.name)}</button></th>'
            for c in self.columns
        )
        body = []
        for row, line in zip(self.rows, self.cells(), strict=True):
            tds = [
                f"<td{_side(c)}{_value(value)}>{html.escape(cell)}</td>"
                for c, value, cell in zip(self.columns, row, line, strict=True)
            ]
            body.append(f"<tr>{''.join(tds)}</tr>")
        notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in self.notes)
        name = html.escape(prefix + self.name)
        return (
            f'<h3 id="{name}-title">{html.escape(self.title)}</h3><div class="scroll" '
            f'tabindex="0" role="region" aria-labelledby="{name}-title">'
            f'<table class="sortable" id="{name}" aria-labelledby="{name}-title">'
            f"<thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(body)}</tbody></table></div>{notes}"
        )

    def rich(self) -> TextTable:
        words = [i for i, column in enumerate(self.columns) if column.digits is None]
        heads = [column.name for column in self.columns]
        return TextTable(heads, self.cells(), self.title, self.notes, words, self.keys)

    def write(self, folder: Path) -> None:
        for ending, text in (("md", self.markdown()), ("csv", self.csv()), ("tex", self.latex())):
            (folder / f"{self.name}.{ending}").write_text(text, encoding="utf-8")


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _shown(value: Any, digits: int | None) -> str:
    if _missing(value):
        return NOTHING
    if isinstance(value, str) or digits is None:
        return str(value)
    return f"{value:,.{digits}f}"


def _side(column: Column) -> str:
    return "" if column.digits is None else ' class="number"'


def _value(value: Any) -> str:
    return f' data-value="{float(value)!r}"' if isinstance(value, (int, float)) else ""


_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_TEX |= {c: rf"\{c}" for c in "&%$#_{}"} | {"–": "--", "±": r"$\pm$", "²": "$^2$", "−": "$-$"}


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c) for c in text)

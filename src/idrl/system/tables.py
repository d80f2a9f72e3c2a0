"""Tables for a terminal of any width."""

from __future__ import annotations

import html
import io
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rich.cells import cell_len
from rich.table import Table

from idrl.system.printing import Printer
from idrl.system.words import visible

_FRAME = 3  # letters that a column takes besides its own: a line and a space on either side
_HEAD = 10  # letters that a heading may take, however narrow its cells are


@dataclass
class TextTable:
    """Cells never break. Columns that do not fit beside the others follow below, in a table of
    their own that begins with the first `keys` columns again."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    notes: Sequence[str] = ()
    left: Sequence[int] = ()  # columns of words; all others are of numbers
    keys: int = 1
    below: Sequence[Sequence[str]] = field(default_factory=tuple)  # rows under a line of their own

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        def spelled(texts: Sequence[str]) -> list[str]:
            plain = {"markup": False, "emoji": False, "highlight": False}
            return [console.render_str(text, **plain).plain for text in texts]

        # Widths are of what is shown: an output in ASCII takes five letters for a σ.
        shown = replace(
            self,
            heads=spelled(self.heads),
            rows=[*map(spelled, self.rows)],
            below=[*map(spelled, self.below)],
        )
        yield from shown._lines(console, options.max_width)

    def text(self, width: int = 120) -> str:
        """As plain lines."""
        lines = io.StringIO()
        plain = {"no_color": True, "force_terminal": False}
        # in a notebook rich shows what it is to write
        Printer(file=lines, width=width, force_jupyter=False, **plain).print(self)
        return lines.getvalue().rstrip("\n")

    def html(self) -> str:
        """For a notebook, which styles it."""

        def line(tag: str, cells: Sequence[str]) -> str:
            told = (f"<{tag}>{html.escape(visible(cell))}</{tag}>" for cell in cells)
            return f"<tr>{''.join(told)}</tr>"

        rows = "".join(line("td", row) for row in (*self.rows, *self.below))
        notes = "".join(f"<div>{html.escape(visible(note))}</div>" for note in self.notes)
        return (
            f"<div>{html.escape(visible(self.title))}</div><table><thead>{line('th', self.heads)}"
            f"</thead><tbody>{rows}</tbody></table>{notes}"
        )

    def _lines(self, console: Any, room: int) -> Iterator[Any]:
        heads = list(self.heads)
        if 1 + sum(self._widths(heads)) > room:
            heads = [self._wrapped(i) for i in range(len(heads))]
        if self.title:
            yield console.render_str(self.title, style="table.title")
        for part in self._parts(self._widths(heads), room):
            yield self._table(part, heads)
        for note in self.notes:
            yield console.render_str(note, style="table.caption")

    def _parts(self, widths: list[int], room: int) -> list[list[int]]:
        """The columns of each table."""
        keys = list(range(self.keys))
        room -= 1 + sum(widths[i] for i in keys)
        parts: list[list[int]] = [[]]
        left = room
        for i in range(self.keys, len(widths)):
            if parts[-1] and widths[i] > left:
                parts.append([])
                left = room
            parts[-1].append(i)
            left -= widths[i]
        return [keys + part for part in parts]

    def _widths(self, heads: list[str]) -> list[int]:
        lines = (map(cell_len, head.split("\n")) for head in heads)
        return [_FRAME + max(self._cells(i), *of_head) for i, of_head in enumerate(lines)]

    def _cells(self, column: int) -> int:
        return max((cell_len(row[column]) for row in (*self.rows, *self.below)), default=0)

    def _wrapped(self, column: int) -> str:
        """A heading in lines, where there is no room for it in one."""
        room = max(_HEAD, self._cells(column))
        return "\n".join(textwrap.wrap(self.heads[column], room, break_long_words=False))

    def _table(self, columns: list[int], heads: list[str]) -> Table:
        table = Table()
        for i in columns:
            side: Literal["left", "right"] = "left" if i in self.left else "right"
            # Only a column that is alone too wide for the terminal is folded; nothing is cut off.
            table.add_column(heads[i], justify=side, overflow="fold")
        for rows in (self.rows, self.below):
            for row in rows:
                table.add_row(*(row[i] for i in columns))
            table.add_section()
        return table

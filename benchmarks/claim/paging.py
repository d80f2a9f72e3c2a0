"""Puts tables and figures into `docs/benchmark.md`, whose words are written by hand."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from idrl.errors import IdrlError


def fill(page: Path, name: str, results: Path) -> None:
    """Replace what stands between the marks of `name` in `page` by `results`/benchmark.md, with its
    figures beside the page.

    Args:
        page: a Markdown file with a line `<!-- NAME -->` and a line `<!-- end of NAME -->`.
        name: of the marks.
        results: the folder that `tabulate` wrote to.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    text = page.read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        raise IdrlError(f"{str(page)!r} has no lines {begin} and {end}, each once.")
    source = results / "benchmark.md"
    if not source.exists():
        raise IdrlError(f"there is no {str(source)!r}; make the tables first.")
    made = source.read_text(encoding="utf-8").strip()
    images = page.parent / "images"
    images.mkdir(exist_ok=True)

    def moved(found: re.Match) -> str:
        figure = results / found[2]
        target = f"benchmark_{name}_{figure.name.replace('-', '_')}"
        shutil.copyfile(figure, images / target)
        return f"![{found[1]}](images/{target})"

    made = re.sub(r"!\[([^\]]*)\]\(([^)]+)\)", moved, made)
    before, after = text.split(begin)[0], text.split(end)[1]
    page.write_text(f"{before}{begin}\n\n{made}\n\n{end}{after}", encoding="utf-8")

"""Tutorials as notebooks, and a way to run them without Jupyter.

    python docs/notebooks.py                  # writes docs/tutorials/notebooks/*.ipynb
    python docs/notebooks.py run FILE.ipynb   # runs its cells in order, in the current folder
    python docs/notebooks.py pictures         # runs all, and keeps the pictures that pages show

A page is Markdown. Its `python` blocks share one namespace; its `sh` blocks are commands. A `text`
block is what the block before it prints, to the letter; a `console` block shows what a machine may
print, and is not compared.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
TUTORIALS = DOCS / "tutorials"
NOTEBOOKS = TUTORIALS / "notebooks"
PICTURES = DOCS / "images" / "tutorials"
# A kernel's environment need not be activated: then `idrl` is not on its path.
_COMMANDS = """\
import os
import sysconfig

# `idrl` in the cells below is that of this notebook's Python
os.environ["PATH"] = sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"]"""
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"^!\[.*?\]\((.*?)\)\n?", flags=re.MULTILINE)


def pages() -> list[Path]:
    return sorted(path for path in TUTORIALS.glob("*.md") if path.name[0].isdigit())


def notebook(page: Path) -> str:
    """The page as the text of a notebook."""
    text, cells, at = page.read_text(encoding="utf-8"), [], 0
    for block in _BLOCK.finditer(text):
        language, content = block.groups()
        if language not in ("python", "sh", "text"):
            continue
        _add_words(cells, text[at : block.start()])
        at = block.end()
        if language == "text":
            cells[-1]["metadata"]["prints"] = content
        else:
            source = content if language == "python" else "%%bash\n" + content
            cells.append(_cell("code", source.rstrip("\n")))
    _add_words(cells, text[at:])
    commands = [i for i, cell in enumerate(cells) if cell["source"][0] == "%%bash\n"]
    if commands:
        cells.insert(commands[0], _cell("code", _COMMANDS))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _add_words(cells: list[dict[str, Any]], text: str) -> None:
    """Pictures are left out, since the cells before them draw them; links start one folder up."""
    text = _PICTURE.sub("", text)
    text = re.sub(r"\]\((?!https?:|#)(.+?)\)", r"](../\1)", text).replace("[](", "[this page](")
    if text.strip():
        cells.append(_cell("markdown", text.strip("\n")))


def _cell(kind: str, source: str) -> dict[str, Any]:
    cell = {"cell_type": kind, "id": "", "metadata": {}, "source": source.splitlines(True)}
    return cell if kind == "markdown" else cell | {"execution_count": None, "outputs": []}


def pictures_of(page: Path) -> list[Path]:
    """The pictures that the page shows and its own code draws."""
    shown = _PICTURE.findall(page.read_text(encoding="utf-8"))
    found = [(page.parent / name).resolve() for name in shown]
    return [picture for picture in found if picture.parent == PICTURES]


def run(file: Path) -> None:
    """Run the cells of a notebook here; what they print is compared where the page says it."""
    cells = [
        c for c in json.loads(file.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"
    ]
    names: dict[str, Any] = {"__name__": "__main__"}
    os.environ.setdefault("MPLBACKEND", "Agg")
    for number, cell in enumerate(cells, 1):
        source = "".join(cell["source"])
        if source.startswith("%%bash\n"):
            lines = source.partition("\n")[2]
            subprocess.run(["bash", "-euo", "pipefail", "-c", lines], check=True)
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(source, f"{file.name}, code cell {number}", "exec"), names)
        print(out.getvalue(), end="")
        said = cell["metadata"].get("prints")
        if said is not None and out.getvalue() != said:
            raise SystemExit(f"{file.name}: code cell {number} does not print\n{said}")


def write() -> None:
    NOTEBOOKS.mkdir(exist_ok=True)
    for page in pages():
        (NOTEBOOKS / f"{page.stem}.ipynb").write_text(notebook(page), encoding="utf-8")


def draw(only: list[str]) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    for page in pages():
        if only and not any(page.name.startswith(name) for name in only):
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = NOTEBOOKS / f"{page.stem}.ipynb"
            subprocess.run([sys.executable, __file__, "run", str(file)], cwd=folder, check=True)
            for picture in pictures_of(page):
                shutil.copy(Path(folder) / picture.name, picture)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["run", name]:
            run(Path(name))
        case ["pictures", *only]:
            write()
            draw(only)
        case []:
            write()
        case _:
            raise SystemExit(__doc__)

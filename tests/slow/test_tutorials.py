"""Tutorials and examples run as they stand, each in an empty folder and a process of its own."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SCRIPT = DOCS / "notebooks.py"
EXAMPLES = [
    "train_and_save", "own_gymnasium_env", "own_rule", "many_seeds_and_report",
    "evaluate_and_explain",
]  # fmt: skip

spec = importlib.util.spec_from_file_location("notebooks", SCRIPT)
notebooks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(notebooks)


def run(arguments, folder):
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("page", notebooks.pages(), ids=lambda page: page.stem)
def test_a_tutorial_runs_and_draws_what_it_shows(page, tmp_path):
    notebook = notebooks.NOTEBOOKS / f"{page.stem}.ipynb"  # `test_docs.py`: it is the page
    run([SCRIPT, "run", notebook], tmp_path)
    assert "## Exercise" in page.read_text(encoding="utf-8")
    for picture in notebooks.pictures_of(page):
        assert (tmp_path / picture.name).is_file()
        assert picture.is_file()


@pytest.mark.parametrize("name", ["index", "getting-started"])
def test_the_first_pages_run(name, tmp_path):
    notebook = tmp_path / f"{name}.ipynb"
    text = notebooks.notebook(DOCS / f"{name}.md")
    assert any(cell["cell_type"] == "code" for cell in json.loads(text)["cells"])
    notebook.write_text(text, encoding="utf-8")
    run([SCRIPT, "run", notebook], tmp_path)


def test_a_page_that_prints_something_else_is_noticed(tmp_path):
    page = tmp_path / "1-page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n", encoding="utf-8")
    notebook = tmp_path / "page.ipynb"
    notebook.write_text(notebooks.notebook(page), encoding="utf-8")
    with pytest.raises(AssertionError, match="does not print"):
        run([SCRIPT, "run", notebook], tmp_path)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name, tmp_path):
    said = run([ROOT / "examples" / f"{name}.py"], tmp_path)
    assert said
    made = {"train_and_save": "model.safetensors", "many_seeds_and_report": "report/index.html",
            "evaluate_and_explain": "play.html"}.get(name, "runs")  # fmt: skip
    assert (tmp_path / made).exists()


def test_every_example_is_run_by_a_test():
    names = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert names == {*EXAMPLES, "dqn_ids_from_parts"}

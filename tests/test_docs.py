"""The pages: links lead somewhere, notebooks are the tutorials."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *DOCS.rglob("*.md"),
        *ROOT.glob("results/*/*.md"),
    ]
)


def load(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def slug(title):
    """The anchor of a heading, as GitHub and MyST make it."""
    kept = re.sub(r"[^\w\- ]", "", re.sub(r"[`*]|\[(.*?)\]\(.*?\)", r"\1", title).lower())
    return kept.strip().replace(" ", "-")


def anchors(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return {slug(title) for title in re.findall(r"^#+ (.+)$", text, flags=re.M)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), target


def test_notebooks_are_the_tutorials_as_they_are():
    notebooks = load("notebooks")
    made = {page.stem: notebooks.notebook(page) for page in notebooks.pages()}
    assert len(made) == 6
    committed = {
        path.stem: path.read_text(encoding="utf-8") for path in notebooks.NOTEBOOKS.glob("*.ipynb")
    }
    assert committed == made, "python docs/notebooks.py"

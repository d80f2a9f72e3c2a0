"""The pages: links lead somewhere, notebooks are the tutorials, everything public is described."""

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


def linked(page):
    """What the words of a page lead to, as pages with their anchors."""
    found = re.findall(r"\]\(([\w./-]+\.md(?:#[\w-]+)?)\)", page.read_text(encoding="utf-8"))
    return {str((page.parent / target).resolve().relative_to(DOCS)) for target in found}


@pytest.mark.parametrize(
    "target",
    [
        "getting-started.md",  # how to install, in its first lines
        "tutorials/3-your-own-environment.md",
        "extending.md#a-rule",
        "paper.md",
        "speed.md",
        "promises.md",
    ],
)
def test_two_clicks_from_the_index(target):
    first = linked(DOCS / "index.md")
    second = set().union(*(linked(DOCS / page.partition("#")[0]) for page in first))
    assert target in first | second


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("results/*/README.md")), ids=lambda p: p.parent.name
)
def test_a_study_has_four_parts_and_a_commit(page):
    text = page.read_text(encoding="utf-8")
    parts = re.findall(r"^##+ (Question|Protocol|Result|Limitations)$", text, flags=re.M)
    assert parts == ["Question", "Protocol", "Result", "Limitations"] * (len(parts) // 4)
    assert parts
    assert re.search(r"commits?( \|)?\s.*?`[0-9a-f]{7}`", text, flags=re.S)


def test_notebooks_are_the_tutorials_as_they_are():
    notebooks = load("notebooks")
    made = {page.stem: notebooks.notebook(page) for page in notebooks.pages()}
    assert len(made) == 6
    committed = {
        path.stem: path.read_text(encoding="utf-8") for path in notebooks.NOTEBOOKS.glob("*.ipynb")
    }
    assert committed == made, "python docs/notebooks.py"


def test_everything_public_is_described_and_in_the_reference():
    reference = load("reference")
    assert list(reference.undescribed()) == []
    pages = [DOCS / "api.md", *(DOCS / "reference").glob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    shown = set(re.findall(r"^\.\. (?:auto\w+|py:function):: ([\w.]+)", text, flags=re.M))
    for path in re.findall(r"^% module (\S+)$", text, flags=re.M):
        shown |= {name for name, _ in reference.members(path)}
    for category in re.findall(r"^% kinds (\S+)$", text, flags=re.M):
        shown |= {f"{part.__module__}.{part.__qualname__}" for part in reference.parts(category)}
    assert len(shown) > 100
    assert reference.public().keys() - shown == set()


def test_what_is_not_described_is_noticed(monkeypatch):
    reference = load("reference")

    def silent(one): ...

    def half(one, two):
        """Of two.

        Args:
            one: the first.
        """

    monkeypatch.setattr(reference, "public", lambda: {"silent": silent, "half": half})
    said = list(reference.undescribed())
    assert said == ["silent has no docstring", "half does not describe 'two'"]

"""The plan of the house: parts are asked what they can do, not which class they are of; a name
means one thing; few modules lie flat at the top. (What may import what is import-linter's.)"""

import ast
import re
import tomllib
from collections import defaultdict
from importlib import metadata
from pathlib import Path

import pytest

import idrl
from idrl.agents.optimisers import Optimiser
from idrl.agents.rule_base import Rule
from idrl.networks.heads import Head
from idrl.networks.trunks import Trunk
from idrl.storage.folder import versions

SOURCE = Path(idrl.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
PARTS = [
    part
    for category in (Rule, Head, Trunk, Optimiser)
    for part in category.kinds.values()
    if part.is_built_in()
]
KINDS = {part.kind for part in PARTS}
HOME = {part.__name__: part.__module__ for part in PARTS}


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def classes_asked_for(tree: ast.AST):
    """Names in the second argument of `isinstance`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            for name in ast.walk(node.args[1]):
                if isinstance(name, (ast.Name, ast.Attribute)):
                    yield name.id if isinstance(name, ast.Name) else name.attr, node.lineno


def kinds_compared(tree: ast.AST):
    """Kinds of parts that something's `.kind` or `["kind"]` is compared with."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        inside = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]
        asked = any(
            (isinstance(part, ast.Attribute) and part.attr == "kind")
            or (isinstance(part, ast.Subscript) and getattr(part.slice, "value", "") == "kind")
            for part in inside
        )
        for part in inside if asked else ():
            if isinstance(part, ast.Constant) and part.value in KINDS:
                yield part.value, node.lineno


def offences(path: Path) -> list[str]:
    module, tree = module_of(path), tree_of(path)
    found = [
        f"{path.name}:{line} asks for {name}"
        for name, line in classes_asked_for(tree)
        if HOME.get(name, module) != module
    ]
    # Bandits have rules of another sort, and may not know the agents'.
    if not module.startswith("idrl.bandits"):
        home = {part.kind for part in PARTS if part.__module__ == module}
        compared = ((kind, line) for kind, line in kinds_compared(tree) if kind not in home)
        found += [f"{path.name}:{line} compares {kind!r}" for kind, line in compared]
    return found


def test_nobody_asks_a_part_for_its_class_or_kind():
    assert len(PARTS) > 20
    assert [told for path in FILES for told in offences(path)] == []


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(head, (Ensemble, Bayesian))",
        "isinstance(rule, choosing.Ids | None)",
        "spec.trunk.kind == 'nature_cnn'",
        "agent['explore']['kind'] in ('ids', 'ucb')",
        "'adam' != optimiser.kind",
    ],
)
def test_the_scan_sees_what_it_is_for(text, tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.SOURCE", tmp_path / "idrl")
    path = tmp_path / "idrl" / "somewhere.py"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    assert offences(path)


def test_no_class_name_is_there_twice():
    places = defaultdict(list)
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module_of(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_few_modules_lie_flat_at_the_top():
    flat = sorted(path.stem for path in SOURCE.glob("*.py") if path.stem != "__init__")
    assert len(flat) <= 6, flat


def test_the_version_is_said_once_and_needs_no_install(monkeypatch):
    """A source tree on PYTHONPATH is not installed, and its runs and models say a version too."""
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == idrl.__version__

    def unknown(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", unknown)
    assert versions()["idrl"] == idrl.__version__
    asked = [
        path.name for path in FILES if re.search(r"metadata\.version\(.idrl", path.read_text())
    ]
    assert not asked

"""The pages on agents: all are there, their pictures and numbers are true, their commands work."""

import csv
import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from idrl.agents import declared
from idrl.config import assignments, resolve

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "agents"
IMAGES = ROOT / "docs" / "images" / "agents"
AGENTS = sorted({path.stem for path in PAGES.glob("*.md")} - {"index", "choosing"})


def load_script(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def resolve_command(line):
    """The config of an `idrl train AGENT ENV …` line, as the command line would make it."""
    words = shlex.split(line, comments=True)
    assert words[:2] == ["idrl", "train"]
    settings = words[words.index("--set") + 1 :] if "--set" in words else []
    return resolve(words[2], words[3], changes=assignments(s for s in settings if "=" in s))


def test_every_agent_has_a_page():
    # Not `agent_names()`: other tests register agents of their own in the same process.
    files = (ROOT / "src" / "idrl" / "agents").glob("*.py")
    found = [re.findall(r'@agent\("(.+?)"', path.read_text(encoding="utf-8")) for path in files]
    names = {name for some in found for name in some}
    assert len(names) >= 20
    assert names == set(AGENTS)


@pytest.mark.parametrize("place", ["docs/agents/index.md", "README.md", "CHANGELOG.md"])
def test_all_agents_are_named(place):
    text = (ROOT / place).read_text(encoding="utf-8")
    assert [name for name in AGENTS if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", AGENTS)
def test_a_page(name):
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    for part in ("## Origin", "## Where it differs", "## Run it", "## Measured", "```text"):
        assert part in text
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (PAGES / picture).is_file()
    commands = re.findall(r"^idrl train .*$", text, flags=re.MULTILINE)
    assert commands
    assert name in commands[0].split()
    for command in commands:
        resolve_command(command)


def test_pictures_are_of_the_declarations_as_they_are():
    drawing = load_script(ROOT / "docs" / "draw_agents.py")
    for name in AGENTS:
        committed = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
        assert committed == drawing.draw(name, declared(name)), "python docs/draw_agents.py"
    assert {path.stem for path in IMAGES.glob("*.svg")} == set(AGENTS)


def test_numbers_are_those_of_the_declarations_as_they_are():
    numbers = load_script(ROOT / "docs" / "number_agents.py")
    assert set(numbers.SOURCES) == {name for name in AGENTS if declared(name).actor is None}
    for name in numbers.SOURCES:
        text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
        assert text == numbers.page(name, text), "python docs/number_agents.py"


def test_a_picture_shows_what_the_settings_change():
    drawing = load_script(ROOT / "docs" / "draw_agents.py")
    plain = drawing.draw("c51-ids", declared("c51-ids"))
    changed = resolve_command(
        "idrl train c51-ids deep_sea/10 --set heads.z.trunk_gradient=0.5 heads.q.noisy=0.4 "
        "learning.priority=0.7 heads.q.mask_prob=0.5 explore.lam=3"
    )
    drawn = drawing.draw("c51-ids", changed.spec)
    for words in ("gradient × 0.5", "σ₀ = 0.4", "α = 0.7", "sees 0.5", "scale 0.3", "λ = 3"):
        assert words in drawn
        assert words not in plain


def test_compositions_of_the_index_resolve():
    text = (PAGES / "index.md").read_text(encoding="utf-8")
    table = text.split("## Compositions")[1].split("\n\n")[2]
    told = re.findall(r"`((?:[\w.]+=[^\s`]+ ?)+)`", table)
    assert len(told) >= 12
    for settings in told:
        resolve_command(f"idrl train c51-ids deep_sea/10 --set {settings}")


def test_numbers_of_the_pages_are_those_measured():
    with open(ROOT / "results" / "agents" / "summary.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    index = (PAGES / "index.md").read_text(encoding="utf-8").split("## Measured")[1]
    for row in rows:
        text = (PAGES / f"{row['agent']}.md").read_text(encoding="utf-8").split("## Measured")[1]
        line = next(line for line in text.split("\n") if line.startswith(f"- `{row['task']}`"))
        cell = next(line for line in index.split("\n") if line.startswith(f"| `{row['agent']}`"))
        for said in (line, cell):
            assert f"{row['solved']} of {row['seeds']}" in said
            assert f"{float(row['last']):.3g} ± {float(row['last_ci95']):.3g}" in said
    numbered = {name for name in AGENTS if declared(name).actor is None}
    assert {row["agent"] for row in rows if row["task"] == "deep_sea/10"} == numbered

"""The page on bandits runs as it stands, and prints what it says it prints."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "bandits.md"


def blocks(text):
    """(language, content) of every fenced block, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def test_the_page_runs_and_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = blocks(PAGE.read_text(encoding="utf-8"))
    names: dict = {}
    printed, ran = "", 0
    for language, content in found:
        if language == "none":
            Path("measurements.csv").write_text(content, encoding="utf-8")
        elif language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(content, str(PAGE), "exec"), names)
            printed, ran = out.getvalue(), ran + 1
        elif language == "text":
            assert printed == content
            printed = ""
    assert ran >= 6
    assert printed == ""  # every output is shown


def test_the_pictures_of_the_page_are_there():
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", PAGE.read_text(encoding="utf-8"))
    assert pictures
    for picture in pictures:
        assert (PAGE.parent / picture).is_file()


def test_the_page_names_every_rule():
    from idrl.bandits import RULES

    assert all(f"| `{name}` |" in PAGE.read_text(encoding="utf-8") for name in RULES)

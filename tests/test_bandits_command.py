"""`idrl bandit`: the files it writes, what it prints, and that no option is left unused."""

import argparse
import csv
import io
import subprocess
import sys

import pytest
from rich.console import Console

from idrl import IdrlError
from idrl.cli.bandit import add_parser


def bandit(*words):
    top = argparse.ArgumentParser(exit_on_error=False)
    add_parser(top.add_subparsers(dest="command"))
    options = top.parse_args(["bandit", *words])
    out = io.StringIO()
    assert options.call(options, Console(file=out, width=120, highlight=False)) == 0
    return out.getvalue()


def is_png(path):
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.slow
def test_the_figure(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = bandit()
    assert is_png(tmp_path / "bandit.png")
    assert "IDS: 0 of 20 samples" in said
    assert "bandit.png" in said


def test_the_figure_has_four_panels(tmp_path):
    from idrl.bandits import figure

    drawn = []
    original = figure.figure

    def grid(*args, **kwargs):
        made, axes = original(*args, **kwargs)
        drawn.append(axes)
        return made, axes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure, "figure", grid)
        figure.bandit_figure(tmp_path / "f.png")
    titles = [axis.get_title(loc="left") for axis in drawn[0][0]]
    assert titles == [
        "(a) prior",
        "(b) UCB, 20 samples",
        "(c) Thompson sampling, 20 samples",
        "(d) IDS, 20 samples",
    ]


def test_regret_writes_curves_and_a_table(tmp_path):
    said = bandit(
        "regret", "--setting", "two-group", "--seeds", "3", "--steps", "25", "--seed", "7",
        "--rules", "ids", "ucb", "--out", str(tmp_path / "r.png"),
    )  # fmt: skip
    assert is_png(tmp_path / "r.png")
    with open(tmp_path / "r.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["rule"] for row in rows] == ["ids", "ucb"]
    assert rows[0]["setting"] == "two-group"
    assert (rows[0]["seeds"], rows[0]["steps"]) == ("3", "25")
    assert float(rows[0]["regret"]) > 0
    assert float(rows[0]["regret_95"]) > 0
    assert float(rows[1]["minus_ucb"]) == 0
    assert "minus_thompson" not in rows[0]
    assert "two-group" in said
    assert "r.csv" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--setting", "gp"], "--setting belongs to `idrl bandit regret`"),
        (["--seeds", "3"], "--seeds belongs to `idrl bandit regret`"),
        (["figure", "--rules", "ids"], "--rules belongs to"),
        (["regret", "--samples", "3"], "--samples belongs to `idrl bandit`"),
        (["regret", "--setting", "camel"], "did you mean 'camelback'"),
        (["regret", "--rules", "ids", "tompson"], "did you mean 'thompson'"),
        (["--out", "no/such/f.png"], "there is no folder"),
        (["--out", "f.txt"], "must end in .png"),
        (["--lam", "nan"], "lam=nan"),
    ],
)
def test_bad_options_are_told_in_one_sentence(words, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IdrlError, match=sentence):
        bandit(*words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["--seeds", "0"], ["--seed", "-1"], ["--samples", "x"]])
def test_numbers_must_be_numbers(words):
    with pytest.raises((argparse.ArgumentError, SystemExit)):
        bandit(*words)


def test_the_parser_is_quick_to_load():
    code = (
        "import sys, idrl.cli.bandit; "
        "sys.exit(any(m in sys.modules for m in ('jax', 'numpy', 'matplotlib')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

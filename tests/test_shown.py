"""What is printed: numbers, intervals and tables, at any width, and only what means something."""

import io

import numpy as np
import pytest
from rich.console import Console

from idrl.agents import agent_names, declared
from idrl.agents.telling import told
from idrl.cli import listing
from idrl.cli.app import main
from idrl.report.statistics import Estimate, mean_bounds, mean_over_seeds, short
from idrl.system.printing import Printer
from idrl.system.tables import TextTable


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.99, "0.99"), (0.012345, "0.0123"), (37.54, "37.5"), (1600, "1,600"),
        (-1234.5, "-1,234"), (1.23e-7, "1.23e-07"), (float("nan"), "nan"),
    ],
)  # fmt: skip
def test_numbers_have_three_digits(value, text):
    assert short(value) == text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([120, 500], "310 (120 to 500)"),  # two seeds: their range
        ([0.99] * 8, "0.99 (0.99 to 0.99)"),
        ([992.1, 991.8, 992.0], "992.0 (991.8 to 992.1)"),  # as many digits as tell the ends apart
        ([9.0, np.nan], "9"),
        ([np.nan], "–"),
        ([], "–"),
    ],
)
def test_a_mean_is_shown_with_its_interval(values, text):
    assert str(mean_over_seeds(values)) == text


def test_an_interval_never_leaves_what_was_seen():
    scores = np.array([500.0] * 7 + [100.0])  # Student's would reach beyond 500
    found = mean_over_seeds(scores)
    assert 100 <= found.low < found.value < found.high <= 500
    low, high = mean_bounds(np.stack([scores, np.where(scores == 100, np.nan, scores)], 1))
    assert low[0] == pytest.approx(found.low, abs=15)
    assert (low[1], high[1]) == (500, 500)
    assert str(Estimate(375.0, 120.0, 500.0)) == "375 (120 to 500)"


def printed(what, width):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(what)
    return console.export_text()


def test_columns_that_do_not_fit_follow_below():
    heads = ["seed", "last evaluation", "best evaluation", "solved at episode"]
    rows = [[str(i), "0.99 (0.98 to 1.00)", "0.99 (0.98 to 1.00)", "1,234"] for i in range(2)]
    table = TextTable(heads, rows, "c51-ids[x] on deep_sea/10", ["A note."], below=[["all"] * 4])
    wide, narrow = printed(table, 120), printed(table, 60)
    assert wide.count("seed") == 1
    assert narrow.count("seed") == 2
    assert max(map(len, narrow.splitlines())) <= 60
    assert "…" not in narrow
    for text in (wide, narrow):
        assert text.count("0.99 (0.98 to 1.00)") == 4
        assert text.count("1,234") == 2
        assert "A note." in text


def test_a_table_is_plain_text_in_a_notebook_too(monkeypatch):
    """Where rich would show it, and write nothing."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert TextTable(["seed", "score"], [["3", "0.5"]], "a run").text().splitlines() == [
        "a run", "┏━━━━━━┳━━━━━━━┓", "┃ seed ┃ score ┃", "┡━━━━━━╇━━━━━━━┩", "│    3 │   0.5 │",
        "└──────┴───────┘",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [30, 40, 80])
def test_columns_are_as_wide_as_an_ascii_output_spells_them(width):
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    heads = ["action", "μ", "σ", "ρ²", "Δ̂", "Δ̂²/I"]
    rows = [["0", "0.3499", "0.07987", "σ 12345", "0.5374", "45.35"]]
    Printer(file=output, width=width).print(TextTable(heads, rows))
    output.flush()
    text = output.buffer.getvalue().decode()
    for cell in ("0.07987", "sigma 12345", "rho^2", "Delta^2/I"):
        assert f" {cell} |" in text, "no cell is broken"
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("width", [40, 60, 200])
def test_a_list_keeps_every_word(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    wide = [line for line in out.splitlines() if len(line) > width]
    assert not [line for line in wide if len(line.split()) > 1]  # a name is never cut
    plain = " ".join(out.split())
    for entries in listing.everything().values():
        for name, line in entries.items():
            assert f"{name} {line}" in plain
    assert "(idrl[atari])" in plain


def test_a_summary_is_a_whole_sentence():
    from idrl.schema import first_paragraph

    assert (
        first_paragraph("""Goes on
        in a second line.

        And more.""")
        == "Goes on in a second line."
    )


@pytest.mark.parametrize(
    ("agent", "names"),
    [
        ("dqn", ("mu",)), ("c51", ("mu",)), ("td3", ("mu", "sigma")),
        ("bootstrapped-dqn", ("mu", "sigma")),
        ("c51-ids", ("mu", "sigma", "rho2", "regret", "info_gain", "ratio")),
    ],
)  # fmt: skip
def test_an_agent_is_told_by_what_its_parts_mean(agent, names):
    assert told(declared(agent)) == names
    assert agent in agent_names()

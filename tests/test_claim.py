"""What `benchmarks.claim` makes of finished studies: files, tables, a page, models."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
import small
import tomli_w
from benchmarks.claim import collecting, diagnosing, models, paging, scoring, tabulating, training
from benchmarks.claim.__main__ import main
from run_folders import freeze, made_up_run, write_csv

import idrl
from idrl.cli.app import main as command
from idrl.errors import IdrlError
from idrl.report import figures
from idrl.report.grouping import sections
from idrl.report.reading import read_runs
from idrl.report.statistics import chance_better, estimate, iqm

GAMES = ("minatar/breakout", "minatar/asterix")
AGENTS = {"dqn": 4.0, "dqn-ids": 8.0, "c51-ids": 12.0}


@pytest.fixture
def study(tmp_path):
    """Finished runs of three agents in two games; one run more is not finished."""
    folder = tmp_path / "study"
    for game in GAMES:
        for agent, level in AGENTS.items():
            path = folder / f"{agent}-{game.replace('/', '-')}"
            made_up_run(path, agent, game, seeds=4, seed=100, level=level, distributions=True)
            finish(path, agent)
    made_up_run(folder / "late", "dqn", "minatar/freeway", seeds=4, seed=100, done=300)
    return folder


def finish(path, agent, seeds=range(100, 104), share=10):
    """With the metrics of a real run, and how it explores."""
    config = idrl.storage.files.read_toml(path / "config.toml")
    config["explore"]["kind"] = "ids" if agent.endswith("ids") else "epsilon_greedy"
    (path / "config.toml").write_text(tomli_w.dumps(config))
    write_csv(
        path / "metrics.csv",
        [
            {"seed": seed, "steps": step, "episode_return": step / 100, "not_greedy": share / step}
            for seed in seeds
            for step in range(10, 1001, 10)
        ],
    )


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_every_evaluation_and_thinned_curves_are_collected(study, tmp_path):
    out = tmp_path / "out"
    (left,) = collecting.collect([study], out)
    assert "unfinished: 300 of 1,000 steps" in left.why
    evaluations = rows(out / "evaluations.csv")
    assert len(evaluations) == 2 * 3 * 4 * 10
    assert {row["env"] for row in evaluations} == set(GAMES)
    training = [r for r in rows(out / "training.csv") if (r["env"], r["seed"]) == (GAMES[0], "100")]
    assert len(training) == 3 * collecting.POINTS
    assert float(training[0]["episode_return"]) == pytest.approx(0.15)  # of steps 10 and 20
    diagnostics = rows(out / "diagnostics.csv")
    assert {row["agent"] for row in diagnostics} == {"dqn-ids", "c51-ids"}
    assert {row["quantity"] for row in diagnostics} == {"not_greedy", "sigma2", "rho2"}


def test_what_is_collected_again_replaces_itself_alone(study, tmp_path):
    out = tmp_path / "out"
    collecting.collect([study], out)
    before = (out / "evaluations.csv").read_text(), (out / "training.csv").read_text()
    collecting.collect([study / "dqn-minatar-breakout"], out)
    assert before == ((out / "evaluations.csv").read_text(), (out / "training.csv").read_text())
    more = made_up_run(tmp_path / "more", "dqn", GAMES[0], seeds=2, seed=104)
    finish(more, "dqn")
    collecting.collect([more], out)
    assert len(rows(out / "evaluations.csv")) == 2 * 3 * 4 * 10 + 2 * 10


def test_diagnostics_are_over_the_seeds_of_all_runs(study, tmp_path):
    """Collected together or one after the other, and twice."""
    collecting.collect([study], tmp_path)
    more = made_up_run(
        tmp_path / "more", "dqn-ids", GAMES[0], seeds=2, seed=104, distributions=True
    )
    finish(more, "dqn-ids", seeds=range(104, 106), share=40)
    for _ in range(2):
        collecting.collect([tmp_path / "more"], tmp_path)
    found = rows(tmp_path / "diagnostics.csv")
    wanted = (GAMES[0], "dqn-ids", "not_greedy")
    mine = [row for row in found if (row["env"], row["agent"], row["quantity"]) == wanted]
    assert [row["seeds"] for row in mine[:: collecting.POINTS]] == ["100-103", "104-105"]
    half = made_up_run(tmp_path / "half", "dqn-ids", GAMES[0], seeds=1, seed=105)
    finish(half, "dqn-ids", seeds=[105])
    files = {name: (tmp_path / name).read_text() for name in collecting.FILES}
    with pytest.raises(IdrlError, match="rows over seeds 104-105 of dqn-ids on minatar/breakout"):
        collecting.collect([half], tmp_path)
    assert files == {name: (tmp_path / name).read_text() for name in collecting.FILES}
    steps = diagnosing.together(mine)
    assert len({row["steps"] for row in steps}) == len(steps) == collecting.POINTS
    for row in steps:  # four seeds of one run, two of the other with four times as much
        assert row["highest"] == pytest.approx(4 * row["lowest"], rel=1e-3)
        assert row["mean"] == pytest.approx(2 * row["lowest"], rel=1e-3)


def test_runs_with_settings_of_their_own_stand_beside_the_study(study, tmp_path):
    out = tmp_path / "out"
    words = ["collect", str(study), "--out", str(out)]
    assert main(words) == 0
    assert main(["collect", *(str(study / f"dqn-{game.replace('/', '-')}") for game in GAMES),
                 "--out", str(out), "--variant", "Adam"]) == 0  # fmt: skip
    section = scoring.section_of(out / "evaluations.csv")
    for game in GAMES:
        groups = section.tasks[game]
        assert set(groups) == {*AGENTS, "dqn (Adam)"}
        assert (groups["dqn (Adam)"].scores() == groups["dqn"].scores()).all()
        plain, variant = groups["dqn"].look, groups["dqn (Adam)"].look
        assert plain.colour == variant.colour
        assert plain.dash != variant.dash
    made = {sheet.name: sheet for sheet in tabulating.sheets(section)}
    assert "dqn (Adam)" in [row[0] for row in made["improvement"].rows]


def test_a_legend_has_each_agent_once(study, tmp_path):
    more = made_up_run(tmp_path / "more", "dqn", GAMES[0], seeds=1, seed=104)
    finish(more, "dqn", seeds=[104])
    collecting.collect([study, more], tmp_path)
    drawn = figures._curves(scoring.section_of(tmp_path / "evaluations.csv"), "range", {})
    told = sorted(text.get_text() for text in drawn.legends[0].get_texts())
    assert told == ["c51-ids, 4 seeds", "dqn, 4 to 5 seeds", "dqn-ids, 4 seeds"]


def test_the_files_alone_give_the_scores_of_the_run_folders(study, tmp_path):
    out = tmp_path / "out"
    collecting.collect([study], out)
    (folders,), _ = sections(read_runs([study])[0])
    shutil.rmtree(study)
    section = scoring.section_of(out / "evaluations.csv")
    assert section.protocol == folders.protocol
    for game in GAMES:
        for agent in AGENTS:
            theirs = folders.tasks[game][agent].scores()
            assert section.tasks[game][agent].scores() == pytest.approx(theirs, rel=1e-4)


def test_training_episodes_are_a_table_and_a_figure(study, tmp_path):
    out = tmp_path / "out"
    collecting.collect([study], out)
    found = rows(out / "training.csv")
    section = scoring.section_of(out / "evaluations.csv")
    sheet = training.training_sheet(found, section)
    assert [column.name for column in sheet.columns] == ["agent", "asterix", "breakout"]
    # made up: a hundredth of the step, 10 to 1,000, on every seed
    assert sheet.rows == [[agent, *["5.05 (5.05 to 5.05)"] * 2] for agent in sorted(AGENTS)]
    alone = [row for row in found if (row["env"], row["seed"]) == (GAMES[0], "100")]
    less = training.training_sheet([r for r in alone if r["agent"] != "dqn"], section)
    assert [len(row) for row in less.rows] == [2] * len(AGENTS)
    assert {row[0]: row[1] for row in less.rows}["dqn"] is None
    assert any("One seed" in note for note in less.notes)
    assert training.training_sheet([], section) is None
    ((name, about),) = training.write_training(found, tmp_path)
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000
    assert "mean over seeds" in about
    assert training.write_training([], tmp_path) == []


def test_random_play_is_0_and_the_best_agents_mean_1(study, tmp_path):
    out = tmp_path / "out"
    collecting.collect([study], out)
    section = scoring.section_of(out / "evaluations.csv")
    made = {sheet.name: sheet for sheet in tabulating.sheets(section)}
    by_agent = {row[0]: row for row in made["aggregates"].rows}
    random = {row["env"]: float(row["random"]) for row in rows(scoring.RANDOM)}
    scaled = {}
    for agent in AGENTS:
        found = [section.tasks[game][agent].scores() for game in sorted(GAMES)]
        best = [section.tasks[game]["c51-ids"].scores().mean() for game in sorted(GAMES)]
        zero = [random[game] for game in sorted(GAMES)]
        scaled[agent] = [(x - z) / (b - z) for x, z, b in zip(found, zero, best, strict=True)]
        assert by_agent[agent][5:8] == pytest.approx(list(estimate(scaled[agent], iqm)))
    assert np.concatenate(scaled["c51-ids"]).mean() == pytest.approx(1.0)
    better = {row[0]: row for row in made["improvement"].rows}
    assert set(better) == {"dqn-ids", "c51-ids"}
    assert all(row[1] == "dqn" for row in better.values())
    assert better["dqn-ids"][3:] == list(chance_better(scaled["dqn-ids"], scaled["dqn"]))
    assert [row[0] for row in made["profile"].rows] == sorted(AGENTS)


def test_what_was_not_run_is_named(study, tmp_path):
    out = tmp_path / "out"
    collecting.collect([study], out)
    text = tabulating.markdown(scoring.section_of(out / "evaluations.csv"), "minatar", [])
    assert "- all runs: 1,000 of 1,500,000 steps" in text
    assert "- `minatar/freeway`: all agents" in text
    assert "- `minatar/breakout`: `dqn` (4 of 10 seeds), `bootstrapped-dqn`" in text


def test_two_runs_of_one_seed_are_refused(study, tmp_path, capsys):
    adam = made_up_run(study / "adam", "dqn", GAMES[0], seeds=1, seed=103, level=99.0)
    finish(adam, "dqn", seeds=[103])
    assert main(["collect", str(study), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert "are both seed 103 of dqn on minatar/breakout" in told
    assert told.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_seeds_of_unequal_lengths_share_no_table(study, tmp_path, capsys):
    longer = made_up_run(study / "longer", "dqn", GAMES[0], seeds=1, seed=104, steps=2_000)
    finish(longer, "dqn", seeds=[104])
    assert main(["collect", str(study), "--out", str(tmp_path)]) == 0
    assert main(["tables", "minatar", "--out", str(tmp_path)]) == 2
    assert "2,000 steps" in capsys.readouterr().err


def test_a_finished_run_without_a_score_is_listed(study, tmp_path):
    path = study / f"c51-ids-{GAMES[0].replace('/', '-')}" / "evaluations.csv"
    blank = [row | {"return_mean": ""} for row in rows(path)]
    write_csv(path, blank)
    (left, _) = collecting.collect([study], tmp_path)
    assert "completed an episode" in left.why
    text = tabulating.markdown(scoring.section_of(tmp_path / "evaluations.csv"), "minatar", [])
    assert "without a score" in text
    assert "`qrdqn-ids`" in text
    (line,) = (line for line in text.splitlines() if line.startswith("- `minatar/breakout`:"))
    assert "`c51-ids`" in line


def test_a_frozen_seed_is_listed_and_counts_as_far_as_it_came(study, tmp_path):
    path = study / f"dqn-{GAMES[0].replace('/', '-')}"
    freeze(path, 102, 400)
    assert len(collecting.collect([study], tmp_path)) == 1  # the one that is not finished
    section = scoring.section_of(tmp_path / "evaluations.csv")
    text = tabulating.markdown(section, "minatar", [])
    assert "`dqn` (4 of 10 seeds, seed 102 to step 400), `bootstrapped-dqn`" in text
    assert section.tasks[GAMES[0]]["dqn"].curve().steps.tolist() == list(range(100, 1001, 100))


def test_human_normalised_on_atari_and_no_interval_of_one_seed(tmp_path):
    for agent in ("dqn", "c51-ids"):
        path = tmp_path / "study" / agent
        made_up_run(path, agent, "atari/asterix", seeds=1, seed=100, level=5_000.0)
        finish(path, agent)
    assert main(["collect", str(tmp_path / "study"), "--out", str(tmp_path)]) == 0
    section = scoring.section_of(tmp_path / "evaluations.csv")
    assert section.of_atari
    assert not section.anchors
    text = tabulating.markdown(section, "atari-short", [])
    assert "Human-normalised percent" in text
    assert "One seed says nothing" in text
    assert "- `atari/qbert`: all agents" in text


def test_games_without_all_agents_are_left_out_of_aggregates(study, tmp_path):
    shutil.rmtree(study / "dqn-ids-minatar-asterix")
    collecting.collect([study], tmp_path)
    text = tabulating.markdown(scoring.section_of(tmp_path / "evaluations.csv"), "minatar", [])
    assert "Left out, since not every agent has played them: minatar/asterix" in text


def test_nothing_collected_is_a_sentence(tmp_path, capsys):
    assert main(["tables", "minatar", "--out", str(tmp_path)]) == 2
    assert "collect a study first" in capsys.readouterr().err


def test_a_page_gets_tables_and_figures_between_its_marks(tmp_path):
    results = tmp_path / "results"
    (results / "figures").mkdir(parents=True)
    (results / "figures" / "diagnostics-1.png").write_bytes(b"a picture")
    (results / "benchmark.md").write_text("| a |\n\n![curves](figures/diagnostics-1.png)\n")
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text("before\n<!-- minatar -->\nold\n<!-- end of minatar -->\nafter\n")
    paging.fill(page, "minatar", results)
    paging.fill(page, "minatar", results)  # again: the same
    picture = "images/benchmark_minatar_diagnostics_1.png"
    assert page.read_text() == (
        f"before\n<!-- minatar -->\n\n| a |\n\n![curves]({picture})\n\n"
        "<!-- end of minatar -->\nafter\n"
    )
    assert (page.parent / picture).read_bytes() == b"a picture"
    with pytest.raises(IdrlError, match="has no lines <!-- atari -->"):
        paging.fill(page, "atari", results)


def test_the_page_of_the_docs_has_its_marks():
    text = (Path(__file__).parents[1] / "docs" / "benchmark.md").read_text()
    for name in ("minatar", "atari"):
        assert text.index(f"<!-- {name} -->") < text.index(f"<!-- end of {name} -->")


@pytest.mark.slow
def test_tables_and_figures_are_written(study, tmp_path):
    out = tmp_path / "out"
    collecting.collect([study], out)
    assert main(["tables", "minatar", "--out", str(out)]) == 0
    text = (out / "benchmark.md").read_text()
    for name in ("curves", "efficiency", "profiles", "intervals", "diagnostics-1"):
        assert f"(figures/{name}.png)" in text
        assert (out / "figures" / f"{name}.png").stat().st_size > 1_000


@pytest.mark.slow
def test_a_model_is_played_scored_and_explained_without_its_run(tmp_path, monkeypatch, capsys):
    run = small.train(tmp_path / "study" / "run")
    best = max(row["best"] for row in run.evaluations)
    (model,) = models.save_models([tmp_path / "study"], tmp_path / "models")
    (listed,) = rows(tmp_path / "models" / models.INDEX)
    assert (listed["file"], float(listed["score"])) == (model.name, pytest.approx(best, abs=1e-3))
    shutil.rmtree(tmp_path / "study")
    monkeypatch.chdir(tmp_path)
    name = "models/deep_sea-4-dqn-ids"
    for arguments in (
        ["play", name, "--max-steps", "3"],
        ["evaluate", f"{name}.safetensors", "--episodes", "2"],
        ["explain", name, "--step", "1"],
    ):
        assert command(arguments) == 0
    assert {"play.html", "explain.png"} <= {path.name for path in tmp_path.iterdir()}
    for option, value in (("--seed", "5"), ("--weights", "latest"), ("--at", "5")):
        assert command(["play", name, option, value]) == 2
        assert f"omit {option[2:]}=" in capsys.readouterr().err
    with pytest.raises(IdrlError, match="none of these runs"):
        models.save_models([small.train(tmp_path / "other")], tmp_path / "m", agents=["dqn"])

"""`idrl report` and `idrl compare`: what they say of runs, and of runs that cannot be reported."""

import csv
import json

import numpy as np
import pytest
import tomli_w
from run_folders import freeze, made_up_run, write_csv

from idrl.cli.app import main
from idrl.errors import IdrlError
from idrl.report.comparing import compare
from idrl.report.grouping import sections
from idrl.report.reading import find_runs, read_runs
from idrl.report.reference import Published, for_task, published_looks
from idrl.report.series import efficiency
from idrl.report.statistics import estimate
from idrl.report.style import _FIXED, look
from idrl.report.tables import sheets
from idrl.report.writing import Report, _names, _remarks, make_report
from idrl.runs.resuming import MAY_CHANGE
from idrl.storage.files import read_toml


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def atari(tmp_path_factory):
    """Two agents on three games, one of them with one seed, and a report of them."""
    root = tmp_path_factory.mktemp("atari")
    for game, level in (("pong", 15.0), ("breakout", 300.0), ("video_pinball", 500_000.0)):
        made_up_run(root / "runs" / f"a-{game}", "c51-ids", f"atari/{game}", level=level,
                    distributions=game == "pong")  # fmt: skip
        made_up_run(root / "runs" / f"b-{game}", "dqn", f"atari/{game}", level=level / 2, seeds=1)
    write_csv(root / "published.csv", [
        {"agent": "c51", "game": "pong", "frames": f, "eval_return": f / 300} for f in (400, 4000)
    ])  # fmt: skip
    report = make_report([root / "runs"], root / "report", reference=root / "published.csv")
    return root, report


def test_scores_are_best_evaluations_beside_the_papers(atari):
    root, report = atari
    assert len(report.parts) == 1
    found = {(r["task"], r["agent"]): r for r in rows(root / "report/atari/scores.csv")}
    row = found["atari/pong", "c51-ids"]
    evaluations = rows(root / "runs/a-pong/evaluations.csv")
    best = [
        max(float(r["return_mean"]) for r in evaluations if r["seed"] == s) for s in ("0", "1", "2")
    ]
    assert row["seeds"] == "3"
    assert float(row["score"]) == pytest.approx(np.mean(best))
    assert float(row["paper"]) == 21.0
    # random −20.7, human 14.6
    assert float(row["human-normalised %"]) == pytest.approx(100 * (np.mean(best) + 20.7) / 35.3)
    assert found["atari/pong", "dqn"]["from"] == ""  # one seed has no interval
    assert any("One seed" in remark for remark in report.remarks)


def test_published_curves_end_where_the_runs_do():
    curve = Published("c51", np.array([4.0, 8.0, 12.0]), np.array([1.0, 2.0, 3.0]))
    late = Published("dqn", np.array([100.0]), np.array([1.0]))
    reference = {"pong": [curve, late]}
    (found,) = for_task(reference, "atari/pong", 8)
    assert found.frames.tolist() == [4, 8]
    assert found.returns.tolist() == [1, 2]
    assert len(for_task(reference, "atari/pong")) == 2


def test_published_curves_of_one_colour_differ_by_their_dots():
    nothing = np.array([0.0])
    names = ("ddqn", "dqn", "c51", "qrdqn", "iqn", "rainbow")  # as nnabla-rl publishes them
    reference = {"pong": [Published(name, nothing, nothing) for name in names]}
    found = published_looks(reference)
    assert all(found[name].colour == look(name).colour for name in names)
    assert found["dqn"].dash == found["c51"].dash == "dot"
    assert len({(x.colour, x.dash) for x in found.values()}) == len(names)
    assert len({(x.colour, str(x.line)) for x in found.values()}) == len(names)


@pytest.mark.filterwarnings("error")
def test_a_last_evaluation_without_episodes_is_told_of_the_others(tmp_path):
    path = tmp_path / "run"
    made_up_run(path, "dqn", "cartpole", level=100.0, seeds=1)
    table = rows(path / "evaluations.csv")
    table[-1]["return_mean"] = "nan"
    write_csv(path / "evaluations.csv", table)
    make_report([path], tmp_path / "report")
    (row,) = rows(next((tmp_path / "report").glob("*/scores.csv")))
    assert row["last evaluation"] in ("", "nan")
    assert float(row["score"]) > 0


def test_normalised_table_has_both_readings_and_the_papers_columns(atari):
    root, _ = atari
    table = {r["game"]: r for r in rows(root / "report/atari/games-normalised.csv")}
    assert list(table)[-3:] == [
        "median", "mean, Video Pinball − 0", "mean, Video Pinball − 16,256.9",
    ]  # fmt: skip
    assert set(table["Pong"]) == {
        "game", "seeds", "c51-ids", "dqn", "paper dqn", "paper c51-ids",
    }  # fmt: skip
    zero, appendix = (float(table[name]["c51-ids"]) for name in list(table)[-2:])
    assert appendix > 5 * zero
    values = [float(table[name]["c51-ids"]) for name in ("Pong", "Breakout", "Video Pinball")]
    assert float(table["median"]["c51-ids"]) == pytest.approx(np.median(values))
    assert zero == pytest.approx(np.mean(values))


def test_aggregates_are_iqm_and_gap_of_normalised_scores(atari):
    root, _ = atari
    table = {r["agent"]: r for r in rows(root / "report/atari/aggregates.csv")}
    games = rows(root / "report/atari/scores.csv")
    assert table["c51-ids"]["tasks"] == "3"
    single = [float(r["human-normalised %"]) / 100 for r in games if r["agent"] == "dqn"]
    expected = estimate([np.array([x]) for x in single])
    assert float(table["dqn"]["IQM"]) == pytest.approx(expected.value)
    assert table["dqn"]["IQM from"] == ""
    assert float(table["c51-ids"]["IQM from"]) < float(table["c51-ids"]["IQM to"])
    (pair,) = rows(root / "report/atari/improvement.csv")
    assert (pair["agent"], pair["better than"], float(pair["probability"])) == ("c51-ids", "dqn", 1)


def test_a_report_is_whole_and_is_written_over_only_by_another(atari, capsys):
    root, _ = atari
    folder = root / "report"
    names = {path.name for path in (folder / "atari").iterdir()}
    for stem in ("curves", "efficiency", "profiles", "intervals", "distributions-atari-pong"):
        assert {f"{stem}.png", f"{stem}.svg"} <= names
    assert {"scores.md", "scores.csv", "scores.tex"} <= names
    text = (folder / "report.md").read_text()
    for target in ("atari/curves.png", "atari/configs/001-a-breakout.toml"):
        assert target in text
        assert (folder / target).is_file()
    page = (folder / "index.html").read_text()
    assert "src=" not in page.split("<script>")[0]  # nothing is fetched
    assert "published" in page
    assert "<summary>Settings of the runs</summary>" in page  # of one run or more
    # Each band and interval says what it is.
    assert "bands: lowest to highest seed; of sample efficiency and profiles 95% bootstrap" in page
    assert text.count("; bands: 95% bootstrap intervals\n") == 2
    for name in ("aggregates", "improvement"):
        table = (folder / f"atari/{name}.md").read_text()
        assert "From … to: 95% stratified bootstrap intervals over seeds" in table
        assert "One seed says nothing about the spread" in table  # dqn's
    assert main(["report", str(root / "runs"), "-o", str(folder)]) == 0
    (root / "mine").mkdir()
    (root / "mine/index.html").write_text("mine")
    assert main(["report", str(root / "runs"), "-o", str(root / "mine")]) == 2
    assert (root / "mine/index.html").read_text() == "mine"
    assert "holds other files" in capsys.readouterr().err


def test_only_folders_of_an_earlier_report_are_removed(tmp_path, capsys):
    out = tmp_path / "out"
    made_up_run(tmp_path / "a", env="cartpole")
    assert main(["report", str(tmp_path / "a"), "-o", str(out)]) == 0
    made_up_run(tmp_path / "b", env="deep_sea/10")
    (out / "deep_sea").mkdir()
    (out / "deep_sea/notes").write_text("mine")
    assert main(["report", str(tmp_path / "b"), "-o", str(out)]) == 2
    assert "is not part of an earlier report" in capsys.readouterr().err
    assert (out / "deep_sea/notes").read_text() == "mine"
    assert (out / "cartpole/scores.csv").is_file()
    keep = tmp_path / "keep"
    keep.mkdir()
    (out / "report.json").write_text(json.dumps({"sections": ["../keep", "cartpole"]}))
    (out / "deep_sea").rename(tmp_path / "away")
    assert main(["report", str(tmp_path / "b"), "-o", str(out)]) == 0
    assert keep.is_dir()
    assert not (out / "cartpole").exists()


def test_tasks_and_protocols_are_kept_apart(tmp_path, capsys):
    made_up_run(tmp_path / "runs/a", env="deep_sea/10")
    made_up_run(tmp_path / "runs/b", env="deep_sea/10", every=200)
    made_up_run(tmp_path / "runs/c", env="cartpole")
    assert main(["report", str(tmp_path / "runs"), "-o", str(tmp_path / "out")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "of 3 kinds of task or protocol, which cannot share a table" in out
    assert "(distributions.csv): their figures are missing" in out
    assert {p.name for p in (tmp_path / "out").iterdir() if p.is_dir()} == {
        "cartpole", "deep_sea-1", "deep_sea-2",
    }  # fmt: skip


def test_ways_to_play_are_kept_apart_and_named(tmp_path):
    ways = (
        "atari/pong", "atari/pong?sticky=0.25", "atari/breakout?sticky=0.25", "minatar/breakout",
        "minatar/breakout?limit=1000", "gym/ALE/Pong-v5", "gym/PongNoFrameskip-v4",
        "bsuite/catch?noise=0.1", "bsuite/catch?noise=1.0",
    )  # fmt: skip
    for number, env in enumerate(ways):
        made_up_run(tmp_path / str(number), env=env)
    made_up_run(tmp_path / "a", env="atari/pong?sticky=0.25&life_loss=0")
    made_up_run(tmp_path / "b", env="atari/pong?life_loss=0&sticky=0.25", seed=3)
    found, _ = sections(read_runs([tmp_path])[0])
    assert {section.name: sorted(section.tasks) for section in found} == {
        "atari": ["atari/pong"],
        "atari?sticky=0.25": ["atari/breakout?sticky=0.25", "atari/pong?sticky=0.25"],
        "atari?life_loss=0&sticky=0.25": ["atari/pong?life_loss=0&sticky=0.25"],
        "bsuite": ["bsuite/catch?noise=0.1", "bsuite/catch?noise=1.0"],  # levels of one task
        "gym/ALE/GAME-v5": ["gym/ALE/Pong-v5"],
        "gym/GAMENoFrameskip-v4": ["gym/PongNoFrameskip-v4"],
        "minatar": ["minatar/breakout"],
        "minatar?limit=1000": ["minatar/breakout?limit=1000"],
    }
    titles = [section.title for section in found]
    assert "minatar?limit=1000: 1,000 steps, evaluated every 100 for 50" in titles
    assert {"atari", "atari-sticky-0-25", "minatar-limit-1000"} <= set(_names(found))


@pytest.mark.parametrize(
    ("game", "low", "high"), [("defender", 2874.5, 18688.9), ("surround", -10.0, 6.5)]
)
def test_games_that_the_paper_leaves_out_are_atari_too(game, low, high, tmp_path):
    for name in (game, "pong"):
        made_up_run(tmp_path / name, "c51-ids", f"atari/{name}", level=10.0)
    (section,), _ = sections(read_runs([tmp_path])[0])
    assert (section.unit, section.length) == ("frames", 4_000)
    curve = Published("dqn", np.array([400.0]), np.array([1.0]))
    assert for_task({game: [curve]}, f"atari/{game}")
    score = section.tasks[f"atari/{game}"]["c51-ids"].scores().mean()
    percent = 100 * (score - low) / (high - low)
    found = {sheet.name: sheet for sheet in sheets(section)}
    assert found["scores"].rows[0 if game == "defender" else 1][-3:] == [
        pytest.approx(percent), None, None,
    ]  # fmt: skip
    lines = {line[0]: line[2:] for line in found["games-normalised"].rows}
    assert lines[game.title()] == [pytest.approx(percent), None]
    assert lines["median"] == lines["Pong"], "the paper's games alone"
    assert "are not in the paper" in found["games-normalised"].notes[-1]
    both = [percent, lines["Pong"][0]]
    assert found["aggregates"].rows[0][4] == pytest.approx(np.mean(both) / 100)
    assert "human-normalised" in found["aggregates"].notes[0]


def test_settings_of_one_agent_are_told_apart_and_seeds_pooled(tmp_path):
    made_up_run(tmp_path / "a")
    made_up_run(tmp_path / "more", seed=3, seeds=2)
    made_up_run(tmp_path / "other", lam=0.5)
    made_up_run(tmp_path / "same again")
    records, _ = read_runs([tmp_path])
    (section,), repeated = sections(records)
    groups = section.tasks["deep_sea/10"]
    assert {label: len(group.seeds) for label, group in groups.items()} == {
        "dqn (explore.lam=0.1)": 5, "dqn (explore.lam=0.5)": 3,
    }  # fmt: skip
    assert len({group.look.dash for group in groups.values()}) == 2
    assert len({group.look.colour for group in groups.values()}) == 1
    assert repeated[0].path.name == "same again"


def test_what_changes_nothing_that_is_compared_tells_no_runs_apart(tmp_path):
    """A run may be resumed with it changed, so what it computes is the same."""
    made_up_run(tmp_path / "a")
    for number, setting in enumerate(set(MAY_CHANGE) - {"training.steps"}):
        run = made_up_run(tmp_path / setting, seed=3 * number + 3)
        config = read_toml(run / "config.toml")
        table, name = setting.split(".")
        config[table][name] = 7
        (run / "config.toml").write_text(tomli_w.dumps(config))
    (section,), repeated = sections(read_runs([tmp_path])[0])
    seeds = {label: len(g.seeds) for label, g in section.tasks["deep_sea/10"].items()}
    assert seeds == {"dqn": 3 * len(MAY_CHANGE)}
    assert not repeated


def test_a_run_that_repeats_some_seeds_adds_the_others(tmp_path):
    made_up_run(tmp_path / "a", distributions=True)
    made_up_run(tmp_path / "b", seed=1, seeds=4, distributions=True)
    (section,), repeated = sections(read_runs([tmp_path])[0])
    group = section.tasks["deep_sea/10"]["dqn"]
    assert [(seed.seed, seed.run.name) for seed in group.seeds] == [
        (0, "a"), (1, "a"), (2, "a"), (3, "b"), (4, "b"),
    ]  # fmt: skip
    rows = [int(row["seed"]) for record in group.records for row in record.distributions]
    assert [rows.count(seed) for seed in range(6)] == [20, 20, 20, 20, 20, 0]
    assert [left.why for left in repeated] == [
        "it repeats seeds 1, 2 of a, which count once; its other seeds count too."
    ]
    assert "left out" not in repr(Report([], repeated, [], tmp_path))
    made_up_run(tmp_path / "c", distributions=True)
    _, repeated = sections(read_runs([tmp_path])[0])
    assert ", 1 run left out, " in repr(Report([], repeated, [], tmp_path))


def test_an_agent_is_called_and_drawn_the_same_on_all_tasks(tmp_path):
    for lam in (0.1, 0.5, 1.0):
        made_up_run(tmp_path / f"a{lam}", env="deep_sea/10", lam=lam)
    made_up_run(tmp_path / "b", env="deep_sea/20", lam=0.5)
    (section,), _ = sections(read_runs([tmp_path])[0])
    assert list(section.tasks["deep_sea/20"]) == ["dqn (explore.lam=0.5)"]
    looks = [groups["dqn (explore.lam=0.5)"].look for groups in section.tasks.values()]
    assert looks[0] == looks[1]
    made_up_run(tmp_path / "c", env="deep_sea/20", agent="c51")  # what differs by task says nothing
    made_up_run(tmp_path / "d", env="deep_sea/10", agent="c51", lam=2.0)
    (section,), _ = sections(read_runs([tmp_path])[0])
    assert section.common() == ["deep_sea/10"]
    assert all("c51" in groups for groups in section.tasks.values())


def test_a_setting_that_a_task_needs_tells_nothing_apart_there(tmp_path):
    """As presets give tasks of other sizes other settings."""
    for task, values in {"10": (0.1, 0.5), "20": (1.0,), "30": (2.0,)}.items():
        for lam in values:
            made_up_run(tmp_path / f"{task} {lam}", env=f"deep_sea/{task}", lam=lam)
    (section,), _ = sections(read_runs([tmp_path])[0])
    assert {task: list(groups) for task, groups in section.tasks.items()} == {
        "deep_sea/10": ["dqn (explore.lam=0.1)", "dqn (explore.lam=0.5)"],
        "deep_sea/20": ["dqn"],
        "deep_sea/30": ["dqn"],
    }


def test_one_seed_is_said_of_the_task_it_is_on(tmp_path):
    made_up_run(tmp_path / "a", env="deep_sea/10")
    made_up_run(tmp_path / "b", env="deep_sea/20", seeds=1)
    made_up_run(tmp_path / "c", env="deep_sea/20", seeds=1, agent="c51")
    found, _ = sections(read_runs([tmp_path])[0])
    assert _remarks(found, {}, False)[0] == (
        "One seed only: c51, dqn on deep_sea/20. Nothing is known of their spread."
    )
    made_up_run(tmp_path / "d", env="deep_sea/20", steps=2000)  # by another protocol
    found, _ = sections(read_runs([tmp_path])[0])
    assert "One seed only: c51, dqn on deep_sea/20." in _remarks(found, {}, False)[1]


def test_a_task_on_which_all_evaluations_are_the_same_is_named(tmp_path):
    made_up_run(tmp_path / "a", env="deep_sea/10", level=0.0)
    made_up_run(tmp_path / "b", env="deep_sea/20", level=1.0)
    (section,), _ = sections(read_runs([tmp_path])[0])
    found = {sheet.name: sheet for sheet in sheets(section)}["aggregates"]
    assert found.notes[1] == (
        "All evaluations are the same, so that every score counts as 0, on: deep_sea/10."
    )


def test_sample_efficiency_is_of_the_seeds_that_ended_an_episode(tmp_path):
    """A number that is missing is not the best of all, which trimming takes off."""
    run = made_up_run(tmp_path / "a", seeds=8)
    lines = (run / "evaluations.csv").read_text().splitlines()
    without = {(0, 500), (3, 500), (6, 500)} | {(seed, 100) for seed in range(8)}
    texts = []
    for line in lines:
        seed, step, score, best = line.split(",")
        gone = step.isdecimal() and (int(seed), int(step)) in without
        texts.append(",".join((seed, step, "" if gone else score, best)))
    (run / "evaluations.csv").write_text("\n".join(texts) + "\n")
    (section,), _ = sections(read_runs([tmp_path])[0])
    line = efficiency(section)["dqn"]
    returns = section.tasks["deep_sea/10"]["dqn"].curve().returns
    scaled = (returns - np.nanmin(returns)) / (np.nanmax(returns) - np.nanmin(returns))
    at_500 = scaled[[1, 2, 4, 5, 7], 4]
    assert line.y[4] == pytest.approx(np.sort(at_500)[1:4].mean())
    assert at_500.min() < line.low[4] < line.y[4] < line.high[4] < at_500.max()
    assert np.isnan([line.y[0], line.low[0], line.high[0]]).all()
    assert np.isfinite(line.low[1:]).all()


def test_a_frozen_seed_counts_with_what_it_has_and_is_named(tmp_path):
    made_up_run(tmp_path / "a", distributions=True)
    again = made_up_run(tmp_path / "b", seed=2, seeds=3)
    for seed in (2, 3):
        freeze(again, seed, 450)
    (section,), _ = sections(read_runs([tmp_path])[0])
    told = (
        "Frozen, because their numbers stopped being finite, and scored by their evaluations until "
        "then; curves beyond are of the other seeds: "
        f"seed 3 of dqn on deep_sea/10 ({again}) at step 450."
    )
    assert _remarks([section], {}, False) == [told]  # seed 2 is a's
    group = section.tasks["deep_sea/10"]["dqn"]
    assert [seed.steps[-1] for seed in group.seeds] == [1000, 1000, 1000, 400, 1000]
    curve = group.curve()
    assert curve.steps.tolist() == list(range(100, 1001, 100))
    assert np.argwhere(np.isnan(curve.returns)).tolist() == [[3, i] for i in range(4, 10)]
    assert curve.returns[3, :4].max() == group.seeds[3].best
    assert compare(again, tmp_path / "a").sheet.notes[-1].startswith("Frozen, because")


def test_a_seed_that_froze_before_it_was_evaluated_has_no_score(tmp_path):
    freeze(made_up_run(tmp_path / "a"), 1, 50)
    with pytest.raises(IdrlError, match="no evaluation of seed 1 .* before it froze at step 50"):
        read_runs([tmp_path])


def damage_csv(run):
    with open(run / "evaluations.csv", "a") as file:
        file.write("0,10")


def damage_config(run):
    (run / "config.toml").write_text("agent = ")


def damage_number(run):
    text = (run / "evaluations.csv").read_text()
    (run / "evaluations.csv").write_text(text.replace("200", "2x0"))


def damage_columns(run):
    write_csv(run / "evaluations.csv", [{"seed": 0, "steps": 1000}])


def no_evaluations(run):
    (run / "evaluations.csv").unlink()


def no_steps(run):
    rows = [{"seed": s, "steps": "", "return_mean": 1.0} for s in (0, 1, 2)]
    write_csv(run / "evaluations.csv", rows)


def zero_bytes(run):
    (run / "evaluations.csv").write_bytes(b"seed,steps,return_mean\n0,\x00,1\n")


def too_many_seeds(run):
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace("seeds = 3", "seeds = 1000000000000"))


def no_period(run):
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace("every_steps = 100\nsteps", "steps"))


def other_format(run):
    (run / "run.json").write_text(json.dumps({"format": 99}))


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (damage_csv, "its evaluations.csv is damaged"),
        (damage_config, "is not valid TOML"),
        (damage_number, "its evaluations.csv is damaged"),
        (damage_columns, "it has no column 'return_mean'"),
        (no_evaluations, "it has no evaluations yet"),
        (other_format, "run format 99"),
        (no_steps, "its evaluations.csv is damaged"),
        (zero_bytes, "its evaluations.csv is damaged"),
        (too_many_seeds, "it is unfinished"),
        (no_period, "its config.toml is damaged"),
    ],
)
def test_a_damaged_run_is_left_out_and_named(harm, sentence, tmp_path, capsys):
    made_up_run(tmp_path / "good")
    harm(made_up_run(tmp_path / "bad", "c51-ids"))
    records, left_out = read_runs([tmp_path / "good", tmp_path / "bad"])
    assert [record.path.name for record in records] == ["good"]
    assert left_out[0].path.name == "bad"
    assert sentence in left_out[0].why
    assert main(["report", str(tmp_path / "bad"), "-o", str(tmp_path / "none")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_what_was_left_out_is_said_everywhere(tmp_path, capsys):
    made_up_run(tmp_path / "runs/good")
    no_evaluations(made_up_run(tmp_path / "runs/bad", "c51-ids"))
    assert main(["report", str(tmp_path / "runs"), "-o", str(tmp_path / "out")]) == 0
    said = "it has no evaluations yet"
    for text in (capsys.readouterr().out, (tmp_path / "out/report.md").read_text()):
        assert "Left out" in text
        assert said in " ".join(text.split())
    assert said in (tmp_path / "out/index.html").read_text()


def test_an_unfinished_run_is_left_out(tmp_path):
    made_up_run(tmp_path / "good")
    made_up_run(tmp_path / "half", done=500)
    records, left_out = read_runs([tmp_path])
    assert [record.path.name for record in records] == ["good"]
    assert left_out[0].why == "it is unfinished: 500 of 1,000 steps evaluated."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("agent,game,frames\nc51,pong,4\n", "lacks the column eval_return"),
        ("agent,game,frames,eval_return\nc51,pong,4,x\n", "line 2 of the reference file"),
        ("agent,game,frames,eval_return\n", "has no rows"),
        (None, "there is no reference file"),
    ],
)
def test_a_reference_file_must_have_its_columns(text, sentence, tmp_path, capsys):
    made_up_run(tmp_path / "run")
    file = tmp_path / "published.csv"
    if text is not None:
        file.write_text(text)
    out = tmp_path / "out"
    arguments = ["report", str(tmp_path / "run"), "-o", str(out), "--reference", str(file)]
    assert main(arguments) == 2
    assert sentence in capsys.readouterr().err
    assert not out.exists()


def test_links_to_runs_are_followed_but_not_in_circles(tmp_path):
    made_up_run(tmp_path / "elsewhere/one")
    made_up_run(tmp_path / "elsewhere/deep/two")
    made_up_run(tmp_path / "beside")
    runs = tmp_path / "runs"
    made_up_run(runs / "own")
    (runs / "one").symlink_to(tmp_path / "elsewhere/one")
    (runs / "folder").symlink_to(tmp_path / "elsewhere/deep")
    (runs / "zlatest").symlink_to(runs / "own")
    (runs / "up").symlink_to(tmp_path)
    (runs / "itself").symlink_to(runs)
    (runs / "empty").mkdir()
    (runs / "empty/back").symlink_to(runs)
    (runs / "dangling").symlink_to(tmp_path / "nothing")
    found = {str(path.relative_to(runs)) for path in find_runs([runs])}
    assert found == {"own", "one", "folder/two"}
    (tmp_path / "linked").symlink_to(runs)
    assert len(find_runs([tmp_path / "linked"])) == 3
    assert len(read_runs([runs])[0]) == 3


def test_what_is_no_folder_is_refused(tmp_path, capsys):
    assert main(["report", str(tmp_path / "nothing")]) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert main(["report", str(tmp_path)]) == 2
    assert "holds no run folders" in capsys.readouterr().err
    made_up_run(tmp_path / "run")
    (tmp_path / "file").write_text("")
    assert main(["report", str(tmp_path / "run"), "-o", str(tmp_path / "file")]) == 2
    assert "is a file" in capsys.readouterr().err


def test_compare_says_which_is_better(tmp_path, capsys):
    low = made_up_run(tmp_path / "low", level=1.0)
    high = made_up_run(tmp_path / "high", "c51-ids", level=5.0)
    assert main(["compare", str(low), str(high)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "c51-ids is better than dqn with probability 1.00 (95% interval 1.00 to 1.00)." in out
    even = compare(low, made_up_run(tmp_path / "again", "c51-ids"))
    assert even.chance.value == 0.5
    assert even.verdict.startswith("These seeds do not say which is better")
    one = compare(low, made_up_run(tmp_path / "one", "c51-ids", seeds=1))
    assert "P(" in one.sheet.columns[4].name


def test_compare_refuses_what_cannot_be_compared(tmp_path, capsys):
    run = made_up_run(tmp_path / "a")
    other_task = made_up_run(tmp_path / "b", env="deep_sea/20")
    assert main(["compare", str(run), str(other_task)]) == 2
    assert "share no task" in capsys.readouterr().err
    other_protocol = made_up_run(tmp_path / "c", every=200)
    assert main(["compare", str(run), str(other_protocol)]) == 2
    assert "by different protocols" in capsys.readouterr().err
    made_up_run(tmp_path / "both/x")
    made_up_run(tmp_path / "both/y", "c51-ids")
    assert main(["compare", str(run), str(tmp_path / "both")]) == 2
    assert "several agents or settings" in capsys.readouterr().err


def test_every_agent_has_its_own_look():
    assert len(set(_FIXED.values())) == len(_FIXED)
    assert look("mine") == look("mine")

"""Study files: what they mean, what is refused, how seeds are packed, and the plan."""

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from idrl import IdrlError
from idrl.cli.app import main
from idrl.config import resolve
from idrl.report.paper import games
from idrl.sweep import planning, searching, speeds
from idrl.sweep.attempt import _environment
from idrl.sweep.job import Capacity, Node, Plugins, lowered
from idrl.sweep.jobs import combinations, pack
from idrl.sweep.study import built_in, find, parse, spread
from idrl.sweep.work import check_replays

SMALL = {"agents": ["dqn"], "envs": ["deep_sea/4"]}
TWO_CORES = Capacity((Node(2),))


def jobs_of(data, capacity=TWO_CORES):
    study = parse(data)
    return pack(combinations(study), study.resources, capacity)


def test_who_shares_a_gpu_takes_memory_as_it_needs_it(monkeypatch):
    """Four that were told their shares filled an H200, and others did not start (JAX 0.11)."""
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    data, told = {"agents": ["dqn"], "envs": ["atari/pong"]}, "XLA_PYTHON_CLIENT_PREALLOCATE"
    for share, said in ((0.25, "false"), (1, None)):
        (job,) = jobs_of(data | {"resources": {"gpus": share}, "seeds": 1})
        assert _environment(job, "0", Plugins()).get(told) == said


def test_a_grid_is_every_combination_and_a_list_one_by_one():
    data = SMALL | {
        "agents": ["dqn-ids"],
        "grid": {"explore": {"lam": [0.1, 1.0], "rho2": [0.5, 1.0]}},
        "variant": [{"learning.batch_size": 16}, {"learning.batch_size": 32}],
        "settings": {"trunk": {"hidden": [8]}},
    }
    found = combinations(parse(data))
    assert len(found) == len({c.name for c in found}) == 8
    config = found[-1].config
    assert (config.explore.lam, config.explore.rho2, config.learning.batch_size) == (1.0, 1.0, 32)
    assert all(c.config.trunk.hidden == (8,) for c in found)


def test_groups_have_what_the_study_says_unless_they_say_otherwise():
    data = SMALL | {"seeds": 2, "group": [{}, {"envs": ["deep_sea/{5,6}"], "seeds": [3, 7]}]}
    found = combinations(parse(data))
    assert [(c.config.env, c.seeds) for c in found] == [
        ("deep_sea/4", (0, 1)), ("deep_sea/5", (3, 7)), ("deep_sea/6", (3, 7)),
    ]  # fmt: skip


def test_settings_are_named_by_as_much_as_tells_them_apart():
    data = {"agents": ["c51-ids"], "envs": ["deep_sea/4"], "variant": [
        {"heads.q.hidden": [32]}, {"heads.z.hidden": [32]}, {"explore.lam": 1.0},
    ]}  # fmt: skip
    assert [c.name.partition("deep_sea-4-")[2] for c in combinations(parse(data))] == [
        "q.hidden=-32", "z.hidden=-32", "lam=1.0",
    ]  # fmt: skip


def test_a_grid_may_say_how_long_where_nothing_else_does():
    found = combinations(parse(SMALL | {"grid": {"training": {"steps": [500, 1000]}}}))
    assert [c.config.training.steps for c in found] == [500, 1000]


def test_braces_are_spread_out():
    assert spread("a/{1,2}?x={3, 4}") == ["a/1?x=3", "a/1?x=4", "a/2?x=3", "a/2?x=4"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"agnets": ["dqn"]}, "unknown key 'agnets' of the study; did you mean 'agents'"),
        (
            {"group": [{"sedes": 3}]},
            r"unknown key 'sedes' of a \[\[group\]\]; did you mean 'seeds'",
        ),
        ({"grid": {"explore": {"lam": []}}}, "grid.explore.lam is empty"),
        ({"grid": {"explore": {"lam": 1.0}}}, "it must be a list of values"),
        ({"agents": []}, "agents is empty"),
        ({"seeds": 0}, "seeds is 0; it must be a count, 1 or more"),
        ({"seed": 1.5, "seeds": 3}, "^seed is 1.5; it must be a whole number from 0 on"),
        ({"seeds": [1, 1]}, "names one twice"),
        ({"envs": [""]}, "envs has an empty name"),
        ({"agents": ["dqn", " "]}, "agents has an empty name"),
        ({"agents": ["dqn", "dqn"]}, "two runs would be called dqn-deep_sea-4 with seed 0"),
        ({"agents": ["dnq"]}, "unknown agent 'dnq'; did you mean 'dqn'"),
        ({"envs": ["deep_sea/{4,}"]}, "an empty item in its braces"),
        ({"settings": {"trunk": {"hiden": 3}}}, "unknown setting 'trunk.hiden'"),
        ({"steps": 10, "frames": 10}, "both say how long"),
        ({"grid": {"seed": [1, 2]}}, "seed is no setting of a study's runs: write seeds = 4"),
        ({"settings": {"seeds": 4}}, "seeds is no setting of a study's runs"),
        ({"search": {"space": {"seed": {"low": 1, "high": 3}}}}, "seed is no setting"),
        (
            {"steps": 2000, "grid": {"training": {"steps": [500, 1000]}}},
            "training.steps and steps both say how long",
        ),
        (
            {"frames": 2000, "group": [{"variant": [{"training.steps": 500}]}]},
            "training.steps and frames both say how long",
        ),
        ({"steps": -1}, "steps is -1; it must be a positive whole number"),
        ({"resources": {"cpus": -1}}, "resources.cpus is -1; it must be at least 0"),
        ({"resources": {"gpus": 1.5}}, "a share up to 1, whole GPUs"),
        ({"resources": {"cores": 1}}, "unknown setting 'resources.cores'"),
        ({"name": "a/b"}, "it names a folder"),
        ({"name": "-depth"}, "does not begin with . or -"),
        ({"name": ".v2"}, "does not begin with . or -"),
        ({"search": {"space": {}}}, "search.space is empty"),
        ({"search": {"space": {"explore": {"lam": {"low": 2, "high": 1}}}}}, "low < high"),
        ({"search": {"space": {"a": {"low": 2, "high": math.inf}}}}, "a.high is inf; it must be"),
        (
            {"search": {"stop": "meadian", "space": {"a": {"choices": [1]}}}},
            "did you mean 'median'",
        ),
        ({"search": {"space": {"a": {"choices": [1]}}}, "grid": {"b": [1, 2]}}, "not both"),
        ({"order": "env"}, "order is 'env'; did you mean 'envs'"),
        ({"search": {"space": {"a": {"choices": [1]}}}, "order": "envs"}, "omit order"),
    ],
)
def test_bad_studies_are_refused_with_a_sentence(change, told):
    with pytest.raises(IdrlError, match=told):
        combinations(parse(SMALL | change))


def test_a_file_whose_name_is_no_folder_is_told_what_to_write():
    with pytest.raises(IdrlError, match="name is 'My study', after the file; .* write name = "):
        parse(SMALL, "My study")


@pytest.mark.parametrize(
    ("space", "told"),
    [
        ({"explore.noise": {"choices": ["constant", "bogus"]}}, "explore.noise is 'bogus'"),
        ({"explore.lam": {"choices": [1.0, math.nan]}}, "explore.lam is nan"),
        ({"explore.eps1": {"low": -1.0, "high": 1.0}}, "explore.eps1 is -1.0"),
        ({"learning.gamma": {"low": 0.9, "high": 1.1}}, "learning.gamma is 1.1"),
        ({"learning.replay_capacity": {"low": 2, "high": 9}}, "it must be at least 3"),
        ({"heads.q.k": {"low": 2, "high": 10.0}}, "write both low and high without a decimal"),
    ],
)
def test_a_search_is_refused_before_it_starts_where_a_trial_could_not_be(space, told):
    study = parse(SMALL | {"agents": ["dqn-ids"], "search": {"space": space}})
    with pytest.raises(IdrlError, match=told):
        searching.check(study.search, study.groups)


def test_a_replay_that_a_run_could_not_draw_from_is_refused_before_a_study_starts():
    data = {"agents": ["dqn"], "envs": ["atari/pong"], "settings": {"learning.n_step": 3}}
    small, enough = combinations(parse(data | {"grid": {"learning.replay_capacity": [511, 512]}}))
    check_replays([enough.config])
    told = (
        "training.envs=64, learning.n_step=3 and observations of 4 frames it must be at least 512"
    )
    with pytest.raises(IdrlError, match=f"learning.replay_capacity is 511; with {told}"):
        check_replays([small.config])


def test_a_search_may_draw_whole_numbers_for_either_kind_of_number():
    space = {"heads.q.k": {"low": 2, "high": 10}, "explore.lam": {"low": 1, "high": 4.0}}
    study = parse(SMALL | {"agents": ["dqn-ids"], "search": {"space": space}})
    searching.check(study.search, study.groups)


def test_seeds_are_packed_but_leave_no_core_idle():
    data = SMALL | {"seeds": 8}
    assert [(j.seed, j.seeds, j.cpus) for j in jobs_of(data)] == [(0, 4, 1), (4, 4, 1)]
    four = jobs_of(data | {"envs": ["deep_sea/{4,5,6,7}"]})
    assert [(j.seeds, j.cpus) for j in four] == [(8, 1)] * 4
    alone = jobs_of(data | {"resources": {"pack": 1}})
    assert [j.seed for j in alone] == list(range(8))
    apart = jobs_of(data | {"seeds": [0, 1, 5]}, Capacity((Node(1),)))
    assert [j.name for j in apart] == ["dqn-deep_sea-4-s0-1", "dqn-deep_sea-4-s5"]


def test_atari_runs_share_a_gpu_that_has_room():
    data = {"agents": ["c51-ids"], "envs": ["atari/{pong,breakout}"], "seeds": 2}
    large = jobs_of(data, Capacity((Node(16, 1.0),), 140e9))
    assert [(j.seeds, j.gpus, j.cpus) for j in large] == [(1, 0.25, 4)] * 4
    small = jobs_of(data, Capacity((Node(16, 1.0),), 16e9))
    assert {(j.gpus, j.cpus) for j in small} == {(1.0, 16)}
    assert {j.gpus for j in jobs_of(data | {"resources": {"gpus": 0.5}})} == {0.5}


def test_memory_that_is_too_small_lowers_the_packing_then_the_sharing():
    (job,) = jobs_of(SMALL | {"seeds": 5, "resources": {"pack": 5}})
    assert [(j.name, j.seed, j.seeds) for j in lowered(job)] == [
        ("dqn-deep_sea-4-s0-1", 0, 2), ("dqn-deep_sea-4-s2-4", 2, 3),
    ]  # fmt: skip
    assert lowered(job)[1].config["seed"] == 2
    data = {"agents": ["dqn"], "envs": ["atari/pong"], "resources": {"gpus": 0.25}}
    (shared,) = jobs_of(data, Capacity((Node(4, 1.0),), 140e9))
    (more,) = lowered(shared)
    assert (more.name, more.gpus) == (shared.name, 0.5)
    assert lowered(lowered(more)[0]) == []


def test_what_no_machine_has_is_refused():
    (job,) = jobs_of(SMALL | {"resources": {"cpus": 64, "gpus": 2}})
    two = Capacity((Node(40, 0.0), Node(40, 1.0)))
    with pytest.raises(IdrlError, match="64 cores where the largest machine has 40 and 2 GPUs"):
        two.check(job)


def test_the_studies_that_come_along_can_be_run():
    studies = {name: parse(find(name)[1]) for name in built_in()}
    for study in studies.values():  # every agent and variant, in one environment of each family
        short = [replace(g, envs=_one_of_each(g.envs)) for g in study.groups]
        assert combinations(replace(study, groups=tuple(short)))
    sizes = {
        name: sum(len(g.agents) * len(g.envs) * len(g.variants) for g in study.groups)
        for name, study in studies.items()
    }
    assert sizes == {
        "paper": 13 * 55, "paper-ablations": 6 * (3 + 8), "deep_sea": 12, "minatar": 30,
        "bsuite": 4 * (2 * 21 + 20 + 20), "atari-short": 20,
    }  # fmt: skip


def _one_of_each(envs):
    return tuple({env.partition("/")[0]: env for env in envs}.values())


def test_the_papers_study_has_its_games_and_budget():
    (group,) = parse(find("paper")[1]).groups
    assert set(group.envs) == {f"atari/{game}" for game in games()}
    assert len(group.seeds) == 3
    assert group.frames == 200_000_000


@pytest.mark.parametrize("name", ["minatar", "atari-short"])
def test_studies_of_the_papers_claim_go_game_by_game_and_treat_agents_alike(name):
    study = parse(find(name)[1])
    found = combinations(study)
    assert study.order == "envs"
    # what a declaration is made of apart, all agents have the same task, length and scores
    for attribute in ("training", "evaluation", "learning"):
        assert len({repr(getattr(c.config, attribute)) for c in found}) == 1
    (job,) = pack(found[:1], study.resources, Capacity((Node(16, 1.0),), 140e9))
    assert (job.seed, job.seeds) == (100, len(study.groups[0].seeds))  # all in one program


def test_seeds_between_two_that_were_measured_get_a_speed_between_theirs():
    changes = [{"training": {"envs": 4}, "learning": {"update_every_steps": 4}}]
    config = resolve("dqn", "minatar/breakout", changes=[*changes, {"training": {"steps": 10**6}}])
    counts = (1, 4, 10, 64)
    seconds = [speeds.KNOWN[0].estimate(config, n).seconds - 60 for n in counts]
    rates = [n * 1e6 / s for n, s in zip(counts, seconds, strict=True)]
    assert rates[0] == pytest.approx(37_995)
    assert 100_000 < rates[1] < 200_000
    assert rates[2] == pytest.approx(288_000)
    assert rates[3] == pytest.approx(455_448)


def test_the_plan_follows_from_measured_speeds():
    data = {"agents": ["c51-ids"], "envs": ["atari/{pong,alien}"], "seeds": 3}
    found = combinations(parse(data | {"frames": 200_000_000}))
    (row,) = planning.rows(found, speeds.KNOWN)
    h200 = 50_000_000 / 6310 + 60
    assert row.runs == 6
    assert row.seconds[:2] == (pytest.approx(6 * h200), pytest.approx(6 * h200))
    # 119 ms of two cores for each fourth step
    assert row.seconds[2] == pytest.approx(2 * 6 * 50e6 / 4 * 0.119, rel=0.01)
    (other,) = planning.rows(combinations(parse(data | {"agents": ["bdqn"]})), speeds.KNOWN)
    assert not any(other.measured)
    assert other.seconds[0] < row.seconds[0]
    (never,) = planning.rows(combinations(parse(SMALL)), speeds.KNOWN)
    assert never.seconds[0] is None


def test_the_plan_goes_by_the_speed_that_was_measured_with_the_same_settings():
    data = {"agents": ["c51-ids"], "envs": ["atari/pong"], "seeds": 1, "frames": 4_000_000}
    mixed = {"settings": {"training": {"envs": 128}, "learning": {"precision": "mixed"}}}
    found = [
        planning.rows(combinations(parse(data | more)), speeds.KNOWN[:1])[0].seconds[0] - 60
        for more in ({}, mixed)
    ]
    assert found == [pytest.approx(1e6 / 6310), pytest.approx(1e6 / 8830)]


def test_the_plan_counts_a_replay_that_is_in_checkpoints():
    data = {"agents": ["dqn-ids"], "envs": ["minatar/breakout"], "seeds": 2}
    (row,) = planning.rows(combinations(parse(data)), speeds.KNOWN[:1])
    assert row.disk == pytest.approx(2 * 136e6, rel=0.02)  # two checkpoints, as they are written


def test_the_plan_counts_frames_that_are_saved_apart_and_twice():
    data = {"agents": ["dqn"], "envs": ["atari/qbert"], "seeds": 1, "frames": 1_000_000}
    (row,) = planning.rows(combinations(parse(data)), speeds.KNOWN[:1])
    written = 57.1e6  # a checkpoint, with 16 bytes of facts for each of a million steps
    assert row.disk == pytest.approx(2 * written + 200e6, rel=0.02)


def test_the_command_plans_and_starts_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("idrl.sweep.speeds.this_machine", lambda cores: speeds.KNOWN[2])
    (tmp_path / "s.toml").write_text('agents = ["c51-ids"]\nenvs = ["deep_sea/10"]\nseeds = 8\n')
    assert main(["sweep", "s.toml", "--plan", "--price", "2"]) == 0
    out = capsys.readouterr().out
    assert "c51-ids" in out
    assert "at 2 an hour" in out
    assert [p.name for p in tmp_path.iterdir()] == ["s.toml"]


def test_a_search_is_planned_where_it_could_be_started(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("idrl.sweep.speeds.this_machine", lambda cores: speeds.KNOWN[2])
    monkeypatch.setitem(sys.modules, "optuna", None)  # not installed
    study = 'agents = ["c51-ids"]\nenvs = ["deep_sea/10"]\n[search]\ntrials = 7\n'
    refused = {
        "heads.q.k = {low = 2, high = 9.5}": "write both low and high without a decimal point",
        "learning.gamma = {low = 0.9, high = 1.1}": "learning.gamma is 1.1; a discount is in",
        'explore.noise = {choices = ["constant", "bogus"]}': "explore.noise is 'bogus'",
    }
    for space, told in refused.items():
        (tmp_path / "s.toml").write_text(f"{study}space.{space}\n")
        for command in (["s.toml", "--plan"], ["s.toml"]):
            assert main(["sweep", *command]) == 2
            assert told in capsys.readouterr().err
    (tmp_path / "s.toml").write_text(f"{study}space.heads.q.k = {{low = 2, high = 9}}\n")
    assert main(["sweep", "s.toml", "--plan"]) == 0
    assert " │    7 │ " in capsys.readouterr().out
    assert main(["sweep", "s.toml"]) == 2
    assert "a search needs Optuna: pip install" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["s.toml"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "say one of: a STUDY to run, --resume FOLDER, or --status FOLDER"),
        (["deap_sea"], "there is no study 'deap_sea'; did you mean 'deep_sea'"),
        (["none.toml"], "there is no study 'none.toml'"),
        (["--resume", "."], "is not the folder of a study"),
        (["deep_sea", "--retry"], "--retry goes with --resume only"),
        (["deep_sea", "--price", "3"], "--price goes with --plan only"),
        (["deep_sea", "--price", "0"], "--price goes with --plan only"),
        (["deep_sea", "--plan", "--out", "x"], "--plan starts nothing: omit --out"),
        (["deep_sea", "--plan", "--engine", "ray"], "--plan starts nothing: omit --engine"),
        (["--status", ".", "--out", "x"], "--out goes with a STUDY only"),
        (["deep_sea", "--engine", "processes", "--address", "auto"], "--address is Ray's"),
    ],
)
def test_bad_commands(arguments, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *arguments]) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_cluster_examples_can_be_read():
    folder = Path(__file__).parents[1] / "docs" / "cluster"
    assert subprocess.run(["bash", "-n", folder / "sweep.sbatch"]).returncode == 0
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load((folder / "rayjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert subprocess.run(["bash", "-n"], input=job["spec"]["entrypoint"].encode()).returncode == 0

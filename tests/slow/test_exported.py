"""All agents exported and compared on 10,000 observations, images, trained runs from the command
line, C++, Stable-Baselines3 itself, and baselines in reports."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import jax
import numpy as np
import pytest
from benchmarks.export import agreement, policy_of, reader, reference, said
from benchmarks.peers.libraries import python_of

import idrl
from idrl.agents.registry import agent_names
from idrl.cli import main
from idrl.runs.exporting import READERS, RULES

ROOT = Path(__file__).parents[2]

COUNT = 10_000
# Exploring without chance. Every agent is evaluated without.
STEADY = {"bootstrapped-ucb", "ensemble-vote", "dqn-ids", "c51-ids", "qrdqn-ids", "iqn-ids"}


def check(name, task, tmp_path, kinds=tuple(READERS), count=COUNT, rules=RULES):
    policy = policy_of(name, task)
    for rule in rules:
        if rule == "explore" and name not in STEADY:
            with pytest.raises(idrl.IdrlError, match="by chance"):
                policy.export(tmp_path / "policy.onnx", rule=rule)
            continue
        truth = said(reference(policy, rule), policy.agent, count)
        for kind in kinds:
            path = policy.export(tmp_path / f"{rule}{kind}", rule=rule)
            found = agreement(policy, rule, truth, said(reader(path), policy.agent, count))
            assert found.values < 1e-5, (rule, kind, found)
            assert found.ratios < 1e-3, (rule, kind, found)
            assert found.actions == 0, (rule, kind, found)
            assert found.close < count / 100, (rule, kind, found)


@pytest.mark.parametrize("name", agent_names())
def test_every_agent_says_the_same_in_every_format(name, tmp_path):
    check(name, "cartpole", tmp_path)


@pytest.mark.parametrize("name", ["rainbow", "dqn-ids", "qrdqn-ids"])
def test_on_boards(name, tmp_path):
    check(name, "minatar/breakout", tmp_path)


@pytest.mark.parametrize(("name", "rules"), [("dqn", RULES), ("c51-ids", ("explore",))])
def test_on_frames(name, rules, tmp_path):
    check(name, "atari/pong", tmp_path, (".onnx",), rules=rules)


# -- a trained run ------------------------------------------------------------------------------

SETTINGS = {
    "training": {"log_every_steps": 1_000},
    "evaluation": {"every_steps": 2_000, "steps": 1_000, "envs": 4},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    return idrl.train(
        "dqn-ids", "gym/CartPole-v1", steps=6_000, seeds=2, settings=SETTINGS, out=out
    )


def test_a_run_from_the_command_line_acts_alike_everywhere(run, tmp_path):
    obs = np.random.default_rng(0).normal(size=(500, 4)).astype(np.float32)
    for options in ([], ["--rule", "explore"], ["--seed", "1", "--weights", "latest"]):
        for kind in READERS:
            path = tmp_path / f"{len(options)}{kind}"
            assert main(["export", str(run.path), str(path), *options]) == 0
            which = {"seed": 1, "weights": "latest"} if "--seed" in options else {}
            agent = idrl.load(run, **which)
            decision = agent.explain(obs)
            wanted = decision.action if "--rule" in options else agent.predict(obs)
            found = reader(path)(obs)
            assert (found["action"] != wanted).sum() <= 1
            np.testing.assert_allclose(found["mu"], decision.mu, rtol=1e-5, atol=1e-5)


def test_cpp_prints_the_numbers_of_python(run, tmp_path):
    places = [os.environ.get("ONNXRUNTIME_INCLUDE"), *(
        f"{top}/include{sub}" for top in ("/usr", "/usr/local") for sub in ("", "/onnxruntime")
    )]  # fmt: skip
    header = "onnxruntime_cxx_api.h"
    include = next((p for p in places if p and (Path(p) / header).is_file()), None)
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None or include is None:
        missing = "a C++ compiler" if compiler is None else f"{header} (ONNXRUNTIME_INCLUDE)"
        pytest.skip(f"the C++ example is not compiled here: there is no {missing}")
    import onnxruntime

    library = next((Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so*"))
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (tmp_path / name).symlink_to(library)
    example = ROOT / "examples" / "deploy"
    subprocess.run(
        [compiler, "-std=c++17", str(example / "policy.cpp"), f"-I{include}", f"-L{tmp_path}",
         "-lonnxruntime", f"-Wl,-rpath,{tmp_path}", "-o", str(tmp_path / "policy")],
        check=True,
    )  # fmt: skip
    model = str(idrl.load(run).export(tmp_path / "policy.onnx"))
    obs = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    text = "".join(" ".join(map(repr, row.tolist())) + "\n" for row in obs)
    said = [
        subprocess.run([*command, model], input=text, capture_output=True, text=True, check=True)
        for command in ([str(tmp_path / "policy")], [sys.executable, str(example / "policy.py")])
    ]
    cpp, python = (
        np.array([list(map(float, x.split())) for x in s.stdout.splitlines()]) for s in said
    )
    assert cpp.shape == (20, 5)
    np.testing.assert_allclose(cpp, python, rtol=1e-7)
    np.testing.assert_array_equal(cpp[:, 0], idrl.load(run).predict(obs))
    gone = subprocess.run([str(tmp_path / "policy"), "none.onnx"], capture_output=True, text=True)
    assert gone.returncode == 1
    assert "none.onnx" in gone.stderr


def test_stable_baselines_scores_a_trained_agent_as_we_do(run):
    python = os.environ.get("IDRL_SB3_PYTHON") or str(python_of("sb3"))
    if not Path(python).exists():
        pytest.skip("Stable-Baselines3 is not installed here: make bench-setup")
    script = Path(__file__).with_name("sb3_habits.py")
    done = subprocess.run(
        [python, "-W", "ignore", str(script), sysconfig.get_path("purelib"), str(run.path)],
        capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    ours = idrl.evaluate(idrl.load(run), episodes=100)
    returns = np.array(found["returns"])
    assert len(returns) == 100
    half = 1.96 * np.hypot(ours.return_std / 99**0.5, returns.std() / 99**0.5)
    assert abs(returns.mean() - ours.return_mean) < half, (returns.mean(), ours)
    assert found["explored"] > 50
    went_on, best, saved = found["callback"]
    assert went_on
    assert best > 50
    assert "dqn-ids" in saved
    theirs, (mean, std) = np.array(found["theirs"]), found["ours"]
    assert abs(theirs.mean() - mean) < 1.96 * np.hypot(theirs.std(), std) / 19**0.5
    assert "DQN" in found["verdict"]


# -- baselines ----------------------------------------------------------------------------------


class Lean:
    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return (observation[:, 2] > 0).astype(int), state


def test_an_agent_in_the_manners_of_others_plays_its_own_episodes(run):
    agent = idrl.load(run)
    own, other = (
        idrl.evaluate(x, "gym/CartPole-v1", episodes=20, seed=3) for x in (agent, agent.sb3())
    )
    jax.tree.map(np.testing.assert_allclose, own, other)


def test_a_baseline_stands_beside_runs(run, tmp_path, capsys):
    baseline = idrl.Baseline("lean", like=run, seeds=2, out=tmp_path / "lean")
    with pytest.raises(idrl.IdrlError, match="no evaluations yet"):
        idrl.compare(run, baseline)
    assert baseline.schedule == [2_000, 4_000, 6_000]
    for seed in baseline.seeds:
        for steps in baseline.schedule:
            score = baseline.evaluate(Lean(), seed=seed, steps=steps)
    assert score.episodes > 10
    beyond, before = (baseline.evaluate(Lean(), steps=n).return_mean for n in (4_010, 4_000))
    assert beyond == before != baseline.evaluate(Lean()).return_mean
    found = idrl.compare(run, baseline)
    assert "dqn-ids is better than lean" in found.verdict
    assert main(["report", str(run.path), str(tmp_path / "lean"), "-o", str(tmp_path / "r")]) == 0
    assert "lean" in (tmp_path / "r" / "report.md").read_text()
    capsys.readouterr()
    for words in (["evaluate", "lean"], ["export", "lean", "x.onnx"], ["explain", "lean"]):
        given = [words[0], *(str(tmp_path / word) for word in words[1:])]
        assert main(given) == 2
        assert "scores of a baseline" in " ".join(capsys.readouterr().err.split())
    for call, match in (
        (lambda: baseline.evaluate(Lean(), seed=9), "seeds 0 to 1"),
        (lambda: baseline.evaluate(Lean(), steps=7_000), "the run has 6,000"),
        (lambda: baseline.evaluate(3), "int has no predict"),
        (lambda: idrl.Baseline("lean", like=run, out=tmp_path / "lean"), "exists already"),
        (lambda: idrl.Baseline("", like=run, out=tmp_path / "b"), "cannot be called"),
        (lambda: idrl.Baseline("b", like=tmp_path / "none", out=tmp_path / "b"), "no run folder"),
    ):
        with pytest.raises(idrl.IdrlError, match=match):
            call()
    assert not (tmp_path / "b").exists()


def test_compare_plays_against_an_object_of_a_file(run, tmp_path, capsys):
    file = tmp_path / "own_model.py"
    file.write_text(
        "class Lean:\n"
        "    def predict(self, observation, state, episode_start, deterministic):\n"
        "        return (observation[:, 2] > 0).astype(int), state\n"
        "model = [Lean(), Lean()]\n"
    )
    assert main(["compare", str(run.path), f"{file}:model", "--episodes", "10"]) == 0
    assert "dqn-ids is better than Lean" in " ".join(capsys.readouterr().out.split())
    for other, match in (
        (f"{file}:none", "has no 'none'"),
        (f"{tmp_path}/gone.py:model", "no file"),
        (f"{file}:Lean", "failed on"),
        (f"{file}:", "does not name an object"),
    ):
        assert main(["compare", str(run.path), other, "--episodes", "10"]) == 2
        assert match in " ".join(capsys.readouterr().err.split())
    with pytest.raises(idrl.IdrlError, match="neither side says"):
        idrl.compare(Lean(), Lean())

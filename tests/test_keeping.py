"""Weights that a run keeps from early in training."""

import os
import signal

import numpy as np
import pytest
import small
from displays import Dies

import idrl
from idrl.cli.app import main
from idrl.config import resolve
from idrl.runs.keeping import Keeper
from idrl.storage.folder import RunFolder
from idrl.training.doing import EVALUATING

pytestmark = pytest.mark.slow
KEPT = small.SETTINGS | {"training": small.SETTINGS["training"] | {"keep_weights": 3}}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return small.train(tmp_path_factory.mktemp("kept") / "run", settings=KEPT)


def weights(run):
    return {file.relative_to(run.path): file.read_bytes() for file in run.path.glob("weights/*/*")}


def test_a_run_keeps_the_weights_of_its_first_evaluations(run):
    assert run.kept_weights == [100, 200, 400]
    early, late = (idrl.load(run, at=at) for at in (100, 400))
    assert early.config.training.steps == 100  # schedules are there, as if it had ended there
    latest = idrl.load(run, weights="latest")
    assert early.seed == latest.seed
    same = {"late": late.params, "early": early.params}
    for name, tree in same.items():
        flat, end = (np.concatenate([x.ravel() for x in leaves(t)]) for t in (tree, latest.params))
        assert np.array_equal(flat, end) == (name == "late")


def leaves(tree):
    import jax

    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def test_a_killed_run_ends_with_the_same_weights(run, tmp_path):
    with pytest.raises(MemoryError):  # after those of step 400, which no checkpoint covers yet
        small.train(tmp_path / "killed", settings=KEPT, display=Dies(400))
    killed = idrl.open_run(tmp_path / "killed")
    assert killed.kept_weights[-1] == 400
    (killed.path / "weights" / "step-000000000400" / "state.safetensors").write_bytes(b"half")
    idrl.train(resume=killed.path)
    assert weights(killed) == weights(run)


def test_the_weights_of_an_evaluation_that_was_cut_short_are_kept(tmp_path):
    """Where it is due in the middle of a block, as on a deep sea of odd size."""

    class Interrupts:
        def start(self):
            pass

        def update(self, progress, config):
            pass

        def busy(self, doing, config):
            if doing.what == EVALUATING:
                os.kill(os.getpid(), signal.SIGTERM)

    settings = {
        "trunk.hidden": [8], "training.keep_weights": 1, "training.distributions_every_steps": 0,
        "evaluation.steps": 40,
    }  # fmt: skip
    told = {"steps": 700, "settings": settings, "out": tmp_path / "run"}
    with pytest.raises(idrl.Interrupted):
        idrl.train("dqn", "deep_sea/11", **told, display=Interrupts())
    run = idrl.open_run(tmp_path / "run")
    at = run.steps
    assert at - run.config.evaluation.every_steps > 1  # iterations of one step
    assert idrl.train(resume=run).kept_weights == [at]


def test_which_evaluations_are_kept_does_not_depend_on_the_length(tmp_path):
    config = resolve("dqn", "cartpole", changes=[{"training": {"keep_weights": 4}}])
    keeper = Keeper(RunFolder(tmp_path), config, 0)
    assert [n for n in range(1, 100) if keeper.is_kept(n)] == [1, 2, 4, 8]
    assert not any(map(Keeper(RunFolder(tmp_path), resolve("dqn", "cartpole"), 0).is_kept, [1, 2]))


def test_they_are_played(run, tmp_path, capsys):
    assert main(["play", str(run.path), "--at", "100", "--page", str(tmp_path / "e.html")]) == 0
    assert "after 100 steps: return" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--at", "150"], "has no weights of step 150; it has those after 100, 200, 400 steps."),
        (["--at", "100", "--weights", "latest"], "not allowed with argument --at"),
        (["--at", "soon"], "'soon' is not a whole number"),
    ],
)
def test_others_are_refused(arguments, sentence, run, capsys):
    assert main(["play", str(run.path), *arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_damaged_ones_are_named(run, tmp_path):
    with pytest.raises(idrl.IdrlError, match="keep_weights is 32; it must be from 0 to 31"):
        resolve("dqn", "cartpole", changes=[{"training": {"keep_weights": 32}}])
    file = run.path / "weights" / "step-000000000200" / "state.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    try:
        with pytest.raises(idrl.IdrlError, match="step-000000000200 is damaged"):
            idrl.load(run, at=200)
    finally:
        file.write_bytes(whole)

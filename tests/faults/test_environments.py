"""A user's own Gymnasium environment that raises, hangs or returns what is no number."""

import odd_envs
import pytest
from driver import SMALL, check_valid

import idrl

SETTINGS = SMALL[1:]
PLACE = r"step 6 of an episode of environment \d, action [123]"


@pytest.mark.parametrize(
    ("env", "says"),
    [
        (odd_envs.Raises, rf"Raises raised RuntimeError at {PLACE}: no such road\."),
        (odd_envs.NanReward, r"NanReward returned a reward that is not finite at step 5 .*action"),
        (odd_envs.NanObservation, r"NanObservation returned an observation that is .* at step 5"),
        (odd_envs.WrongShape, r"WrongShape raised ValueError at step 5 .* action [123]: .*"),
    ],
)
def test_the_error_names_environment_step_and_action(env, says, tmp_path, tally):
    with pytest.raises(idrl.IdrlError, match=says):
        idrl.train("dqn", env, settings=SETTINGS, out=tmp_path / "run")
    check_valid(tmp_path / "run")
    tally("environment that fails", 1, 1)


@pytest.mark.faults
@pytest.mark.parametrize(("name", "status"), [("sleeps", 2), ("foreign", 1)])
def test_a_hung_environment_is_given_up(name, status, nursery, tmp_path, tally):
    """In Python it is interrupted; in foreign code the process ends."""
    child = nursery.run(
        "train", "dqn", f"odd-{name}", "--out", "run", *SMALL, "training.env_timeout_s=1.5",
        folder=tmp_path,
    )  # fmt: skip
    assert child.status == status, child.err
    assert child.seconds < 40
    assert f"odd-{name} did not return from step 6 of an episode" in child.err
    assert "within 1.5 s" in child.err
    assert child.err.count("\n") == 1
    check_valid(tmp_path / "run")
    tally("environment that hangs", 1, 1)

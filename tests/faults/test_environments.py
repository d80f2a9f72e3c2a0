"""A user's own Gymnasium environment that raises, hangs or returns what is no number."""

import time
from pathlib import Path

import numpy as np
import odd_envs
import pytest
from driver import SMALL, check_valid, difference
from gymnasium import spaces

import idrl
from idrl.envs.adapters.gymnasium_env import GymnasiumEnv
from idrl.sweep.attempt import is_finished
from idrl.system.signals import Again, signals
from idrl.training.hosted.fleet import NO_SEED

SETTINGS = SMALL[1:]
PLACE = r"step 6 of an episode of environment \d, action [123]"


@pytest.mark.parametrize(
    ("env", "says"),
    [
        (odd_envs.Raises, rf"Raises raised RuntimeError at {PLACE}: no such road\."),
        (odd_envs.NanReward, r"NanReward returned a reward that is not finite at step 5 .*action"),
        (odd_envs.NanObservation, r"NanObservation returned an observation that is .* at step 5"),
        (
            odd_envs.WrongShape,
            r"WrongShape returned an observation of shape \(3,\), but its space "
            r"has \(2,\) at step 5 .* action [123]\.",
        ),
        (odd_envs.Exits, rf"Exits raised SystemExit at {PLACE}: 0\."),
    ],
)
def test_the_error_names_environment_step_and_action(env, says, tmp_path, tally):
    with pytest.raises(idrl.IdrlError, match=says):
        idrl.train("dqn", env, settings=SETTINGS, out=tmp_path / "run")
    check_valid(tmp_path / "run")
    tally("environment that fails", 1, 1)


def worlds(space=None, shows=None, **changes):
    """Of an environment that shows `shows` from its third step on, stepped until it does."""

    class Odd(odd_envs.Plain):
        def _seen(self):
            wrong = self.t >= 3 and shows is not None
            for name, value in changes.items() if self.t >= 3 else ():
                setattr(self, name, value)
            return shows() if wrong else self.observation_space.sample()

    if space is not None:
        Odd.observation_space = space
    vector = GymnasiumEnv(Odd).make(2)
    for seed in (0, *[NO_SEED] * 4):
        seen = vector.step(np.zeros(2, np.int32), np.full(2, seed))
    return seen.obs


FOUR, BYTES = spaces.Box(-1, 1, (4,)), spaces.Box(0, 255, (8, 8, 3), np.uint8)
TWO = spaces.Dict(a=spaces.Discrete(3), b=spaces.Tuple([spaces.Box(0, 1, (2,))]))


@pytest.mark.parametrize(
    ("space", "shown", "says"),
    [
        (FOUR, np.zeros(1), r"of shape \(1,\), but its space has \(4,\)"),
        (FOUR, 0.5, r"of shape \(\), but"),
        (FOUR, np.zeros((2, 2)), r"of shape \(2, 2\), but"),
        (FOUR, [[0.0], [0.0, 1.0]], "that is not an array"),
        (FOUR, list("1234"), "of <U1, but its space has float32"),
        (FOUR, np.zeros(4, complex), "of complex128, but"),
        (FOUR, np.zeros(4, object), "of object, but"),
        (FOUR, None, r"of shape \(\), but"),
        (BYTES, np.full((8, 8, 3), 0.5), "of float64 with numbers that its space's uint8 does not"),
        (BYTES, np.full((8, 8, 3), 256), "of int64 with numbers that its space's uint8 does not"),
        (BYTES, np.zeros((3, 8, 8), np.uint8), r"of shape \(3, 8, 8\)"),
        (spaces.Discrete(3), -1, r"that is not in Discrete\(3\)"),
        (TWO, {"a": 1}, "without the keys 'a', 'b' of its space alone"),
        (TWO, {"a": 1, "b": ()}, "with a part 'b' that is not a tuple of 1 parts"),
        (TWO, {"a": 1, "b": (np.zeros(3),)}, r"with a part 'b' with a part 0 of shape \(3,\)"),
    ],
)
def test_an_observation_that_is_not_of_its_space(space, shown, says, tally):
    with pytest.raises(idrl.IdrlError, match=rf"Odd returned an observation {says}.* at step 3 of"):
        worlds(space, lambda: shown)
    tally("wrong observation", 1, 1)


@pytest.mark.parametrize(
    ("space", "shown", "seen"),
    [
        (FOUR, [0, 1, 2, 3], [0, 1, 2, 3]),
        (FOUR, np.full(4, 1e3), np.full(4, 1e3)),  # bounds are often rough
        (BYTES, np.full((8, 8, 3), 7.0), np.full((8, 8, 3), 7)),
        (spaces.Discrete(3), np.int64(2), [0, 0, 1]),
        (TWO, {"b": [np.zeros(2)], "a": np.array(1)}, [0, 1, 0, 0, 0]),
    ],
)
def test_what_means_the_same_is_taken(space, shown, seen):
    found = worlds(space, lambda: shown)
    np.testing.assert_array_equal(found, [seen, seen])


def test_an_action_space_that_changes_is_noticed(tally):
    says = r"Odd changed its action space from Discrete\(3, start=1\) to Discrete\(4\) at step 3"
    with pytest.raises(idrl.IdrlError, match=says):
        worlds(action_space=spaces.Discrete(4))
    made = []

    def differs():
        made.append(odd_envs.Plain())
        made[-1].action_space = spaces.Discrete(2 + len(made))
        return made[-1]

    with pytest.raises(idrl.IdrlError, match=r"Plain changed its action space .* at its making"):
        GymnasiumEnv(differs).make(2)
    tally("changed action space", 2, 2)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration])
def test_whatever_is_raised_is_the_environments(kind, tally):
    """Within a run, where signals raise something of their own."""

    def shows():
        raise kind

    with signals(), pytest.raises(idrl.IdrlError, match=f"Odd raised {kind.__name__} at step 3 of"):
        worlds(shows=shows)

    def impatient():
        raise Again

    with signals(), pytest.raises(Again):
        worlds(shows=impatient)

    tally("environment that raises what ends processes", 1, 1)


def test_so_is_what_its_making_raises():
    def leaves():
        raise SystemExit(0)

    with pytest.raises(idrl.IdrlError, match=r"the environment raised SystemExit at its making"):
        GymnasiumEnv(leaves)


def test_a_reset_that_is_not_repeatable_is_said_before_training(tmp_path):
    assert not GymnasiumEnv(odd_envs.Moody).repeats
    assert GymnasiumEnv(odd_envs.Plain).repeats


def test_a_run_on_one_goes_on_and_does_not_pretend(nursery, tmp_path, tally):
    arguments = ["train", "dqn", "odd-moody", "--steps", "2000", "--out", "run", *SMALL]
    child = nursery.start(*arguments, folder=tmp_path)
    while not list(tmp_path.glob("run/checkpoints/step-*")):
        time.sleep(0.01)
    child.signal()
    assert child.wait() == -9
    assert "cannot be repeated, nor resumed as if it had never stopped" in child.said
    child = nursery.run("train", "--resume", "run", folder=tmp_path)
    assert child.status == 0, child.err
    assert "will not equal an uninterrupted one" in child.said
    check_valid(tmp_path / "run")
    tally("environment that cannot repeat itself", 1, 1)


def test_a_process_that_its_environment_ends_is_not_done(nursery, tmp_path, tally):
    """With status 0: no folder says that it is finished."""
    child = nursery.run("train", "dqn", "odd-leaves", "--out", "run", *SMALL, folder=tmp_path)
    assert child.status == 0
    assert not is_finished(tmp_path / "run")
    check_valid(tmp_path / "run")
    tally("environment that ends its process", 1, 1)


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


@pytest.mark.parametrize("name", ["sleeps", "foreign"])
def test_a_hung_environment_in_another_process_is_given_up(name, nursery, tmp_path, tally):
    """In foreign code that process ends, with the sentence."""
    child = nursery.run(
        "train", "dqn", f"odd-{name}", "--out", "run", *SMALL, "training.env_timeout_s=1.5",
        "training.env_processes=2", folder=tmp_path,
    )  # fmt: skip
    assert child.status == 2, child.err
    assert child.seconds < 40
    assert f"odd-{name} did not return from step 6 of an episode" in child.err
    assert ("a process of odd-foreign ended (exit status 1)" in child.err) == (name == "foreign")
    assert "Traceback" not in child.err
    check_valid(tmp_path / "run")
    tally("environment that hangs in another process", 1, 1)


def test_processes_of_environments_end_with_a_killed_run_which_goes_on(
    nursery, reference, tmp_path, tally
):
    whole = reference("hosted-2")
    arguments = [*whole.arguments, "training.env_processes=2", "--out", "run"]
    child = nursery.start(*arguments, folder=tmp_path)
    evaluations = tmp_path / "run" / "evaluations.csv"
    while not evaluations.exists() or evaluations.read_text().count("\n") < 3:
        time.sleep(0.01)
    others = children_of(child.pid)
    assert len(others) == 4, "two for training and two for evaluation"
    child.signal()
    child.wait()
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in others):
        assert time.monotonic() < until
        time.sleep(0.05)
    # With another number of them: that changes nothing.
    resumed = nursery.run(
        "train", "--resume", "run", "--set", "training.env_processes=1", folder=tmp_path
    )
    assert resumed.status == 0, resumed.err
    tally(
        "kill -9 beside processes of environments", 1, 1, *difference(tmp_path / "run", whole.path)
    )


def children_of(parent) -> list[int]:
    """Not those that are over."""
    stats = [path.read_text() for path in Path("/proc").glob("[0-9]*/stat")]
    fields = [(int(text.split()[0]), text.rpartition(")")[2].split()) for text in stats]
    return [pid for pid, (state, ppid, *_) in fields if int(ppid) == parent and state != "Z"]

"""bsuite's games against references by hand, its scores on hand-made data, and the command."""

import csv
import functools
import subprocess
import sys
import time
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idrl import IdrlError
from idrl.bsuite import scoring
from idrl.bsuite.sweeps import EXPERIMENTS, PUBLISHED, plan
from idrl.cli.app import main
from idrl.config import resolve
from idrl.envs import make_env
from idrl.envs.families.bsuite import GAMES
from idrl.training.rollout import advance, begin

KEY = jax.random.key(3)


@functools.cache
def compiled(env):
    return jax.jit(env.task), jax.jit(env.reset), jax.jit(env.step)


def played(env, actions, key=KEY):
    """States, observations and steps of one episode by these actions."""
    draw, reset, move = compiled(env)
    task = draw(key)
    state, obs = reset(task, key)
    states, observations, steps = [state], [np.asarray(obs)], []
    for t, action in enumerate(actions):
        state, step = move(task, state, jnp.int32(action), jax.random.fold_in(key, t))
        states.append(state)
        observations.append(np.asarray(step.obs))
        steps.append(step)
        if step.terminated:
            break
    return states, observations, steps


# -- games --------------------------------------------------------------------------------------


def test_bandit_pays_a_permutation_and_ends_at_once():
    env = make_env("bsuite/bandit")
    task = env.task(KEY)
    state, obs = env.reset(task, KEY)
    assert obs.shape == env.obs_shape
    arms = jnp.arange(env.num_actions)
    paid = jax.vmap(lambda arm: env.step(task, state, arm, KEY)[1])(arms)
    np.testing.assert_allclose(sorted(paid.reward.tolist()), np.arange(11) / 10, atol=1e-6)
    assert paid.terminated.all()
    assert not paid.truncated.any()
    other = env.task(jax.random.key(4))
    assert not np.array_equal(task.inner, other.inner)
    assert np.array_equal(task.inner, env.task(KEY).inner)


def test_noise_is_added_to_the_reward_and_not_to_the_raw_return():
    env = make_env("bsuite/bandit?noise=3.0")
    task = env.task(KEY)
    state, _ = env.reset(task, KEY)
    keys = jax.random.split(KEY, 4000)
    steps = jax.vmap(lambda key: env.step(task, state, 2, key)[1])(keys)
    error = np.asarray(steps.reward) - float(task.inner[2])
    assert abs(error.mean()) < 4 * 3 / 4000**0.5
    assert error.std() == pytest.approx(3.0, rel=0.05)
    np.testing.assert_allclose(steps.info["raw_return"], float(task.inner[2]), rtol=1e-6)


def test_catch_by_hand():
    env = make_env("bsuite/catch?noise=1.0")
    assert env.obs_shape == (10, 5)
    for key in map(jax.random.key, range(6)):
        _, first, _ = played(env, [], key)
        ball, paddle = int(first[0][0].argmax()), 2
        assert first[0].sum() == 2
        assert first[0][9, 2] == 1
        for action in (0, 1, 2):
            _, seen, steps = played(env, [action] * 20, key)
            assert len(steps) == 9
            paddle = {0: 0, 1: 2, 2: 4}[action]  # nine moves are enough to reach either wall
            raw = 1.0 if paddle == ball else -1.0
            assert float(steps[-1].info["raw_return"]) == raw
            assert seen[3][3, ball] == 1
            assert float(steps[0].reward) != 0  # noise at every step


def test_mountain_car_by_hand():
    env = make_env("bsuite/mountain_car")
    actions = [2] * 5 + [0] * 40 + [1] * 3
    states, seen, steps = played(env, actions)
    position, velocity = float(states[0].inner.position), 0.0
    assert -0.6 <= position <= -0.4
    for t, action in enumerate(actions):
        velocity += (action - 1) * 0.001 - 0.0025 * np.cos(3 * position)
        velocity = min(max(velocity, -0.07), 0.07)
        position = min(max(position + velocity, -1.2), 0.6)
        if position == -1.2:
            velocity = max(velocity, 0.0)
        np.testing.assert_allclose(
            seen[t + 1], [position, velocity, (t + 1) / 1000], rtol=1e-3, atol=1e-5
        )
    assert [float(s.reward) for s in steps] == [-1.0] * len(actions)


@pytest.mark.slow
def test_mountain_car_ends_at_the_goal_and_after_a_thousand_steps():
    env = make_env("bsuite/mountain_car")
    _, _, steps = played(env, [1] * 1100)
    assert len(steps) == 1000
    assert float(steps[-1].info["raw_return"]) == -1000
    task = env.task(KEY)
    state, _ = env.reset(task, KEY)
    near = state._replace(
        inner=state.inner._replace(position=jnp.float32(0.49), velocity=jnp.float32(0.05))
    )
    assert env.step(task, near, 2, KEY)[1].terminated


def pole(state, action):
    """The equations of Barto, Sutton and Anderson, in float64."""
    x, v, angle, spin = state
    cos, sin, force = np.cos(angle), np.sin(angle), 10.0 * (action - 1)
    temp = (force + 0.05 * spin**2 * sin) / 1.1
    dspin = (9.8 * sin - cos * temp) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    dv = temp - 0.05 * dspin * cos / 1.1
    angle = (angle + 0.01 * spin) % (2 * np.pi)
    return x + 0.01 * v, v + 0.01 * dv, angle, spin + 0.01 * dspin


def start_of(states):
    first = states[0].inner
    return tuple(float(v) for v in (first.x, first.speed, first.angle, first.spin))


def test_cartpole_by_hand():
    env = make_env("bsuite/cartpole?noise=0.5")
    actions = [2, 2, 0, 1, 0] * 100
    states, seen, steps = played(env, actions)
    now, total = start_of(states), 0.0
    assert max(map(abs, now)) <= 0.05
    for t, step in enumerate(steps):
        now = pole(now, actions[t])
        x, v, angle, spin = now
        wanted = [x / 3, v / 3, np.sin(angle), np.cos(angle), spin, (t + 1) / 1000]
        np.testing.assert_allclose(seen[t + 1], wanted, rtol=1e-3, atol=1e-3)
        up = np.cos(angle) > 0.8 and abs(x) < 3
        total += up
        assert bool(step.terminated) == (not up)
        assert float(step.info["raw_return"]) == total
    assert 10 < len(steps) < 500  # it fell


def test_cartpole_runs_out_of_time_after_1001_steps():
    env = make_env("bsuite/cartpole")
    task = env.task(KEY)
    state, _ = env.reset(task, KEY)
    zero = jnp.float32(0)
    still = state.inner._replace(x=zero, speed=zero, angle=zero, spin=zero)
    for before, ends in ((999, False), (1000, True)):
        late = state._replace(inner=still._replace(time=jnp.int32(before)))
        step = env.step(task, late, 1, KEY)[1]
        assert bool(step.terminated) == ends
        assert float(step.reward) == 1


def test_swingup_rewards_costs_and_ends():
    env = make_env("bsuite/cartpole_swingup?height=0.5")
    states, seen, steps = played(env, [2] * 300)
    now = start_of(states)
    assert abs(now[2] - np.pi) <= 0.05
    for t, step in enumerate(steps):
        now = pole(now, 2)
        x, v, angle, spin = now
        slow, central = abs(spin) < 1, abs(x) < 0.5
        wanted = [x / 3, v / 3, np.sin(angle), np.cos(angle), spin, (t + 1) / 1000]
        np.testing.assert_allclose(seen[t + 1][:6], wanted, rtol=2e-3, atol=2e-3)
        assert seen[t + 1][6:].tolist() == [1.0 if central else -1.0, 1.0 if slow else -1.0]
        up = np.cos(angle) > 0.5 and slow and central
        assert float(step.reward) == pytest.approx(up - 0.1)
        assert bool(step.terminated) == (abs(x) > 3)
    assert 10 < len(steps) < 300  # it left the track


def test_swingup_pays_one_where_its_height_and_width_allow():
    def paid(name, x, angle, spin, action=1):
        env = make_env(name)
        task = env.task(KEY)
        state, _ = env.reset(task, KEY)
        values = {"x": x, "speed": 0.0, "angle": angle, "spin": spin}
        state = state._replace(
            inner=state.inner._replace(**{k: jnp.float32(v) for k, v in values.items()})
        )
        return float(env.step(task, state, action, KEY)[1].reward)

    name = "bsuite/cartpole_swingup?height=0.5"
    assert paid(name, 0.4, 0.1, 0.0) == 1
    assert paid(name, 0.4, 0.1, 0.0, action=0) == pytest.approx(0.9)
    assert paid(name, 0.6, 0.1, 0.0) == 0  # too far out
    assert paid(name + "&width=1.0", 0.6, 0.1, 0.0) == 1
    assert paid(name, 0.4, 1.2, 0.0) == 0  # cos 1.2 = 0.36
    assert paid("bsuite/cartpole_swingup?height=0.3", 0.4, 1.2, 0.0) == 1
    assert paid(name, 0.4, 0.1, 1.5) == 0  # too fast


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("bsuite/bandits", "did you mean 'bandit'"),
        ("bsuite", "unknown environment 'bsuite'"),
        ("bsuite/catch?nois=1", "did you mean 'noise'"),
        ("bsuite/catch?height=1", "unknown option 'height'"),
        ("bsuite/catch?noise=-1", "noise is -1.0; it must be a number, 0 or more"),
        ("bsuite/catch?noise=loud", "'loud' is not a number"),
        ("bsuite/cartpole_swingup?height=1.0", "from 0 to below 1"),
    ],
)
def test_bad_names_are_refused(name, sentence):
    with pytest.raises(IdrlError, match=sentence.replace("?", r"\?")):
        make_env(name)


@pytest.mark.parametrize("game", GAMES)
def test_every_game_has_settings(game):
    """Nothing of the rule, the priors or the range is the game's own; ε does not begin at 1."""
    for agent in ("dqn", "bootstrapped-dqn", "dqn-ids", "c51-ids", "qrdqn-ids"):
        config, unknown = (resolve(agent, env) for env in (f"bsuite/{game}?noise=1.0", "acrobot"))
        assert config.training.steps == GAMES[game].episodes * GAMES[game].longest_steps
        assert config.heads == unknown.heads
        assert config.learning.unit == "measured"
        begin = "start" if agent == "dqn" else "epsilon_start"
        assert (getattr(config.explore, begin), getattr(unknown.explore, begin)) == (0.05, 1.0)
        assert config.explore == replace(unknown.explore, **{begin: 0.05})


# -- scores -------------------------------------------------------------------------------------


def test_recorded_episodes():
    assert scoring.recorded(30) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 20, 25, 30]
    assert scoring.recorded(10_000)[-3:] == [8000, 9000, 10_000]
    assert scoring.recorded(1300)[-4:] == [800, 900, 1000, 1200]


def bad(count, good_from):
    """Bad episodes until the first good one, counted from 1."""
    return (np.arange(1, count + 1) < good_from).astype(float)


def test_solved_at_the_first_recorded_episode_under_ninety_percent():
    # 89 bad, then good: 89 of 99 would do, and 100 is the first recorded one after it.
    assert scoring.solved_at(bad(200, 90), windy=False) == 100
    # 90 of 100 is not under 90%; 90 of 120 is.
    assert scoring.solved_at(bad(200, 91), windy=False) == 120
    assert scoring.solved_at(np.ones(1000), windy=False) is None
    # The windy form asks for 80%, and not before episode 100.
    assert scoring.solved_at(bad(200, 90), windy=True) == 120
    assert scoring.solved_at(np.zeros(99), windy=True) is None
    assert scoring.solved_at(np.zeros(100), windy=True) == 100


def test_deep_sea_counts_runs_that_beat_dithering():
    late, soon = bad(2000, 1100), bad(2000, 500)
    assert scoring.solved_at(late, windy=False) == 1400
    # 2^10 + 100 = 1124 is past for the late one at size 10, not at size 12.
    points = {10: [late, soon], 12: [late], 14: [np.ones(2000)]}
    assert scoring.deep_sea(points, windy=False) == pytest.approx(2 / 4)


def test_regret_scores_by_hand():
    assert scoring.bandit([np.full(10, 1.0)]) == 1
    assert scoring.bandit([np.full(10, 0.5)]) == 0
    # regrets 0.1 and 0.3 average to 0.2 of 0.5
    assert scoring.bandit([np.full(10, 0.9), np.full(10, 0.7)]) == pytest.approx(0.6)
    assert scoring.bandit([np.full(10, 0.1)]) == 0  # clipped
    assert scoring.catch([np.array([1.0, 1.0, 1.0, -1.0])]) == pytest.approx((1.6 - 0.5) / 1.6)
    assert scoring.mountain_car([np.full(4, -100.0)]) == 1
    assert scoring.mountain_car([np.full(4, -350.0)]) == pytest.approx(0.75)
    # mean 300 of 1000 is 0.3; one of two runs has an episode above 500
    runs = [np.array([0.0, 600.0]), np.array([100.0, 500.0])]
    assert scoring.cartpole(runs) == pytest.approx(0.5 * (0.3 + 0.5))
    assert scoring.swingup([np.array([0.0, 140.0])]) == pytest.approx(0.5 * (0.1 + 1))
    assert scoring.swingup([np.array([-10.0, -10.0])]) == 0


def test_noise_levels_are_averaged_with_a_penalty_for_spread():
    # mean 0.6, standard deviation 0.4: half of 0.6 and of 0.2
    assert scoring.over_noise([1.0, 0.2]) == pytest.approx(0.4)
    assert scoring.over_noise([0.7] * 5) == pytest.approx(0.7)
    points = {0.1: [np.full(5, 1.0)], 10.0: [np.full(5, 0.6)]}
    assert EXPERIMENTS["bandit_noise"].judge(points) == pytest.approx(0.4)


@pytest.mark.slow
@pytest.mark.parametrize(("game", "steps"), [("catch", 90), ("cartpole", 1000), ("bandit", 20)])
def test_random_actions_score_what_was_published(game, steps):
    envs = 100
    env = make_env(f"bsuite/{game}?noise=1.0")
    task = env.task(KEY)

    def one(worlds, t):
        act_key, env_key = jax.random.split(jax.random.fold_in(KEY, t))
        action = jax.random.randint(act_key, (envs,), 0, env.num_actions)
        worlds, happened = advance(env, task, worlds, action, worlds.memory, env_key)
        return worlds, (happened.ended, happened.info["raw_return"])

    start = begin(env, task, KEY, jnp.zeros(envs, jnp.int32))
    _, (ended, raw) = jax.lax.scan(one, start, jnp.arange(steps))
    runs = [np.asarray(raw)[np.asarray(ended)]]
    published = PUBLISHED[f"{game}_noise"]["random"]
    assert getattr(scoring, game)(runs) == pytest.approx(published, abs=0.02)


# -- sweeps -------------------------------------------------------------------------------------


def test_sweeps_are_bsuites():
    assert set(EXPERIMENTS) == set(PUBLISHED)
    runs = {name: len(e.values) * e.seeds for name, e in EXPERIMENTS.items()}
    assert runs == dict.fromkeys(EXPERIMENTS, 20) | {"deep_sea": 21, "deep_sea_stochastic": 21}
    for experiment in EXPERIMENTS.values():
        for value in experiment.values[:: len(experiment.values) - 1]:
            env = make_env(experiment.env_of(value))
            assert env.name == experiment.env_of(value)
    assert all(one.trimmed() == "" for one in plan())
    (one,) = plan(["deep_sea"], [10, 12], 2, 500)
    assert one.trimmed() == "sizes 10,12; 2 seeds, not 1; 500 of 10,000 episodes"


def test_deep_sea_is_decided_when_solved_or_too_late():
    sea = EXPERIMENTS["deep_sea"]
    assert sea.decided(10, [bad(200, 90)], 10_000)
    assert not sea.decided(10, [np.ones(1123)], 10_000)
    assert sea.decided(10, [np.ones(1124)], 10_000)
    assert not sea.decided(20, [np.ones(5000)], 10_000)
    assert not sea.decided(10, [bad(200, 90), np.ones(200)], 10_000)
    assert not EXPERIMENTS["bandit_noise"].decided(0.1, [np.ones(50), np.ones(49)], 50)


# -- the command --------------------------------------------------------------------------------


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_bsuite_from_end_to_end(tmp_path, capsys, monkeypatch):
    from idrl.bsuite import sweeps

    monkeypatch.setitem(
        sweeps.EXPERIMENTS, "bandit_noise",
        replace(EXPERIMENTS["bandit_noise"], values=(0.1,)),
    )  # fmt: skip
    words = ["bsuite", "dqn", "--experiments", "bandit_noise", "--episodes", "200",
             "--seeds", "2", "--out", str(tmp_path / "out")]  # fmt: skip
    assert main([*words, "--time-limit", "1e-9"]) == 0
    assert "left open by the time limit" in capsys.readouterr().out
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "0.74" in said
    assert "±0.01" in said
    (row,) = table(tmp_path / "out/scores.csv")
    assert 0 <= float(row["score"]) <= 1
    assert row["trimmed"] == "2 seeds, not 4; 200 of 10,000 episodes"
    points = table(tmp_path / "out/points.csv")
    assert [p["episodes"] for p in points] == ["200"] * 2
    recorded = table(tmp_path / "out/bandit_noise/noise=0.1/episodes.csv")
    for point in points:
        raw = [float(r["raw_return"]) for r in recorded if r["seed"] == point["seed"]][:200]
        assert float(point["mean_return"]) == pytest.approx(np.mean(raw))
    assert (tmp_path / "out/radar.png").read_bytes()[:4] == b"\x89PNG"
    # Again: nothing is trained, the scores are the same.
    before = (tmp_path / "out/scores.csv").read_bytes()
    monkeypatch.setattr("idrl.runs.api.train", None)
    assert main(words) == 0
    assert "was finished" in capsys.readouterr().out
    assert (tmp_path / "out/scores.csv").read_bytes() == before
    words[words.index("200")] = "300"
    assert main(words) == 2
    assert "holds a run with other settings" in capsys.readouterr().err


@pytest.mark.slow
def test_an_interrupted_point_is_resumed_to_the_same_end(tmp_path):
    from idrl.bsuite.running import run_point

    (one,) = plan(["deep_sea"], [5], 2, 400)
    whole, _ = run_point("dqn", one, 5, tmp_path / "whole", float("inf"), None)
    # A deadline that has passed by the first block ends the run there, with a checkpoint.
    runs, fresh = run_point("dqn", one, 5, tmp_path / "cut", time.monotonic() + 0.01, None)
    assert runs is None
    assert fresh
    assert list((tmp_path / "cut/deep_sea/size=5/checkpoints").iterdir())
    resumed, _ = run_point("dqn", one, 5, tmp_path / "cut", float("inf"), None)
    for a, b in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["dqnn"], "unknown agent 'dqnn'; did you mean 'dqn'?"),
        (["dqn", "--experiments", "bandit_nois"], "did you mean 'bandit_noise'?"),
        (["dqn", "--experiments", "deep_sea,"], "is not a list such as"),
        (["dqn", "--experiments", "bandit_noise", "--sizes", "10"], "--sizes belongs to deep_sea"),
        (["dqn", "--sizes", "ten"], "'ten' is not a whole number"),
        (["dqn", "--episodes", "0"], "'0' is not a whole number, 1 or more"),
        (["dqn", "--time-limit", "nan"], "not a positive number of minutes"),
        (["dqn", "--out", __file__], "it must be a folder"),
    ],
)
def test_bad_input_is_one_sentence(words, sentence, capsys):
    assert main(["bsuite", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_the_parser_imports_nothing_heavy():
    code = (
        "import sys; from idrl.cli.app import parser; parser(); "
        "print([m for m in ('jax', 'numpy', 'matplotlib')"
        " if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"

"""Tasks with action masks, in both loops, on the disk, and as they are shown."""

import functools
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mazes import NORTH, GymMaze
from safetensors.numpy import load_file

import idrl
from idrl.cli.app import main
from idrl.config import resolve
from idrl.envs import make_env
from idrl.envs.adapters.gymnasium_env import GymnasiumEnv
from idrl.envs.families.maze import EAST, OPEN, Maze, MazeState
from idrl.inspect.play.episode import play
from idrl.runs.session import make_program
from idrl.storage import checkpoint
from idrl.training.loop import train

# Compiling takes most of the time here: let XLA try less hard.
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})

SMALL = {
    "trunk": {"hidden": [8]},
    "learning": {"learning_starts_steps": 40, "replay_capacity": 400, "target_every_steps": 50,
                 "update_every_steps": 4, "batch_size": 8},
    "training": {"steps": 300, "envs": 2, "log_every_steps": 100,
                 "distributions_every_steps": 100},
    "evaluation": {"every_steps": 100, "steps": 40, "envs": 2},
}  # fmt: skip


# -- the maze -----------------------------------------------------------------------------------


def test_the_maze_has_one_way_to_its_door():
    maze = Maze(6)
    state = MazeState(*np.indices((6, 6)).astype(np.int32), np.zeros((6, 6), np.int32), 0)
    at = jit(jax.vmap(jax.vmap(maze.possible, (None, 0)), (None, 0)))
    for seed in range(3):
        task = maze.task(jax.random.key(seed))
        # Every cell but the door's has one way north or west, so each reaches the door.
        allowed = np.asarray(at(task, state._replace(blocked=state.time)))
        assert (allowed[..., :2].sum(-1) == 1).sum() == 35
        assert allowed[..., OPEN].sum() == 1
        # Passages are open in both directions.
        np.testing.assert_array_equal(allowed[1:, :, 0], allowed[:-1, :, 2])
        np.testing.assert_array_equal(allowed[:, 1:, 1], allowed[:, :-1, EAST])
    assert Maze(5).optimal_return() == pytest.approx(0.6)


@pytest.mark.parametrize("shown", [True, False])
def test_the_maze_of_the_tests_is_the_same(shown):
    task = jnp.asarray(NORTH).at[:, 0].set(True).at[0].set(False)
    ours, theirs = Maze(4, shown), GymMaze(np.asarray(task), shown)
    step, rng = jit(ours.step), np.random.default_rng(0)
    state, obs = ours.reset(task, None)
    other, info = theirs.reset()
    for _ in range(160):
        np.testing.assert_array_equal(obs, other)
        assert ("action_mask" in info) == shown
        possible = np.asarray(ours.possible(task, state))
        if shown:
            np.testing.assert_array_equal(info["action_mask"], possible)
        action = int(rng.choice(np.flatnonzero(possible) if shown else 5))
        state, seen = step(task, state, action, None)
        other, reward, terminated, truncated, info = theirs.step(action)
        assert (float(seen.reward), bool(seen.terminated)) == pytest.approx((reward, terminated))
        assert bool(seen.truncated) == truncated
        obs = seen.obs
        if terminated or truncated:
            state, obs = ours.reset(task, None)
            other, info = theirs.reset()


def test_a_mask_that_is_none_is_refused():
    class Wrong(Maze):
        def possible(self, task, state):
            return jnp.ones(4)

    with pytest.raises(
        idrl.IdrlError, match=r"returns shape \(4,\) of float32; it must be a boolean"
    ):
        make_env(Wrong(3))
    assert main(["train", "dqn", "maze/5?mask=2"]) == 2


# -- both loops ---------------------------------------------------------------------------------


def program(kind, agent, *, limit=None, **changes):
    env = Maze(4) if kind == "compiled" else GymnasiumEnv(functools.partial(GymMaze, limit=limit))
    if kind == "compiled" and limit:
        env.limit = limit
    shape = env.obs_shape if kind == "hosted" else None
    heads = {name: {"hidden": [8]} for name in resolve(agent, "maze/4").spec.values}
    settings = [SMALL, {"seeds": 2, "heads": heads}, changes]
    return make_program(resolve(agent, "maze/4", changes=settings, obs_shape=shape), env)


def collect(p, state=None, iteration=0):
    return [
        progress._replace(state=jax.device_get(progress.state))
        for progress in train(p, state, iteration, p.seed_keys(0))
    ]


def of_cells(task, obs):
    """The masks of observations, by the rules of the maze."""
    row, column = np.divmod(np.asarray(obs).argmax(-1), 4)
    state = MazeState(jnp.asarray(row), jnp.asarray(column), 0, 0)
    possible = jax.vmap(Maze(4).possible, (None, MazeState(0, 0, None, None)))
    return np.asarray(possible(task, state))


# Between them: a posterior that is fitted anew, an ensemble with bootstrap masks, quantiles; double
# selection, priorities, n-step returns, Thompson sampling and IDS.
EACH = [
    ("compiled", "bdqn", {"heads": {"q": {"k": 2, "fit_batch": 64}},
                          "learning": {"n_step": 3, "priority": 0.5}}),
    pytest.param(
        "hosted", "qrdqn-ids", {"heads": {"q": {"k": 2, "mask_prob": 0.5}},
                                "learning": {"n_step": 2}}, marks=pytest.mark.slow),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "agent", "changes"), EACH)
def test_what_is_stored_is_what_was_allowed_and_resumes(kind, agent, changes):
    p = program(kind, agent, limit=9, **changes)  # nearly all episodes end by their limit
    whole = collect(p)
    state = whole[-1].state
    written = p.cadence.warmup_vector_steps + p.cadence.total * p.cadence.vector_steps
    written -= p.rows_behind
    assert written < p.replay_rows
    for seed in range(2):
        one = jax.tree.map(lambda x, s=seed: x[s], (state.replay, state.task, state.states))
        replay, task, states = one
        task = jnp.asarray(task if kind == "compiled" else NORTH)
        obs = replay.obs[:written].reshape(-1, 16)
        facts = replay.facts[:written].reshape(len(obs), -1)
        action, valid = facts[:, 0].astype(int), facts[:, 3] > 0
        allowed = facts[:, -1:].astype(int) >> np.arange(5) & 1 > 0
        np.testing.assert_array_equal(allowed, of_cells(task, obs))  # the last observations' too
        assert (~valid).any()
        assert allowed[np.arange(len(obs)), action][valid].all()
        np.testing.assert_array_equal(states.allowed, of_cells(task, states.obs))
        seeds = jax.tree.map(lambda x, s=seed: x[s], state._replace(worlds=None))
        batch = p._sample(seeds, jax.random.key(0), jnp.int32(written), 100)
        np.testing.assert_array_equal(batch.allowed_t, of_cells(task, batch.s_t))
        assert (batch.discount_t > 0).any()

    middle = whole[len(whole) // 2]
    fresh = program(kind, agent, limit=9, **changes)
    rest = collect(fresh, fresh.place(middle.state), middle.iteration)
    pairs = zip(*map(jax.tree.leaves, (rest[-1].state, state)), strict=True)
    assert all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)
    for each in (p, fresh):
        each.close()


@pytest.mark.parametrize(
    ("at_the_end", "allowed"),
    [
        (True, [False, True, True, False, False]),  # as it is at that cell
        (False, [False] * 5),  # nothing can follow
        (None, [True] * 5),  # it says nothing: all are
    ],
)
def test_the_mask_of_the_last_observation_is_kept(at_the_end, allowed):
    vector = GymnasiumEnv(lambda: GymMaze(limit=1, at_the_end=at_the_end)).make(1)
    first = vector.step(np.array([-1]), np.array([0]))
    last = vector.step(np.array([0]), np.array([-1]))  # north, where the limit is
    assert last.truncated.tolist() == [True]
    assert last.allowed.tolist() == [allowed]
    again = vector.step(np.array([0]), np.array([-1]))  # which only resets
    assert again.allowed.tolist() == first.allowed.tolist() == [[True, False, False, False, False]]


# -- learning, with what ships ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("env", "best"), [("maze/4", 0.7), (GymMaze, 0.7)])
def test_the_way_is_found(tmp_path, env, best):
    """Targets over all actions never get there: they end at -8, by the limit."""
    how = {"evaluation": {"every_steps": 1_000, "steps": 250, "envs": 1}}
    run = idrl.train("dqn", env, steps=3_000, seeds=2, settings=how, out=tmp_path / "run")
    assert run.evaluations["return_mean"][-2:] == pytest.approx([best, best])


# -- on the disk, and as they are shown ---------------------------------------------------------

TINY = SMALL | {
    "heads": {"q": {"hidden": [8], "k": 2}, "z": {"hidden": [8], "atoms": 5}},
    "training": SMALL["training"] | {"envs": 1},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("masks") / "run"
    return idrl.train("c51-ids", "maze/3", steps=200, seeds=2, settings=TINY, out=out)


def contents(folder):
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder): p.read_bytes() for p in files}


@pytest.mark.slow
def test_a_resumed_run_equals_one_that_was_not_stopped(run, tmp_path):
    path = shutil.copytree(run.path, tmp_path / "run")
    idrl.train(resume=path, steps=300)
    whole = idrl.train(
        "c51-ids", "maze/3", steps=300, seeds=2, settings=TINY, out=tmp_path / "whole"
    )
    for name in ("episodes.csv", "evaluations.csv", "metrics.csv", "distributions.csv"):
        assert (path / name).read_bytes() == (whole.path / name).read_bytes(), name
    ours, theirs = (checkpoint.newest(p / "checkpoints")[0] for p in (path, whole.path))
    assert (ours / checkpoint.ARRAYS).read_bytes() == (theirs / checkpoint.ARRAYS).read_bytes()


@pytest.mark.slow
def test_a_run_of_before_is_refused_and_still_plays(run, tmp_path, capsys):
    path = shutil.copytree(run.path, tmp_path / "run")
    place, _ = checkpoint.newest(path / "checkpoints")
    arrays = load_file(place / checkpoint.ARRAYS)
    # As they were: rows without masks, and states that are observations alone.
    arrays["replay/facts"] = np.ascontiguousarray(arrays["replay/facts"][..., :-1])
    arrays["states"] = arrays.pop("states/obs")
    del arrays["states/allowed"]
    tree = {}
    for name, array in arrays.items():
        *folders, last = name.split("/")
        functools.reduce(lambda at, key: at.setdefault(key, {}), folders, tree)[last] = array
    manifest = checkpoint.read_manifest(place)
    meta = {name: value for name, value in manifest["meta"].items() if name != "cut"}
    checkpoint.save(path / "checkpoints", manifest["steps"], tree, meta)
    before = contents(path)
    assert main(["train", "--resume", str(path), "--steps", "300"]) == 2
    error = capsys.readouterr().err
    assert "does not say which actions were allowed" in error
    assert error.count("\n") == 1
    assert contents(path) == before
    assert idrl.evaluate(path, episodes=3).episodes.tolist() == [3, 3]
    assert idrl.load(path).predict(np.zeros(9)) == idrl.load(run).predict(np.zeros(9))


def test_runs_without_masks_are_stored_as_before():
    heads = {"heads": {"q": {"mask_prob": 0.5}}}
    config = resolve("c51-ids", "maze/3?mask=0", changes=[TINY, heads])
    like = make_program(config, make_env(config.env)).like()
    assert like.replay.facts.shape[-1] == 4 + 2
    assert like.states.shape == (1, 64, 9)


@pytest.mark.slow
def test_nothing_is_shown_of_what_is_not_allowed(run, tmp_path, capsys):
    assert main(["explain", str(run.path), "--png", str(tmp_path / "explain.png")]) == 0
    rows = [line.split("│")[2:-1] for line in capsys.readouterr().out.splitlines() if "│" in line]
    episode = play(run.path, max_steps=20)
    hidden, steps = np.isnan(episode.mu), np.arange(len(episode.action))
    assert [all(cell.strip() == "–" for cell in row[1:]) for row in rows] == hidden[0].tolist()
    assert (hidden[:, :4].sum(1) >= 1).all()  # a tree: no cell has four passages at its corners
    for chosen in (episode.action, episode.greedy, episode.explored):
        assert not hidden[steps, chosen].any()
    for name in ("sigma", "rho2", "regret", "info_gain", "ratio"):
        np.testing.assert_array_equal(np.isnan(getattr(episode, name)), hidden)
    shown = np.asarray(episode.returns.probs).sum(-1)
    np.testing.assert_array_equal(shown == 0, hidden)
    # Regret and ratio are infinite for what is not allowed: none of it is in the percentiles.
    assert np.isfinite(run.distributions["p100"]).all()
    assert {*run.distributions["quantity"]} >= {"regret", "ratio", "sigma2"}


@pytest.mark.slow
def test_a_policy_takes_masks(run):
    policy, obs = idrl.load(run), np.eye(9)
    for action in range(5):
        mask = np.arange(5) == action
        assert policy.predict(obs[0], mask) == action
        assert policy.predict(obs, mask).tolist() == [action] * 9  # one for all
        assert policy.explain(obs, np.tile(mask, (9, 1))).action.tolist() == [action] * 9
    with pytest.raises(idrl.IdrlError, match=r"shape \(4,\); for .* it must be \(9, 5\)"):
        policy.predict(obs, np.ones(4))
    with pytest.raises(idrl.IdrlError, match="allows no action"):
        policy.predict(obs, np.arange(9)[:, None] > np.zeros(5))

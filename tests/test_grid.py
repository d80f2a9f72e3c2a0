"""`grid/NAME`: rules by hand, options, and optima against play."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.envs.toy_text.taxi import TaxiEnv

from idrl.config import resolve
from idrl.envs import families, make_env
from idrl.envs.families.grid import view
from idrl.envs.families.grid.tasks import TASKS
from idrl.errors import IdrlError
from idrl.schema import to_dict

KEY = jax.random.key(0)
NORTH, EAST, SOUTH, WEST = range(4)


def walk(env, actions):
    """Cells, rewards, ends and truncations of a walk from the start."""
    task, step_of = env.task(KEY), jax.jit(env.step)
    state, obs = env.reset(task, KEY)
    cells, steps = [cell(obs)], []
    for t, action in enumerate(actions):
        state, step = step_of(task, state, action, jax.random.fold_in(KEY, t))
        cells.append(cell(step.obs))
        steps.append((float(step.reward), bool(step.terminated), bool(step.truncated)))
    return cells, *map(list, zip(*steps, strict=True))


def cell(obs):
    assert obs.sum() == 1
    return tuple(int(x) for x in np.argwhere(np.asarray(obs))[0])


def test_walls_traps_and_the_goal():
    env = make_env("grid/traps")
    cells, rewards, ended, cut = walk(env, [NORTH, SOUTH, SOUTH, EAST, EAST, WEST])
    assert cells == [(0, 0), (0, 0), (1, 0), (2, 0), (2, 1), (0, 0), (0, 0)], "a trap leads back"
    assert rewards == [-1, -1, -1, -1, -100, -1]
    assert not any(ended)
    assert not any(cut)
    cells, _, ended, _ = walk(make_env("grid/rooms"), [EAST] * 5)
    assert cells[-1] == (0, 4), "a wall"
    assert not any(ended)


def test_a_fall_from_the_cliff_leads_back():
    env = make_env("grid/cliff")
    cells, rewards, ended, _ = walk(env, [EAST, NORTH, *[EAST] * 11, SOUTH])
    assert cells[1] == (3, 0)
    assert rewards == [-100, *[-1] * 13]
    assert cells[-1] == (3, 11)
    assert ended == [False] * 13 + [True]


def test_keys_open_their_doors():
    env = make_env("grid/keys")
    to_key, to_door = [SOUTH] * 8, [NORTH] * 4 + [EAST] * 4
    task, step_of = env.task(KEY), jax.jit(env.step)

    def column_after(actions):
        state, _ = env.reset(task, KEY)
        for action in actions:
            state, step = step_of(task, state, action, KEY)
        return int(step.obs[9:22].argmax())

    assert column_after([SOUTH] * 4 + [EAST] * 4) == 3, "locked"
    assert column_after(to_key + to_door) == 4


@pytest.mark.parametrize("limit", [3, 0])
def test_the_limit_truncates(limit):
    *_, ended, cut = walk(make_env(f"grid/traps?limit={limit}"), [NORTH] * 5)
    assert not any(ended)
    assert cut[:3] == [False, False, limit == 3]


def test_an_end_in_the_last_step_is_no_truncation():
    *_, ended, cut = walk(make_env("grid/cliff?limit=13"), [NORTH, *[EAST] * 11, SOUTH])
    assert (ended[-1], cut[-1]) == (True, False)


def test_the_scale_is_a_number_of_the_task():
    one, many = make_env("grid/traps"), make_env("grid/traps?scale=1024")
    assert walk(many, [EAST] * 3)[1] == [1024 * x for x in walk(one, [EAST] * 3)[1]]
    assert many.optimal_return() == 1024 * one.optimal_return()
    q, variance = make_env("grid/lake?scale=4").exact(0.9)
    plain = make_env("grid/lake").exact(0.9)
    np.testing.assert_allclose((q, variance), (4 * plain[0], 16 * plain[1]))
    state, _ = one.reset(one.task(KEY), KEY)

    def program(env):
        return str(jax.make_jaxpr(env.step)(env.task(KEY), state, jnp.int32(0), KEY))

    assert program(one) == program(many)


@pytest.mark.parametrize(
    ("name", "best"),
    [("traps", -13), ("cliff", -13), ("rooms", 1), ("taxi", 7.93), ("keys", 1), ("harvest", 8.9)],
)
def test_optima_that_can_be_counted(name, best):
    """Taxi's is the mean that is known of Gymnasium's."""
    assert make_env(f"grid/{name}").optimal_return() == pytest.approx(best)


@pytest.mark.parametrize("name", ["lake", "river", "harvest"])
def test_exact_values_are_those_of_play(name):
    """Mean and variance of the discounted return under the greedy policy of Q*, by simulation."""
    env, gamma, count = make_env(f"grid/{name}?limit=0"), 0.9, 4_000
    q, variance = env.exact(gamma)
    task, best = env.task(KEY), jnp.asarray(q.argmax(1))

    def episode(key):
        def one(carry, key):
            state, going, discount = carry
            state, step = env.step(task, state, best[state.where], key)
            paid = going * discount * step.reward
            return (state, going & ~step.terminated, gamma * discount), paid

        carry = env.reset(task, key)[0], jnp.bool_(True), jnp.float32(1)
        return jax.lax.scan(one, carry, jax.random.split(key, 150))[1].sum()

    returns = np.asarray(jax.jit(jax.vmap(episode))(jax.random.split(KEY, count)), float)
    start = env.table.starts[0], q[env.table.starts[0]].argmax()
    assert returns.mean() == pytest.approx(q[start], abs=5 * returns.std() / count**0.5 + 1e-4)
    # The fourth moment says how far a variance of so many may be off.
    spread = ((returns - returns.mean()) ** 2).std() / count**0.5
    assert returns.var() == pytest.approx(variance[start], abs=5 * spread + 1e-4)


def test_taxi_is_gymnasiums():
    theirs = TaxiEnv()
    env = make_env("grid/taxi")
    parts = [np.split(row, [5, 10, 15]) for row in env.table.obs]
    number = [theirs.encode(*(int(part.argmax()) for part in each)) for each in parts]
    for s, mine in enumerate(number):
        if env.table.ends[s].all():
            continue  # never acted in
        for action in range(6):
            [(_, there, reward, ended)] = theirs.P[mine][action]
            here = s, action, 0
            found = number[env.table.state[here]], env.table.reward[here], env.table.ends[here]
            assert found == (there, reward, ended), (mine, action)
    assert len(env.table.starts) == (theirs.initial_state_distrib > 0).sum()


@pytest.mark.parametrize("name", TASKS)
def test_nothing_is_tuned(name):
    """But for lengths of runs the settings are those of any task that shows as much."""
    env = make_env(f"grid/{name}")
    assert 30 <= len(env.table.obs) <= 1_000
    assert f"grid/{name}" in families()
    tuned, plain = (
        to_dict(resolve("dqn-ids", called, obs_shape=env.obs_shape))
        for called in (f"grid/{name}", "nobody-knows-it")
    )
    assert tuned["training"].pop("steps") == TASKS[name].steps
    del plain["training"]["steps"]
    for table in (tuned, plain):
        del table["env"], table["evaluation"]
    assert tuned == plain


def test_a_view_shows_the_way():
    frames = np.zeros((2, 3, 4), np.uint8)
    frames[0, 0, 0] = frames[1, 0, 1] = 1
    seen = view(frames).frames
    assert seen[1, 0, 0] != 0 != seen[1, 0, 1]
    assert seen[1, 0, 0] != seen[1, 0, 1]
    assert view(np.zeros((2, 20))) is None, "parts of a state are numbers"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("grid/trap", "unknown task of grid 'trap'; did you mean 'traps'"),
        ("grid/traps?limit=-1", "limit=-1: a number of steps, or 0 for none"),
        ("grid/traps?scale=0", "scale=0.0: a positive number"),
        ("grid/traps?scale=nan", "scale=nan: a positive number"),
        ("grid/traps?scale=1e-60", "scale=1e-60: a positive number"),
    ],
)
def test_wrong_names_are_one_sentence(name, says):
    with pytest.raises(IdrlError, match=says):
        make_env(name)

"""DeepSea against a plain reference of bsuite's rules, its chances, and its scorer."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idrl.envs.families.deep_sea import GAMBLE, LEFT, RIGHT, DeepSea, DeepSeaState
from idrl.errors import IdrlError
from idrl.report.statistics import solved_episode

COST = 0.01

# Compiling takes most of the time here: let XLA try less hard.
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


class Reference:
    """bsuite's deterministic rules, as plainly as they can be put."""

    def __init__(self, mapping):
        self.mapping, self.size = mapping, len(mapping)
        self.row = self.column = 0
        self.bad = False

    def observation(self):
        grid = np.zeros((self.size, self.size))
        if self.row < self.size:
            grid[self.row, self.column] = 1
        return grid

    def step(self, action):
        right = action == self.mapping[self.row][self.column]
        reward = 0.0
        if right:
            reward -= COST / self.size
            if self.column == self.size - 1:
                reward += 1
            self.column = min(self.column + 1, self.size - 1)
        else:
            self.bad |= self.row == self.column
            self.column = max(self.column - 1, 0)
        self.row += 1
        return self.observation(), reward, self.row == self.size


@functools.cache
def player(size, slip=0.0, stochastic=False):
    """Many episodes at once: actions `[M, N]` by choice (1 is right) or by number."""
    env = DeepSea(size, slip=slip, stochastic=stochastic)

    def episode(task, actions, key, by_choice):
        state, first = env.reset(task, key)

        def one(state, given):
            action, key = given
            right = task[state.row, state.column]
            action = jnp.where(by_choice, jnp.where(action == 1, right, 1 - right), action)
            state, step = env.step(task, state, action, key)
            return state, (step, state)

        _, (steps, states) = jax.lax.scan(one, state, (actions, jax.random.split(key, size)))
        return first, steps, states

    return env, jit(jax.vmap(episode, (None, 0, 0, None)))


def keys(n, seed=0):
    return jax.random.split(jax.random.key(seed), n)


# -- the deterministic form --------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 5])
def test_every_action_sequence_follows_the_reference(size):
    env, play = player(size)
    sequences = np.array(list(itertools.product([0, 1], repeat=size)))
    task = env.task(jax.random.key(size))
    mapping = np.asarray(task)
    assert 0 < mapping.sum() < size * size  # both actions go right somewhere
    first, steps, _ = play(task, jnp.asarray(sequences), keys(len(sequences)), False)
    steps = jax.tree.map(np.asarray, steps)
    for i, actions in enumerate(sequences):
        reference = Reference(mapping)
        np.testing.assert_array_equal(first[i], reference.observation())
        for t, action in enumerate(actions):
            obs, reward, ended = reference.step(action)
            np.testing.assert_array_equal(steps.obs[i, t], obs)
            np.testing.assert_allclose(steps.reward[i, t], reward, atol=1e-6)
            assert steps.terminated[i, t] == ended
            assert not steps.truncated[i, t]
            assert steps.info["bad"][i, t] == reference.bad


def test_only_all_rights_reach_the_reward():
    size = 5
    env, play = player(size)
    sequences = jnp.asarray(list(itertools.product([0, 1], repeat=size)))
    _, steps, _ = play(env.task(jax.random.key(0)), sequences, keys(32), True)
    returns, bad = np.asarray(steps.reward.sum(1)), np.asarray(steps.info["bad"][:, -1])
    np.testing.assert_allclose(returns[-1], 1 - COST, rtol=1e-5)  # 11111
    assert (returns[:-1] <= 0).all()
    np.testing.assert_array_equal(bad, [1] * 31 + [0])
    # Right costs 0.01/N wherever it is taken.
    np.testing.assert_allclose(
        returns[:-1], -COST / size * np.asarray(sequences.sum(1))[:-1], atol=1e-6
    )


def test_the_mapping_is_drawn_per_cell_and_by_task():
    env = DeepSea(50)
    one, two = np.asarray(env.task(jax.random.key(0))), np.asarray(env.task(jax.random.key(1)))
    assert one.shape == (50, 50)
    assert set(np.unique(one)) == {0, 1}
    # 2,500 fair coins: a mean within 4 standard errors, and half of them equal by chance.
    assert abs(one.mean() - 0.5) < 4 * 0.5 / 50
    assert abs((one == two).mean() - 0.5) < 4 * 0.5 / 50


def test_reset_is_the_top_left_cell():
    env = DeepSea(3)
    state, obs = env.reset(env.task(jax.random.key(0)), jax.random.key(1))
    assert (state.row, state.column, state.bad) == (0, 0, False)
    np.testing.assert_array_equal(obs, [[1, 0, 0], [0, 0, 0], [0, 0, 0]])
    assert obs.dtype == jnp.uint8
    assert obs.shape == env.obs_shape


@pytest.mark.parametrize("wrong", [{"size": 1}, {"size": 201}, {"slip": -0.1}, {"slip": 0.5}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(IdrlError, match="deep_sea"):
        DeepSea(**wrong)


# -- chances -----------------------------------------------------------------------------------

DRAWS = 20_000


@functools.cache
def stepper(size, slip=0.0, stochastic=False):
    env = DeepSea(size, slip=slip, stochastic=stochastic)
    task = jnp.ones((size, size), jnp.int32)  # 1 is right everywhere

    def many(row, column, action, keys):
        state = DeepSeaState(row, column, jnp.bool_(False))
        return jax.vmap(lambda key: env.step(task, state, action, key))(keys)

    return jit(many)


def step_often(row, column, action, size=4, **form):
    """The columns and rewards that DRAWS tries of one action led to, and whether they are bad."""
    call = stepper(size, **form)
    state, step = call(jnp.int32(row), jnp.int32(column), jnp.int32(action), keys(DRAWS))
    np.testing.assert_array_equal(state.row, row + 1)
    return np.asarray(state.column), np.asarray(step.reward), np.asarray(step.info["bad"])


def near(frequency, probability):
    return abs(frequency - probability) < 4 * np.sqrt(probability * (1 - probability) / DRAWS)


def test_wind_stops_a_right_with_probability_one_over_n():
    column, reward, bad = step_often(1, 1, 1, stochastic=True)
    assert set(column) == {1, 2}  # stopped, it stays where it is
    assert near((column == 1).mean(), 1 / 4)
    np.testing.assert_allclose(reward, -COST / 4, rtol=1e-5)  # and is paid for all the same
    assert not bad.any()  # what the wind does is nobody's fault


def test_wind_does_not_stop_a_left():
    column, reward, bad = step_often(1, 1, 0, stochastic=True)
    assert set(column) == {0}
    assert (reward == 0).all()
    assert bad.all()


@pytest.mark.parametrize("action", [0, 1])
@pytest.mark.parametrize("column", [0, 3])
def test_the_corners_of_the_last_row_pay_normal_noise(column, action):
    after, reward, _ = step_often(3, column, action, stochastic=True)
    sure = action * ((column == 3) - COST / 4)  # 1 in the last column, less the cost of a right
    noise = reward - sure
    assert abs(noise.mean()) < 4 / np.sqrt(DRAWS)
    assert abs(noise.var() - 1) < 4 * np.sqrt(2 / DRAWS)
    assert abs((noise**3).mean()) < 4 * np.sqrt(15 / DRAWS)  # no skew: E x⁶ = 15
    # Noise and wind are drawn apart.
    if action == 1 and column == 0:
        assert abs(np.corrcoef(noise, after)[0, 1]) < 4 / np.sqrt(DRAWS)


@pytest.mark.parametrize(("row", "column"), [(3, 1), (3, 2), (2, 0), (0, 0)])
def test_no_other_cell_pays_noise(row, column):
    _, reward, _ = step_often(row, column, 0, stochastic=True)
    assert (reward == 0).all()


def test_slip_flips_the_executed_action():
    slip = 0.2
    column, reward, bad = step_often(1, 1, 1, slip=slip)
    assert set(column) == {0, 2}
    assert near((column == 0).mean(), slip)
    # What is paid follows the action as executed,
    np.testing.assert_allclose(reward, np.where(column == 2, -COST / 4, 0), atol=1e-7)
    # what is bad the action as chosen.
    assert not bad.any()
    column, reward, bad = step_often(1, 1, 0, slip=slip)
    assert near((column == 2).mean(), slip)
    np.testing.assert_allclose(reward, np.where(column == 2, -COST / 4, 0), atol=1e-7)
    assert bad.all()


def test_a_slip_into_a_right_in_the_last_column_pays():
    _, reward, _ = step_often(3, 3, 0, slip=0.2)
    assert near((reward > 0.5).mean(), 0.2)


def test_a_left_off_the_diagonal_is_not_bad():
    # There the best path is lost already.
    _, _, bad = step_often(2, 1, 0, slip=0.2)
    assert not bad.any()


# -- the best return ---------------------------------------------------------------------------


def policy_value(size, policy, slip, wind, row=0, column=0):
    """Expected return of `policy[row][column]` (True is right), by following every chance."""
    if row == size:
        return 0.0
    p_right = 1 - slip if policy[row][column] else slip
    right_reward = (column == size - 1) - COST / size
    on = policy_value(size, policy, slip, wind, row + 1, min(column + 1, size - 1))
    stay = policy_value(size, policy, slip, wind, row + 1, column) if wind else 0.0
    left = policy_value(size, policy, slip, wind, row + 1, max(column - 1, 0))
    return p_right * (right_reward + (1 - wind) * on + wind * stay) + (1 - p_right) * left


def best_value(size, slip=0.0, wind=0.0):
    """The best of all policies: a choice for every cell that can be reached."""
    cells = [(r, c) for r in range(size) for c in range(r + 1)]
    best = -np.inf
    for choices in itertools.product([False, True], repeat=len(cells)):
        policy = [[False] * size for _ in range(size)]
        for (r, c), choice in zip(cells, choices, strict=True):
            policy[r][c] = choice
        best = max(best, policy_value(size, policy, slip, wind))
    return best


@pytest.mark.parametrize("slip", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("size", [2, 3])
def test_optimal_return_by_trying_every_policy(size, slip):
    optimal = DeepSea(size, slip=slip).optimal_return()
    np.testing.assert_allclose(optimal, best_value(size, slip), atol=1e-12)


def test_optimal_return_without_chance_is_099():
    for size in (2, 10, 50):
        np.testing.assert_allclose(DeepSea(size).optimal_return(), 0.99)


def test_optimal_return_with_wind_is_bsuites_formula():
    # That of going right for ever: (1−1/N)^(N−1) of reaching the last column in time, less 0.01.
    # The very best policy spares the cost once the wind has stopped it, which bsuite leaves out.
    for size in (2, 3):
        always_right = [[True] * size for _ in range(size)]
        value = policy_value(size, always_right, slip=0.0, wind=1 / size)
        np.testing.assert_allclose(DeepSea(size, stochastic=True).optimal_return(), value)
        assert value <= best_value(size, wind=1 / size) < value + COST


def test_optimal_return_with_wind_and_slip_can_be_reached():
    size, slip = 3, 0.3
    claimed = DeepSea(size, slip=slip, stochastic=True).optimal_return()
    assert claimed <= best_value(size, slip, wind=1 / size) + 1e-9


@pytest.mark.parametrize("form", [{"slip": 0.1}, {"stochastic": True}])
def test_going_right_earns_the_optimal_return_on_average(form):
    # By playing: so the rules of `step` and the sums of `optimal_return` agree.
    n, size = 20_000, 5
    env, play = player(size, **form)
    task = env.task(jax.random.key(0))
    _, steps, _ = play(task, jnp.ones((n, size), jnp.int32), keys(n), True)
    returns = np.asarray(steps.reward.sum(1))
    error = 4 * returns.std() / np.sqrt(n)
    # Going left once all is lost would save at most the cost of moving.
    assert env.optimal_return() - COST - error < returns.mean() < env.optimal_return() + error


# -- the scorer --------------------------------------------------------------------------------


def test_solved_episode_by_hand():
    assert solved_episode([]) is None
    assert solved_episode([1, 1, 1]) is None
    assert solved_episode([0]) == 1  # 0 of 1 is under 90%
    assert solved_episode([1, 0]) == 2  # 1 of 2 is 50%
    # 9 bad ones, then a good one: 9 of 10 is not under 90%; the next good one makes it 9 of 11.
    assert solved_episode([1] * 9 + [0]) is None
    assert solved_episode([1] * 9 + [0, 1]) is None  # 10 of 11 is 90.9%
    assert solved_episode([1] * 9 + [0, 0]) == 11
    # Once solved is solved, whatever follows.
    assert solved_episode([1, 0] + [1] * 50) == 2


def test_solved_episode_is_exact_at_ninety_percent():
    # Exactly 90% is never under it, also where 0.9 times the number of episodes rounds.
    for tens in range(1, 400):
        assert solved_episode([1] * (9 * tens) + [0] * tens) is None
        assert solved_episode([1] * (9 * tens) + [0] * (tens + 1)) == 10 * tens + 1


def test_solved_episode_takes_another_share():
    assert solved_episode([1, 1, 0, 0, 0], share=0.5) == 5  # 2 of 4 is not under half


# -- the gamble -----------------------------------------------------------------------------------


def test_a_gamble_moves_as_left_does_and_pays_noise():
    """Along the last column but for a gamble: what each action brings, by its meaning."""
    env = DeepSea(3, gamble=2.0)
    task = env.task(jax.random.key(3))
    step = jit(env.step)

    def play(meanings):
        state, _ = env.reset(task, jax.random.key(0))
        seen = []
        for t, meaning in enumerate(meanings):
            action = jnp.argmax(task[state.row, state.column] == meaning)
            state, happened = step(task, state, action, jax.random.fold_in(jax.random.key(1), t))
            seen.append((int(state.column), happened))
        return seen

    columns, steps = zip(*play([RIGHT, GAMBLE, RIGHT]), strict=True)
    assert columns == (1, 0, 1)
    assert [float(s.reward) for s in steps][::2] == pytest.approx([-COST / 3] * 2)
    assert float(steps[1].reward) != 0
    last = steps[-1]
    assert bool(last.terminated)
    assert float(last.info["gambles"]) == pytest.approx(1 / 3)
    assert float(last.info["raw_return"]) == pytest.approx(-2 * COST / 3), "without the noise"
    assert float(last.info["bad"]) == 1, "a gamble leaves the diagonal"
    best = play([RIGHT] * 3)[-1][1].info
    assert (float(best["gambles"]), float(best["bad"])) == (0, 0)
    assert float(best["raw_return"]) == pytest.approx(0.99)


def test_meanings_are_permutations_and_two_actions_stay_as_they_were():
    env = DeepSea(20, gamble=1.0)
    task = env.task(jax.random.key(0))
    assert (np.sort(env.meanings(task), axis=-1) == np.arange(3)).all()
    assert len(np.unique(env.meanings(task).reshape(-1, 3), axis=0)) == 6, "all orders occur"
    plain = DeepSea(20)
    which = plain.task(jax.random.key(0))
    assert plain.num_actions == 2
    assert (np.argmax(plain.meanings(which) == RIGHT, -1) == np.asarray(which)).all()
    state, _ = plain.reset(which, jax.random.key(0))
    assert len(jax.tree.leaves(state)) == 3, "older checkpoints fit"


def test_exact_values_by_hand():
    """Two rows; a right costs 0.005 and in the corner pays 1."""
    q, variance = DeepSea(2, gamble=3.0).exact(0.9)
    up = 0.995
    np.testing.assert_allclose(q[1, 1], [0, up, 0])
    np.testing.assert_allclose(q[0, 0], [0, -0.005 + 0.9 * up, 0])
    np.testing.assert_allclose(variance[0, 0], [0, 0, 9], atol=1e-12)
    # Slipping in the corner is a matter of luck: 0.995 or 0, one in four times the other.
    q, variance = DeepSea(2, slip=0.25, gamble=3.0).exact(1.0)
    corner = 0.25 * 0.75 * up**2
    np.testing.assert_allclose(q[1, 1], [0.25 * up, 0.75 * up, 0.25 * up])
    np.testing.assert_allclose(variance[1, 1], [corner, corner, corner + 9])
    # In the other corner a left is best, which slips to a cost of 0.005 one in four times.
    np.testing.assert_allclose(q[1, 0, LEFT], -0.25 * 0.005)
    right = -0.005 + 0.75 * up  # by luck or by choice
    assert q[0, 0, RIGHT] == pytest.approx(0.75 * right + 0.25 * q[1, 0, LEFT])


@pytest.mark.parametrize("options", [{"slip": 0.1}, {"slip": 0.1, "stochastic": True}])
def test_exact_values_are_those_of_play(options):
    """Mean and variance of returns of the best policy after a gamble at the start."""
    env, gamma, count = DeepSea(4, gamble=0.5, **options), 0.9, 20_000
    q, variance = env.exact(gamma)
    task, best = env.task(jax.random.key(2)), jnp.asarray(q.argmax(-1))
    number = jnp.argsort(task, axis=-1)  # of each meaning

    def episode(key):
        def one(state, given):
            t, key = given
            here = state.row, state.column
            meaning = jnp.where(t == 0, GAMBLE, best[here])
            state, step = env.step(task, state, number[here][meaning], key)
            return state, gamma**t * step.reward

        start, _ = env.reset(task, key)
        steps = jnp.arange(env.size), jax.random.split(key, env.size)
        return jax.lax.scan(one, start, steps)[1].sum()

    keys = jax.random.split(jax.random.key(5), count)
    returns = np.asarray(jit(jax.vmap(episode))(keys), float)
    off = ((returns - returns.mean()) ** 2).std() / count**0.5
    assert returns.mean() == pytest.approx(q[0, 0, GAMBLE], abs=5 * returns.std() / count**0.5)
    assert returns.var() == pytest.approx(variance[0, 0, GAMBLE], abs=5 * off)


def test_a_gamble_pays_nothing_on_average():
    assert DeepSea(6, slip=0.1, gamble=1.0).optimal_return() == DeepSea(6, 0.1).optimal_return()
    with pytest.raises(IdrlError, match="gamble=-1.0: a standard deviation, at least 0"):
        DeepSea(6, gamble=-1.0)

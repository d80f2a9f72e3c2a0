"""MinAtar's games beside the reference package, where that is installed (it is GPL and not a
dependency): the same actions, and whatever is drawn at random is drawn once, for both."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idrl.envs import make_env
from idrl.envs.families.minatar import OURS
from idrl.envs.families.minatar.boards import WORDS, below

KEY = jax.random.key(0)


def reference_of(game):
    return pytest.importorskip("minatar").Environment(game, sticky_action_prob=0.0)


# -- gymnax's games -------------------------------------------------------------------------------


def rollouts(game, episodes=20, limit=300):
    """Random play in both, with the same actions, from the same start, until one ends."""
    reference = reference_of(game)
    env = make_env(f"minatar/{game}?sticky=0")
    task = env.task(KEY)
    step, reset = jax.jit(env.step), jax.jit(env.reset)
    actions = reference.env.minimal_action_set()
    assert len(actions) == env.num_actions
    rng = np.random.default_rng(0)
    for episode in range(episodes):
        state, obs = reset(task, jax.random.key(episode))
        reference.reset()
        same_start(game, state.game, reference.env)
        np.testing.assert_array_equal(obs, reference.state())
        for t in range(limit):
            action = int(rng.integers(env.num_actions))
            state, seen = step(task, state, action, jax.random.key(t))
            reward, terminal = reference.act(actions[action])
            yield state.game, reference, seen, reward, terminal
            if terminal or bool(seen.terminated):
                break


def same_start(game, ours, theirs):
    """Whatever is drawn at random when an episode starts."""
    if game == "breakout":
        theirs.ball_x = theirs.last_x = int(ours.ball_x)
        theirs.ball_dir = int(ours.ball_dir)
    if game == "freeway":
        theirs.cars = np.asarray(ours.cars).tolist()


@pytest.mark.parametrize("game", ["breakout", "space_invaders", "freeway"])
def test_dynamics_are_those_of_the_reference(game):
    steps = ends = 0
    total = 0.0
    for ours, theirs, seen, reward, terminal in rollouts(game):
        if game == "freeway" and reward:  # the cars are drawn anew
            same_start(game, ours, theirs.env)
        assert float(seen.reward) == reward
        assert bool(seen.terminated) == terminal
        np.testing.assert_array_equal(seen.obs, theirs.state())
        steps, ends, total = steps + 1, ends + terminal, total + reward
    assert steps > 100
    if game != "freeway":
        assert ends > 0
        assert total > 0


# -- ours -----------------------------------------------------------------------------------------


class Drawn:
    """The reference's source of random numbers, which says what ours drew in the same frame."""

    def __init__(self):
        self.chances, self.numbers = [], []

    def rand(self):
        return self.chances.pop(0)

    def randint(self, high=None, **between):
        return self.numbers.pop(0)(between.get("high", high))


def tell(drawn, game, theirs, bits):
    """What to answer in a frame with these `bits`, by what is due in it."""
    first, second = (int(word) for word in bits)
    third = 0.0 if second < int(below(1 / 3)) else 0.9
    if game == "asterix":
        drawn.chances = [half(first), third]
        drawn.numbers = [lambda high: ((first >> 4) * high) >> 28]
        return
    drawn.chances, drawn.numbers = [], []
    if theirs.e_spawn_timer == 0:
        drawn.chances += [half(first), third]
        drawn.numbers.append(lambda high: 1 + ((first >> 1) & 7))
    if theirs.d_spawn_timer == 0:
        drawn.chances.append(half(first >> 4))
        drawn.numbers.append(lambda high: 1 + ((first >> 5) & 7))


def half(bits):
    return 0.0 if bits & 1 else 0.9


def begin(game, episode):
    """Ours and what the reference has to be set to: seaquest has levels that random play does not
    get to, and numbers of divers that it hardly collects."""
    state = OURS[game]().start()
    if game != "seaquest":
        return state, {}
    level, aboard = (3 * episode) % 20, (5 * episode) % 7
    state = state._replace(level=jnp.int32(level), aboard=jnp.int32(aboard))
    return state, {
        "ramp_index": level, "e_spawn_speed": 20 - level, "move_speed": max(2, 5 - level // 2),
        "diver_count": aboard,
    }  # fmt: skip


def record(game, states, frames, seed=0):
    """Random play of ours that goes on where a game ends, so that it gets to the last levels."""
    rules = OURS[game]()

    def play(start, key):
        def frame(carry, t):
            state, action = carry
            again_key, action_key, bits_key = jax.random.split(jax.random.fold_in(key, t), 3)
            drawn = jax.random.randint(action_key, (), 0, rules.num_actions)
            action = jnp.where(jax.random.bernoulli(again_key, 0.4), action, drawn)  # gets about
            bits = jax.random.bits(bits_key, (WORDS,))
            state, reward, over = rules.play(state, action, t, bits)
            return (state, action), (action, bits, reward, over, rules.observe(state))

        return jax.lax.scan(frame, (start, jnp.int32(0)), jnp.arange(frames))[1]

    episodes = len(jax.tree.leaves(states)[0])
    keys = jax.random.split(jax.random.key(seed), episodes)
    return jax.device_get(jax.jit(jax.vmap(play))(states, keys))


def compare(game, episodes, frames, seed=0):
    """Plays the same in the reference; how many frames were compared, and what happened in them."""
    reference = reference_of(game)
    theirs, drawn = reference.env, Drawn()
    theirs.random = drawn
    states, settings = zip(*(begin(game, episode) for episode in range(episodes)), strict=True)
    together = jax.tree.map(lambda *each: jnp.stack(each), *states)
    seen = {"frames": 0, "ends": 0, "reward": 0}
    recorded = zip(*record(game, together, frames, seed), strict=True)
    for played, setting in zip(recorded, settings, strict=True):
        theirs.reset()
        vars(theirs).update(setting)
        for t, (action, bits, reward, over, board) in enumerate(zip(*played, strict=True)):
            tell(drawn, game, theirs, bits)
            theirs.terminal = False
            their_reward, their_end = theirs.act(int(action))
            where = f"frame {t} of an episode of {game}, {setting}"
            assert (int(reward), bool(over)) == (their_reward, their_end), where
            np.testing.assert_array_equal(board, theirs.state(), where)
            seen["frames"] += 1
            seen["ends"] += their_end
            seen["reward"] += their_reward
    return seen


@pytest.mark.parametrize("game", OURS)
def test_ours_are_the_reference_board_for_board(game):
    seen = compare(game, episodes=7, frames=1_000)
    assert seen["frames"] == 7_000
    assert seen["ends"] > 10
    assert seen["reward"] > 10

"""Lost lives: an end for who learns, while the game and its score go on."""

import numpy as np
import pytest

from idrl.config import resolve
from idrl.envs.host import HostEnv, Seen, Vector
from idrl.runs.session import make_program

LIFE, EPISODE = 3, 7  # steps: a life is lost after 3, the episode is over after 7
SEEDS, ENVS = 2, 2  # one seed a device
STEPS = 60

SMALL = {
    "seeds": SEEDS,
    "trunk": {"kind": "mlp", "hidden": [2]},
    "heads": {"q": {"hidden": [2]}},
    "learning": {"learning_starts_steps": STEPS * ENVS, "replay_capacity": 400, "rewards": "clip"},
    "training": {"steps": STEPS * ENVS + 4, "envs": ENVS, "distributions_every_steps": 0},
}


class Lives(HostEnv):
    """Every step is worth 2. Every other episode ends by a time limit. With `restarts` a lost life
    is followed by a step that only resets and is worth 5, as the authors' released code has it."""

    name, num_actions, obs_shape, obs_dtype, masked = "lives", 2, (1,), np.float32, False

    def __init__(self, restarts):
        self.restarts = self.timeout_terminates = restarts

    def make(self, count, timeout_s=0.0):
        return Games(count, self.restarts)


class Games(Vector):
    def __init__(self, count, restarts):
        self.restarts = restarts
        self.taken, self.episode = np.zeros((2, count), int)
        self.over, self.lost = np.zeros((2, count), bool)

    def send(self, action, seed):
        self.sent = action, seed

    def recv(self):
        action, seed = self.sent
        acting = action >= 0
        anew = (seed >= 0) | (self.over & acting)
        restart = self.lost & acting & ~anew & self.restarts
        steps = acting & ~anew & ~restart
        self.episode = np.where(seed >= 0, 0, self.episode + anew)
        self.taken = np.where(anew, 0, self.taken + steps)
        self.over = steps & (self.taken == EPISODE)
        self.lost = steps & (self.taken == LIFE)
        limit = self.episode % 2 == 1
        reward = np.where(steps, 2.0, np.where(restart, 5.0, 0.0)).astype(np.float32)
        obs = self.taken[:, None].astype(np.float32)
        return Seen(
            obs, reward, self.over & ~limit, self.over & limit, anew | restart,
            life_lost=self.lost,
        )  # fmt: skip


def expected(restarts):
    """What a row of the replay says, step by step: reward, terminated, valid."""
    rows, limit = [], False
    while len(rows) < STEPS:
        for taken in range(1, EPISODE + 1):
            over = taken == EPISODE and (not limit or restarts)  # `restarts` stores limits as ends
            rows.append((1.0, taken == LIFE or over, True))
            if taken == LIFE and restarts:
                rows.append((1.0, False, False))
        rows.append((0.0, False, False))
        limit = not limit
    return np.array(rows[: STEPS - 1], np.float32)  # the last one waits


@pytest.mark.parametrize("restarts", [False, True], ids=["goes on", "restarts"])
def test_a_lost_life_is_an_end_in_the_replay_and_not_in_the_score(restarts):
    config = resolve("dqn", "lives", changes=[SMALL], obs_shape=(1,))
    program = make_program(config, Lives(restarts))
    state, episodes = program.start(program.seed_keys(0))
    program.close()
    facts = np.asarray(state.replay.facts)[:, : STEPS - 1, :, 1:4]
    rows = expected(restarts)
    for seed, env in np.ndindex(SEEDS, ENVS):
        np.testing.assert_array_equal(facts[seed, :, env], rows)
    ended = np.asarray(episodes.ended)
    assert ended.sum() >= SEEDS * ENVS * (STEPS // (EPISODE + 2))
    assert set(episodes.returns[ended]) == {2.0 * EPISODE + 5.0 * restarts}
    assert set(episodes.lengths[ended]) == {EPISODE}

"""A slow plain Atari environment to compare with, and how to step vectors of two."""

import cv2
import gymnasium
import numpy as np

NO = np.full(2, -1)
# With lives; without; 0 lives and going on; chance at unseeded resets; the largest action set.
REFERENCES = {
    "breakout": "Breakout",
    "pong": "Pong",
    "atlantis": "Atlantis",
    "beam_rider": "BeamRider",
    "wizard_of_wor": "WizardOfWor",
}


def actions(env, steps, seed=0):
    return np.random.default_rng(seed).integers(0, env.num_actions, (steps, 2))


def record(vector, seed, moves):
    """All that is seen, step by step, from a reset with `seed` on."""
    return [vector.step(NO, np.asarray(seed)), *(vector.step(move, NO) for move in moves)]


def check_same(one, other, which=slice(None)):
    for a, b in zip(one, other, strict=True):
        for x, y in zip(a, b, strict=True):
            assert (x is None and y is None) or np.array_equal(x[which], y[which])


class Nature:
    """The protocol of the Nature DQN over single frames of Gymnasium's environment."""

    def __init__(self, ident, seed):
        import ale_py

        gymnasium.register_envs(ale_py)
        self.env = gymnasium.make(
            f"ALE/{ident}-v5", frameskip=1, repeat_action_probability=0.0, obs_type="grayscale"
        ).unwrapped
        self.env.ale.setInt("random_seed", seed)
        self.env.load_game()

    def start(self, noops, then=()):
        self.env.reset()
        return self.go_on([0] * noops + list(then))[0]

    def go_on(self, actions):
        """Single frames, and what is seen after them."""
        total, frame = 0.0, self.env._get_obs()
        for action in actions:
            frame, reward, *_ = self.env.step(action)
            total += reward
        self.lives = self.env.ale.lives()
        return self.small(frame), total

    def step(self, action):
        total, frames = 0.0, []
        for _ in range(4):
            frame, reward, over, _, info = self.env.step(action)
            total += reward
            frames.append(frame)
            if over:
                break
        lost, self.lives = info["lives"] < self.lives, info["lives"]
        return self.small(np.max(frames[-2:], axis=0)), total, over, lost and not over

    def small(self, frame):
        return cv2.resize(frame, (84, 84), interpolation=cv2.INTER_AREA)

"""Stacks of frames out of a replay that keeps every frame once: each pixel says whose it is."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idrl.replay import ring as ring
from idrl.replay.ring import Row, Stack

ENVS, ROWS, GAMMA, DEPTH = 3, 24, 0.9, 4
ZEROS, REPEATED = Stack(DEPTH), Stack(DEPTH, repeat_first=True)


def frame(env, t):
    """2×2 pixels; none is 0, so that a missing frame is seen."""
    return np.full((2, 2), 1 + 1000 * env + t, np.int32)


class World:
    """Episodes of random lengths, as the hosted loop sees them: `Row`s one by one, and what every
    observation should have been."""

    def __init__(self, steps, seed=0):
        rng = np.random.default_rng(seed)
        self.valid = np.ones((steps, ENVS), bool)
        self.terminated = np.zeros((steps, ENVS), bool)
        self.first = np.zeros((steps, ENVS), bool)
        for env in range(ENVS):
            start = 0
            while start < steps:
                self.first[start, env] = True
                last = start + int(rng.integers(1, 9))  # the last observation; none follows on it
                if last < steps:
                    self.valid[last, env] = False
                    self.terminated[last - 1, env] = rng.random() < 0.5  # else a time limit
                start = last + 1
        # lost lives: an end for who learns, in the middle of an episode
        lost = self.valid & np.roll(self.valid, -1, 0) & (rng.random(self.valid.shape) < 0.1)
        self.terminated |= lost
        self.action = rng.integers(0, 5, self.valid.shape)
        self.reward = rng.normal(size=self.valid.shape).astype(np.float32)

    def row(self, t):
        frames = np.stack([frame(env, t) for env in range(ENVS)])
        return Row(
            frames, self.action[t].astype(np.int32), self.reward[t], self.terminated[t],
            self.valid[t],
        )  # fmt: skip

    def observation(self, env, t, stack):
        frames, start = [], t
        while not self.first[start, env]:
            start -= 1
        for back in range(DEPTH - 1, -1, -1):
            at = t - back
            missing = np.zeros((2, 2), np.int32) if not stack.repeat_first else frame(env, start)
            frames.append(frame(env, at) if at >= start else missing)
        return np.stack(frames, -1)


def filled(world, written, n_step=1, prioritised=False, stack=ZEROS):
    before = world.row(0)._replace(valid=np.zeros(ENVS, bool))
    replay = ring.empty(before, ROWS, prioritised)
    add = jax.jit(functools.partial(ring.add, n_step=n_step, stack=stack))
    replay = add(replay, before, -1)  # as the hosted loop does before its first step
    for t in range(written):
        replay = add(replay, world.row(t), t)
    return replay


def check_drawn(world, drawn, written, n_step, stack):
    """Every transition of the batch against the world; what was met, as (env, t)."""
    met = set()
    for i in range(len(drawn.a_tm1)):
        newest = int(drawn.s_tm1[i, 0, 0, -1]) - 1
        env, t = divmod(newest, 1000)
        met.add((env, t))
        assert world.valid[t, env]
        assert t >= written - ROWS + DEPTH - 1
        np.testing.assert_array_equal(drawn.s_tm1[i], world.observation(env, t, stack))
        assert int(drawn.a_tm1[i]) == world.action[t, env]
        reward, discount, end = 0.0, 1.0, t
        for _ in range(n_step):
            if not world.valid[end, env] or discount == 0:
                break
            reward += discount * world.reward[end, env]
            discount *= 0.0 if world.terminated[end, env] else GAMMA
            end += 1
        assert drawn.r_t[i] == pytest.approx(reward, rel=1e-5, abs=1e-6)
        assert drawn.discount_t[i] == pytest.approx(discount)
        if discount > 0:  # behind an end nobody looks
            np.testing.assert_array_equal(drawn.s_t[i], world.observation(env, end, stack))
    return met


@pytest.mark.parametrize("stack", [ZEROS, REPEATED], ids=["zeros", "repeated"])
@pytest.mark.parametrize("n_step", [1, 3])
def test_every_stack_that_is_drawn_is_right(stack, n_step):
    """While the ring fills, when it is full, and over many turns of it."""
    world = World(200)
    sample = jax.jit(
        lambda replay, key, written: ring.sample(
            replay, key, written, 300, GAMMA, n_step, stack=stack
        )
    )
    for written in (6, 20, ROWS, ROWS + 1, 40, 77, 150):
        replay = filled(world, written, n_step, stack=stack)
        drawn = jax.device_get(sample(replay, jax.random.key(written), written))
        met = check_drawn(world, drawn, written, n_step, stack)
        oldest = max(0, written - ROWS + DEPTH - 1)
        usable = {
            (env, t)
            for env in range(ENVS)
            for t in range(oldest, written - n_step)
            if world.valid[t, env]
        }
        assert met <= usable
        assert len(met) > 0.9 * len(usable)  # 300 draws from at most 63


@pytest.mark.parametrize("n_step", [1, 3])
def test_priorities_never_lead_behind_the_write_head(n_step):
    world = World(200, seed=1)
    for written in (30, 61):
        replay = filled(world, written, n_step, prioritised=True)
        drawn = ring.sample(
            replay, jax.random.key(0), jnp.int32(written), 200, GAMMA, n_step, stack=ZEROS
        )
        check_drawn(world, jax.device_get(drawn), written, n_step, ZEROS)


@pytest.mark.parametrize("stack", [ZEROS, REPEATED], ids=["zeros", "repeated"])
def test_what_an_agent_sees_is_what_it_learns_from(stack):
    world = World(60, seed=2)
    seen = jnp.zeros((ENVS, 2, 2, DEPTH), jnp.int32)
    push = jax.jit(stack.push)
    for t in range(60):
        frames = np.stack([frame(env, t) for env in range(ENVS)])
        seen = push(seen, frames, world.first[t])
        for env in range(ENVS):
            np.testing.assert_array_equal(seen[env], world.observation(env, t, stack))
    np.testing.assert_array_equal(stack.newest(seen), frames)

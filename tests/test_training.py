"""The compiled loop: cadence, seeds, resume, evaluation, one compilation, no copies."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idrl.agents.spec import Learning
from idrl.config import resolve
from idrl.envs import make_env
from idrl.envs.base import Step
from idrl.runs.session import make_program
from idrl.training.loop import train
from idrl.training.rollout import advance, begin
from idrl.training.spec import Evaluation, Training, cadence, due

SMALL = {
    "trunk": {"hidden": [16]},
    "heads": {"q": {"hidden": [16], "k": 3}, "z": {"hidden": [16]}},
    "learning": {"learning_starts_steps": 20, "replay_capacity": 600},
    "training": {"steps": 420, "log_every_steps": 100},
    "evaluation": {"every_steps": 100, "steps": 40},
}


@functools.cache
def program(seeds: int, seed: int = 0):
    config = resolve("c51-ids", "deep_sea/4", changes=[SMALL | {"seeds": seeds, "seed": seed}])
    return make_program(config, make_env(config.env))


def leaves_equal(a, b) -> bool:
    same = jax.tree.map(lambda x, y: bool((np.asarray(x) == np.asarray(y)).all()), a, b)
    return all(jax.tree.leaves(same))


# -- cadence ------------------------------------------------------------------------------------


@pytest.mark.parametrize("envs", [1, 3, 4, 8])
@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("target", [4, 30, 1000])
def test_cadence_keeps_the_ratios(envs, every, target):
    learning = Learning(
        update_every_steps=every, target_every_steps=target, learning_starts_steps=64
    )
    c = cadence(Training(steps=5_000, envs=envs), Evaluation(every_steps=600), learning, 100)
    assert c.vector_steps * envs == c.updates * every == c.steps
    assert c.block % c.target_every == 0 or c.target_every % c.block == 0
    assert c.steps_at(c.total) >= 5_000
    assert c.block <= max(100, c.target_every)


def test_evaluations_fall_on_their_counts_where_they_can():
    learning = Learning(update_every_steps=1, target_every_steps=4, learning_starts_steps=100)
    c = cadence(Training(steps=10_000), Evaluation(every_steps=500), learning, 1000)
    boundaries = [c.steps_at(b * c.block) for b in range(1, c.total // c.block + 1)]
    hits = [b for a, b in itertools.pairwise(boundaries) if due(a, b, 500)]
    assert hits == list(range(500, 10_001, 500))
    assert boundaries[-1] == 10_000


def test_due_does_not_drift():
    counts = range(0, 1001, 7)
    times = [b for a, b in itertools.pairwise(counts) if due(a, b, 50)]
    assert len(times) == 19
    assert all(0 <= t - 50 * i < 7 for i, t in enumerate(times, start=1))


# -- episodes -----------------------------------------------------------------------------------


class Counter:
    """Observes its own time; terminates at 3 where the task says so, else truncates at 3."""

    name, num_actions, obs_shape = "counter", 2, (1,)

    def __init__(self, terminates: bool):
        self.terminates = terminates

    def task(self, key):
        return ()

    def reset(self, task, key):
        return jnp.int32(0), jnp.zeros(1)

    def step(self, task, state, action, key):
        state = state + 1
        over = state == 3
        no = jnp.bool_(False)
        ends = (over, no) if self.terminates else (no, over)
        return state, Step(jnp.ones(1) * state, jnp.float32(1), *ends, {"last": state * 1.0})


@pytest.mark.parametrize(
    ("terminates", "observations", "ended"),
    [
        # a terminated episode restarts at once; nobody needs its last observation
        (True, [0, 1, 2, 0, 1, 2, 0, 1], [0, 0, 1, 0, 0, 1, 0, 0]),
        # a truncated one shows its last observation, 3, for a step that is no transition
        (False, [0, 1, 2, 3, 0, 1, 2, 3], [0, 0, 1, 0, 0, 0, 1, 0]),
    ],
)
def test_ends_of_episodes(terminates, observations, ended):
    env = Counter(terminates)
    worlds = begin(env, (), jax.random.key(0), jnp.zeros(1, jnp.int32))
    seen = []
    for t in range(8):
        alive = not bool(worlds.dead[0])
        obs, first = float(worlds.obs[0, 0]), bool(worlds.first[0])
        worlds, happened = advance(
            env, (), worlds, jnp.zeros(1, int), worlds.memory, jax.random.key(t)
        )
        seen.append((obs, alive, first, happened))
    assert [s[0] for s in seen] == observations
    assert [bool(s[3].ended[0]) for s in seen] == [bool(e) for e in ended]
    assert [s[1] for s in seen] == [o != 3 for o in observations]
    assert [s[2] for s in seen] == [o == 0 for o in observations]
    for _, alive, _, happened in seen:
        assert float(happened.reward[0]) == float(alive)
        if happened.ended[0]:
            assert float(happened.episode_return[0]) == 3 == int(happened.episode_length[0])
            assert bool(happened.terminated[0]) == terminates


# -- seeds --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_seed_is_the_same_alone_and_among_others():
    many, alone = program(4), program(1, seed=2)
    together, _ = many.start(many.seed_keys(0))
    single, _ = alone.start(alone.seed_keys(2))
    pick = jax.tree.map(lambda x: x[2:3], together)
    # initial weights, environment, first transitions and keys: to the bit
    assert leaves_equal(pick.agent.params, single.agent.params)
    assert leaves_equal(pick.replay, single.replay)
    assert leaves_equal(pick.worlds, single.worlds)
    assert leaves_equal((pick.task, pick.key), (single.task, single.key))
    # first updates: same indices, sums may round differently
    learn = {p: jax.jit(jax.vmap(p._learn, (0, None, None))) for p in (many, alone)}
    for u in range(5):
        together, _ = learn[many](together, jnp.int32(20), u)
        single, _ = learn[alone](single, jnp.int32(20), u)
    for a, b in zip(
        jax.tree.leaves(together.agent.params), jax.tree.leaves(single.agent.params), strict=True
    ):
        np.testing.assert_allclose(a[2:3], b, atol=1e-5)


def test_seeds_differ_in_everything():
    p = program(4)
    state, _ = p.start(p.seed_keys(0))

    def distinct(tree):
        return any(
            len({np.asarray(x[i]).tobytes() for i in range(4)}) == 4 for x in jax.tree.leaves(tree)
        )

    assert distinct(state.agent.params)
    assert distinct(state.agent.prior)
    assert distinct(state.task)
    assert distinct(state.replay.facts)
    assert distinct(state.key)


# -- the loop -----------------------------------------------------------------------------------


def collect(p, state=None, iteration=0, until=None):
    """Progress of a whole run, or up to an iteration, with copies of the states."""
    out = []
    for progress in train(p, state, iteration, p.seed_keys(0)):
        out.append(progress._replace(state=jax.device_get(progress.state)))
        if until is not None and progress.iteration >= until:
            break
    return out


def test_stopping_and_going_on_changes_no_bit():
    p = program(4)
    whole = collect(p)
    middle = whole[len(whole) // 2]
    rest = collect(p, p.place(middle.state), middle.iteration)
    assert leaves_equal(whole[-1].state, rest[-1].state)
    scores = [w.score.return_mean for w in whole[-len(rest) :] if w.score is not None]
    again = [r.score.return_mean for r in rest if r.score is not None]
    assert len(again) > 1
    np.testing.assert_array_equal(scores, again)


@pytest.mark.slow
def test_one_compilation_serves_every_block_and_is_made_ahead():
    p, compiled = program.__wrapped__(4), []

    def listen(event, seconds, fun_name="", **_):
        if event.endswith("/backend_compile_duration"):
            compiled.append(fun_name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    p.ahead(fresh=True)
    coming = [f.coming for f in (p._open, p._run(p.cadence.block), p._play, p._judge, p._describe)]
    for one in coming:
        one.result()
    known = len(compiled)
    collect(p)
    jax.monitoring.unregister_event_duration_listener(listen)
    assert known >= len(coming)
    ours = [name for name in compiled if name.removeprefix("jit(").startswith("_")]
    assert len(ours) == len(set(ours)), ours
    assert {f"jit({name})" for name in ("_start", "_block", "_stretch", "_score")} <= set(ours)
    assert p.cadence.total > 2 * p.cadence.block
    assert [f._cache_size() for f in (p._open, p._run(p.cadence.block), p._enter, p._judge)] == [
        1
    ] * 4
    assert p._run.cache_info().currsize == 1


@pytest.mark.parametrize(
    ("env", "envs", "every", "mask_prob"),
    [
        ("maze/4", 1, 1, 0.5),  # with masks of actions beside those of heads
        *(
            pytest.param("deep_sea/4", *more, 1.0, marks=pytest.mark.slow)
            for more in ((1, 1), (1, 4), (4, 1))
        ),
    ],
)  # fmt: skip
def test_the_replay_is_not_copied(env, envs, every, mask_prob):
    """A block's temporary memory stays far below a replay that dominates everything else."""
    change = _without_z(SMALL) | {
        "heads": {"q": {**SMALL["heads"]["q"], "mask_prob": mask_prob}},
        "training": {"envs": envs},
        "learning": {"replay_capacity": 4_000_000, "update_every_steps": every},
    }
    config = resolve("dqn-ids", env, changes=[change | {"seeds": 2}])
    p = make_program(config, make_env(config.env))
    state = p.like()
    memory = p._run(p.cadence.block).lower(state, jnp.int32(0)).compile().memory_analysis()
    replay = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state.replay)) // 2
    assert memory.alias_size_in_bytes > replay  # donated, per device
    assert memory.temp_size_in_bytes < replay / 20


def test_the_target_is_copied_on_its_count_whether_inside_or_between_blocks():
    for every, expected in ((8, True), (10_000, False)):
        change = SMALL | {"seeds": 1, "learning": SMALL["learning"] | {"target_every_steps": every}}
        config = resolve("dqn-ids", "deep_sea/4", changes=[_without_z(change)])
        p = make_program(config, make_env(config.env))
        last = collect(p)[-1].state.agent
        assert leaves_equal(last.params, last.target) == expected, every


def test_a_long_target_period_is_kept_by_copies_between_blocks():
    change = _without_z(SMALL) | {"seeds": 1}
    change["learning"] = SMALL["learning"] | {"target_every_steps": 200}
    config = resolve("dqn-ids", "deep_sea/4", changes=[change])
    p = make_program(config, make_env(config.env))
    assert p.cadence.block < p.cadence.target_every == 200
    progress = collect(p)
    before, after = (
        [q.state.agent for q in progress if test(q.iteration)]
        for test in (lambda i: 0 < i < 200, lambda i: i == 200)
    )
    first = progress[0].state.agent.params
    assert all(leaves_equal(a.target, first) for a in before)
    assert leaves_equal(after[0].target, after[0].params)


def _without_z(change):
    return {**change, "heads": {"q": change["heads"]["q"]}}


def test_best_weights_are_those_of_the_best_evaluation():
    p = program(4)
    best = np.full(4, -np.inf)
    kept = None
    for progress in collect(p):
        if progress.score is None:
            continue
        better = progress.score.return_mean > best
        np.testing.assert_array_equal(progress.better, better)
        params = progress.state.agent.params
        kept = params if kept is None else jax.tree.map(
            lambda new, old, b=better: np.where(b.reshape(-1, *[1] * (new.ndim - 1)), new, old),
            params, kept,
        )  # fmt: skip
        best = np.maximum(best, progress.score.return_mean)
        np.testing.assert_array_equal(progress.state.best.score, best)
        assert leaves_equal(progress.state.best.params, kept)


def test_acting_is_random_until_learning_starts():
    p = program(4)
    state, _ = p.start(p.seed_keys(0))
    actions = np.asarray(state.replay.facts[:, : p.cadence.warmup_vector_steps, 0, 0])
    assert 0.3 < actions.mean() < 0.7


@pytest.mark.slow
def test_bootstrapped_follows_one_head_an_episode():
    change = _without_z(SMALL) | {"seeds": 2}
    config = resolve("bootstrapped-dqn", "deep_sea/4", changes=[change])
    p = make_program(config, make_env(config.env))
    state, _ = p.start(p.seed_keys(0))
    act = jax.jit(jax.vmap(functools.partial(p._act, config.explore), (0, None, None)))
    heads = []
    for t in range(80):
        state, _ = act(state, p.cadence.warmup_vector_steps + t, t)
        heads.append(np.asarray(state.worlds.memory)[:, 0])
    heads = np.array(heads).reshape(20, 4, 2)  # [episodes, steps, seeds]: 4 steps an episode
    assert (heads == heads[:, :1]).all()
    assert all(len(set(heads[:, 0, s])) == 3 for s in range(2))

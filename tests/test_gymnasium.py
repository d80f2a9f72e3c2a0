"""Gymnasium environments through the hosted loop: observations, ends, masks, resume, errors."""

import functools
import itertools
import time
import warnings

import gymnasium
import jax
import numpy as np
import pytest
from displays import Dies
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import idrl
from idrl.cli.app import main
from idrl.config import resolve
from idrl.envs import make_env
from idrl.envs.adapters.gymnasium_env import GymnasiumEnv
from idrl.envs.adapters.gymnasium_spaces import observe_as_array
from idrl.replay import ring as ring
from idrl.runs.session import make_program
from idrl.storage import checkpoint
from idrl.training.ahead import Early
from idrl.training.doing import nothing
from idrl.training.hosted.examples import random_examples
from idrl.training.loop import train
from idrl.training.program import acting_view, learning_view

SMALL = {
    "trunk": {"hidden": [8]},
    "heads": {"q": {"hidden": [8]}},
    "learning": {"learning_starts_steps": 40, "replay_capacity": 600, "target_every_steps": 50},
    "training": {"steps": 400, "envs": 2, "log_every_steps": 100},
    "evaluation": {"every_steps": 100, "steps": 60, "envs": 3},
}


class Toy(gymnasium.Env):
    """Shows a code of its episode and step; ends after four; action 1 + k is legal at step k."""

    observation_space = spaces.Box(-1e6, 1e6, (2,), np.float64)
    action_space = spaces.Discrete(5, start=1)

    def __init__(self, terminates=True, masked=False, seeded=True):
        self.terminates, self.masked, self.seeded = terminates, masked, seeded

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        chance = self.np_random if self.seeded else np.random.default_rng()
        self.episode, self.t = chance.integers(1000), 0
        return self._seen()

    def step(self, action):
        assert self.t < 4, "stepped after the end"
        assert 1 <= action <= 5
        if self.masked:
            assert action == 1 + self.t, f"illegal action {action} at {self.t}"
        self.t += 1
        obs, info = self._seen()
        over = self.t == 4
        return obs, float(self.t), over and self.terminates, over and not self.terminates, info

    def _seen(self):
        allowed = np.arange(5) == self.t if self.t < 4 else np.zeros(5)
        info = {"action_mask": allowed.astype(np.int8)} if self.masked else {}
        return np.array([self.episode, self.t], float), info


def program(factory, agent="dqn", seeds=2, seed=0, **changes):
    env = GymnasiumEnv(factory) if not isinstance(factory, str) else make_env(factory)
    config = resolve(
        agent, env.name, changes=[SMALL, {"seeds": seeds, "seed": seed}, changes],
        obs_shape=env.obs_shape,
    )  # fmt: skip
    return make_program(config, env)


def same(a, b) -> bool:
    return jax.tree.structure(a) == jax.tree.structure(b) and all(
        np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    )


def collect(p, state=None, iteration=0, seed=0):
    return [
        progress._replace(state=jax.device_get(progress.state))
        for progress in train(p, state, iteration, p.seed_keys(seed))
    ]


# -- observations -------------------------------------------------------------------------------

IMAGE = spaces.Box(0, 255, (8, 6, 3), np.uint8)


@pytest.mark.parametrize(
    ("space", "shape", "dtype"),
    [
        (spaces.Box(-1, 1, (3,), np.float64), (3,), np.float32),
        (spaces.Box(-1, 1, (2, 3), np.float32), (6,), np.float32),
        (IMAGE, (8, 6, 3), np.uint8),
        (spaces.Box(0, 255, (4, 8, 8), np.uint8), (8, 8, 4), np.uint8),  # channels go last
        (spaces.Box(0, 255, (7,), np.uint8), (7,), np.uint8),
        (spaces.Discrete(5, start=2), (5,), np.uint8),
        (spaces.MultiBinary((2, 2)), (4,), np.uint8),
        (spaces.MultiDiscrete([2, 3]), (5,), np.uint8),
        (spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 9, (3,))]), (5,), np.float32),
        (spaces.Dict(image=IMAGE, speed=spaces.Box(-1, 1, (2,))), (146,), np.float32),
    ],
)
def test_observations_become_one_array(space, shape, dtype):
    class Shows(Toy):
        observation_space = space

        def _seen(self):
            return self.raw, {}

        def reset(self, *, seed=None, options=None):
            self.observation_space.seed(seed)
            self.raw = self.observation_space.sample()
            return super().reset(seed=seed)

    env = GymnasiumEnv(Shows)
    assert (env.obs_shape, env.obs_dtype) == (shape, dtype)
    vector = env.make(2)
    seen = vector.step(np.full(2, -1), np.array([3, 4]))
    raw = vector.envs[0].unwrapped.raw
    flat = spaces.flatten(space, raw)
    if len(shape) == 3:
        flat = np.moveaxis(raw, 0, -1) if raw.shape[0] == 4 else raw
    np.testing.assert_array_equal(seen.obs[0], flat.astype(dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on taste: bounds, a missing render mode
        check_env(env.one(), skip_render_check=True)


class Words(spaces.Space):
    """Like MiniGrid's missions: of no shape, and silent about whether it can be flattened."""


@pytest.mark.parametrize(
    ("space", "says"),
    [
        (Words(), r"Toy has Words observations of no fixed size; .* makes an array of\."),
        (spaces.Dict(words=Words(), at=spaces.Discrete(2)), r"FilterObservation\(env, \['at'\]\)"),
        (
            spaces.Tuple([spaces.Discrete(2), spaces.Sequence(spaces.Discrete(2))]),
            r"\(env, \[0\]\)",
        ),
    ],
)
def test_observations_of_no_fixed_size_are_refused(space, says):
    toy = type("Toy", (Toy,), {"observation_space": space})
    with pytest.raises(idrl.IdrlError, match=says):
        observe_as_array(toy(), "Toy")


@pytest.mark.parametrize("name", ["CartPole-v1", "Taxi-v4", "Blackjack-v1"])
def test_the_checker_passes_on_what_is_wrapped(name):
    if name not in gymnasium.registry:
        pytest.skip(f"this Gymnasium has no {name}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(observe_as_array(gymnasium.make(name).unwrapped, name), skip_render_check=True)


# -- steps --------------------------------------------------------------------------------------


@pytest.mark.parametrize("terminates", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_rows_of_the_replay_are_the_episodes(terminates):
    p = program(functools.partial(Toy, terminates))
    last = collect(p)[-1].state
    rows = p.cadence.warmup_vector_steps + p.cadence.total - 1  # one waits
    assert rows < p.replay_rows
    for s, e in itertools.product(range(2), range(2)):
        obs, facts = last.replay.obs[s, :rows, e], last.replay.facts[s, :rows, e]
        action, reward, terminated, valid = facts.T
        # steps 0 to 3 of an episode, then the row with its last observation, which only resets
        assert obs[:, 1].tolist() == [t % 5 for t in range(rows)]
        assert valid.tolist() == [t % 5 < 4 for t in range(rows)]
        assert reward.tolist() == [t % 5 + 1 if t % 5 < 4 else 0 for t in range(rows)]
        assert terminated.tolist() == [terminates and t % 5 == 3 for t in range(rows)]
        assert len(set(obs[::5, 0])) > 3  # episodes differ
        assert (obs[:-1, 0] == obs[1:, 0])[valid[:-1] > 0].all()
        assert set(action.tolist()) == {0, 1, 2, 3, 4}
    one = jax.tree.map(lambda x: x[0], last.replay)
    batch = ring.sample(one, jax.random.key(0), rows, 200, 0.9)
    np.testing.assert_array_equal(batch.s_t[:, 1], batch.s_tm1[:, 1] + 1)
    ends = np.asarray(batch.s_t[:, 1]) == 4
    assert ends.any()
    assert (batch.discount_t[ends] == (0.0 if terminates else np.float32(0.9))).all()
    assert (batch.discount_t[~ends] > 0).all()


def test_episodes_and_scores_are_counted_right():
    p = program(Toy)
    progress = collect(p)
    done = [e for q in progress for e in zip(*q.episodes[:4], strict=True)]
    assert {(r, n) for _, _, r, n in done} == {(10.0, 4)}
    assert sorted({int(steps) for _, steps, _, _ in done})[:3] == [8, 18, 28]
    scores = [q.score for q in progress if q.score is not None]
    assert len(scores) >= 4
    for score in scores:  # 20 steps of 3 environments: four episodes each, and resets between
        assert score.return_mean.tolist() == [10, 10]
        assert score.episodes.tolist() == [12, 12]
    best = p.score_best(p.place(progress[-1].state), 7, 50)
    assert best.episodes.tolist() == [7, 7]
    assert best.length_mean.tolist() == [4, 4]
    cut = p.score_best(p.place(progress[-1].state), 7, 3)  # counts with what it has by then
    assert (cut.episodes.tolist(), cut.length_mean.tolist()) == ([7, 7], [3, 3])
    assert (best.truncated.tolist(), cut.truncated.tolist()) == ([0, 0], [7, 7])
    window = p.evaluator.window_of_best(
        p.place(progress[-1].state), 30
    )  # ten steps of each of three
    assert window.episodes.tolist() == [6, 6]
    assert window.return_mean.tolist() == [10, 10]


@pytest.mark.slow
def test_a_seed_is_the_same_alone_and_among_others():
    many, alone = program("gym/CartPole-v1", seeds=3), program("gym/CartPole-v1", seeds=1, seed=2)
    together, _ = many.start(many.seed_keys(0))
    single, _ = alone.start(alone.seed_keys(2))
    assert same(jax.tree.map(lambda x: x[2:], together.agent), single.agent)
    assert same(jax.tree.map(lambda x: x[2:], together.replay), single.replay)
    np.testing.assert_array_equal(together.worlds.fleet.obs[4:], single.worlds.fleet.obs)
    assert len({x.tobytes() for x in together.worlds.fleet.obs}) == 6


@pytest.mark.slow
def test_updates_see_the_rows_before_and_actions_the_weights_after(monkeypatch):
    """The order of the device's queue, and that no timing changes it."""

    class Slow(Toy):
        def step(self, action):
            time.sleep(0.002 * np.random.default_rng().random())
            return super().step(action)

    a, b = program(Toy), program(Slow)
    queue = []

    def watch(name, number):
        inner = getattr(a, name)

        def call(*args):
            queue.append((name, int(number(args))))
            return inner(*args)

        monkeypatch.setattr(a, name, call)

    watch("_act", lambda args: a.parcel.unpack(args[2])[0])  # the vector step
    update = a._update(1)
    monkeypatch.setattr(a, "_update", lambda count: a._one_update)
    a._one_update = update
    watch("_one_update", lambda args: args[2])  # the rows written
    whole = collect(a)
    t = a.cadence.warmup_vector_steps
    assert queue[:4] == [
        ("_act", t), ("_one_update", t), ("_act", t + 1), ("_one_update", t + 1)
    ]  # fmt: skip
    assert same(whole[-1].state, collect(b)[-1].state)


def test_one_compilation_serves_every_step_and_is_made_ahead(monkeypatch):
    p, compiled = program(Toy), []

    def listen(event, seconds, fun_name="", **_):
        if event.endswith("/backend_compile_duration"):
            compiled.append(fun_name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    p.ahead(fresh=True)
    early = (p._keys, p._begin, p._try, p._act, p._update(1), p._keep, p.evaluator._choose)
    p._ahead._pool.shutdown(wait=True)
    assert len(compiled) >= len(early)
    late, call = {}, Early.__call__

    def watched(self, *args):
        before = len(compiled)
        result = call(self, *args)
        late.setdefault(self, compiled[before:])  # by its first call
        return result

    monkeypatch.setattr(Early, "__call__", watched)
    middle = collect(p)[1]
    jax.monitoring.unregister_event_duration_listener(listen)
    assert [late[one] for one in early] == [[]] * len(early), "compiled twice"
    collect(p, p.place(middle.state), middle.iteration)
    functions = (p._try, p._act, p._update(1), p._keep, p.evaluator._choose)
    assert [f._cache_size() for f in functions] == [1] * len(functions)


def test_examples_need_the_first_environments_alone(monkeypatch):
    p = program(Toy)
    keys = p.seed_keys(3)
    before = random_examples(p, keys, nothing)
    monkeypatch.setattr(type(p.env), "slow_resets", True)
    np.testing.assert_array_equal(before, random_examples(p, keys, nothing))
    assert len(np.unique(before, axis=1)) > 1
    p.close()


@pytest.mark.parametrize(("agent", "masked"), [("dqn", False), ("prioritized", True)])
def test_the_replay_is_not_copied(agent, masked):
    toy = functools.partial(Toy, masked=masked)
    p = program(toy, agent, seeds=1, learning={"replay_capacity": 2_000_000})
    like = p.like()
    state = like._replace(worlds=like.worlds.waiting)
    parcel = p._packed(like.worlds.fleet, 0)
    numbers = [jax.ShapeDtypeStruct((), np.int32)] * 2
    told, metrics = p._zeros(state, like.worlds.fleet)
    replay = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state.replay))
    moving = state.replay, state.worlds
    for f, args in (
        (p._act, (acting_view(state), moving, parcel, told)),
        (p._update(1), (learning_view(state), metrics, *numbers)),
    ):
        memory = f.lower(*args).compile().memory_analysis()
        assert memory.alias_size_in_bytes > replay
        assert memory.temp_size_in_bytes < replay / 20


# -- masks --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_only_allowed_actions_are_taken():
    """The environment raises on any other: at random, exploring (by one head), evaluating (by
    vote). `test_mask_runs.py` has the other rules."""
    toy = functools.partial(Toy, masked=True)
    p = program(toy, "bootstrapped-dqn", seeds=1, heads={"q": {"k": 3}})
    progress = collect(p)
    assert progress[-1].score.return_mean.tolist() == [10]
    p.score_best(p.place(progress[-1].state), 3, 50)


# -- resume -------------------------------------------------------------------------------------


def test_a_killed_run_ends_with_the_same_bits():
    p = program("gym/CartPole-v1")
    whole = collect(p)
    for middle in (whole[0], whole[len(whole) // 2]):
        fresh = program("gym/CartPole-v1")
        rest = collect(fresh, fresh.place(middle.state), middle.iteration)
        assert same(whole[-1].state, rest[-1].state)
        scores = [q.score for q in whole if q.score is not None and q.iteration > middle.iteration]
        assert same(scores, [q.score for q in rest if q.score is not None])


@pytest.mark.slow
def test_resumed_records_equal_uninterrupted_ones(tmp_path):
    settings = SMALL | {"seeds": 2}
    whole = idrl.train("dqn-ids", "gym/CartPole-v1", settings=settings, out=tmp_path / "whole")
    for at in (150, 320):
        path = tmp_path / f"killed-{at}"
        with pytest.raises(MemoryError):
            idrl.train("dqn-ids", "gym/CartPole-v1", settings=settings, out=path, display=Dies(at))
        idrl.train(resume=path)
        for name in ("evaluations.csv", "episodes.csv", "metrics.csv", "distributions.csv"):
            assert (path / name).read_bytes() == (whole.path / name).read_bytes(), (at, name)
        ours, theirs = (checkpoint.newest(p / "checkpoints")[0] for p in (path, whole.path))
        arrays = checkpoint.ARRAYS
        assert (ours / arrays).read_bytes() == (theirs / arrays).read_bytes()


def test_the_journal_stays_short():
    p = program(Toy, training={"steps": 1_500})
    lengths = [len(q.state.worlds.journal.actions) for q in collect(p)]
    # vector steps between evaluations, a block, and an episode
    assert max(lengths) <= 50 + p.cadence.block + 5


def test_an_environment_with_its_own_chance_starts_anew_and_says_so():
    p = program(functools.partial(Toy, seeded=False))
    middle = collect(p)[3]
    with pytest.warns(UserWarning, match="of 4 environments Toy did not come out"):
        rest = collect(p, p.place(middle.state), middle.iteration)
    state = rest[-1].state
    valid, t = state.replay.facts[0, :150, :, 3] > 0, state.replay.obs[0, :, :, 1]
    assert (t[1:151] - t[:150])[valid].tolist() == [1] * int(valid.sum())  # no false transition


# -- as users meet it ---------------------------------------------------------------------------


@pytest.mark.slow
def test_an_object_a_factory_and_a_name_train_alike(tmp_path, capsys):
    idrl.register_env("toy-gym", Toy)
    assert resolve("dqn", "toy-gym").trunk.kind == "mlp"
    runs = [
        idrl.train("dqn", env, seeds=2, settings=SMALL, out=tmp_path / str(i))
        for i, env in enumerate((Toy(), Toy, "toy-gym"))
    ]
    gymnasium.register("Toy-v0", Toy)
    vector = gymnasium.make_vec("Toy-v0", SMALL["training"]["envs"])
    told = {name: value for name, value in SMALL["training"].items() if name != "envs"}
    settings = SMALL | {"training": told}
    runs.append(idrl.train("dqn", vector, seeds=2, settings=settings, out=tmp_path / "vector"))
    assert len({(run.path / "evaluations.csv").read_bytes() for run in runs}) == 1
    agent = idrl.load(runs[0])
    assert agent.predict(np.zeros(2)) in range(5)
    assert idrl.evaluate(runs[1], env=Toy, episodes=3).return_mean.tolist() == [10, 10]
    score = idrl.evaluate(agent, vector, episodes=3)
    assert (score.return_mean, score.length_mean, score.episodes) == (10, 4, 3)
    assert main(["evaluate", str(runs[2].path), "--episodes", "5"]) == 0
    assert main(["explain", str(runs[2].path), "--step", "2"]) == 0
    assert "step 2" in capsys.readouterr().out
    assert main(["explain", str(runs[2].path), "--step", "9"]) == 2
    assert "ended after 4 steps" in capsys.readouterr().err


def test_presets_by_name_and_by_shape():
    cartpole, same_task = resolve("dqn", "cartpole"), resolve("dqn", "gym/CartPole-v1")
    assert (same_task.learning, same_task.training) == (cartpole.learning, cartpole.training)
    assert resolve("dqn", "mine", obs_shape=(96, 96, 3)).trunk.kind == "nature_cnn"
    assert resolve("dqn", "mine", obs_shape=(7, 7, 3)).trunk.kind == "minatar_cnn"
    assert resolve("dqn", "mine", obs_shape=(2, 7, 3)).trunk.kind == "mlp"  # no convolution fits
    assert resolve("dqn", "gym/Taxi-v4").trunk.kind == "mlp"
    game = resolve("dqn", "minatar/breakout")  # an object of a known family has its family's
    assert resolve("dqn", "minatar/breakout", obs_shape=(10, 10, 4)) == game


@pytest.mark.slow
def test_images_train():
    class Image(Toy):
        observation_space = spaces.Box(0, 255, (8, 8, 1), np.uint8)

        def _seen(self):
            return np.full((8, 8, 1), self.t, np.uint8), {}

    env = GymnasiumEnv(Image)
    changes = {k: v for k, v in SMALL.items() if k != "trunk"} | {"seeds": 1}
    changes["training"] = changes["training"] | {"steps": 60}
    p = make_program(resolve("dqn", "image", changes=[changes], obs_shape=env.obs_shape), env)
    last = collect(p)[-1]
    assert last.state.replay.obs.dtype == np.uint8
    assert np.isfinite(last.metrics["loss_q"]).all()


class Fails(Toy):
    def step(self, action):
        seen = super().step(action)
        if self.t == 3:
            raise RuntimeError("out of\nluck")
        return seen


class Nan(Toy):
    def step(self, action):
        return (*super().step(action)[:1], float("nan"), False, False, {})


class Unsure(Toy):
    """A variable that one way through a step does not set."""

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, None if self.t == 3 else terminated, truncated, info


@pytest.mark.parametrize(
    ("env", "says"),
    [
        (Fails, r"Fails raised RuntimeError at step 3 of an episode .* action \d: out of luck\."),
        (Nan, r"Nan returned .* not finite at step 1 of an episode .* action \d\."),
        (Unsure, r"returned NoneType None as terminated, which must be a bool, at step 3 of an ep"),
        (gymnasium.make("Pendulum-v1"), "gym/Pendulum-v1 has 1-dimensional continuous actions"),
    ],
)
def test_what_goes_wrong_is_named(tmp_path, env, says):
    with pytest.raises(idrl.IdrlError, match=says):
        idrl.train("dqn", env, settings=SMALL, out=tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gym/CartPol-v1", "did you mean 'CartPole-v1'"),
        ("gym/CartPole-v1?colour=red", "cannot be made"),
        ("gym/FrozenLake-v1?map_name=9x9", "cannot be made: KeyError: '9x9'."),
        ("gym/FrozenLake-v1?map_name=", "options are written"),
        ("gym/Nonesuch", "unknown Gymnasium environment 'Nonesuch'; those of other packages"),
        ("gym/os:CartPole-v1", "write gym/CartPole-v1, and import os before, on the command"),
        ("gym/ALE/Nothing-v9", "add --plugin ale_py, or use atari/GAME"),
        ("gym/MountainCarContinuous-v0", "continuous actions"),
    ],
)
def test_bad_names_are_one_sentence(name, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "dqn", name]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_warning_of_gymnasium_is_shown_without_its_colour(tmp_path, monkeypatch, capsys):
    gymnasium.register("Aged-v1", Toy)
    gymnasium.register("Aged-v2", Toy)
    monkeypatch.chdir(tmp_path)
    assert main(["train", "td3", "gym/Aged-v1"]) == 2
    assert "idrl: WARN: The environment Aged-v1 is out of date." in capsys.readouterr().err
    for version in (1, 2):
        del gymnasium.registry[f"Aged-v{version}"]


def test_a_factory_must_make_new_ones(tmp_path):
    one = Toy()
    with pytest.raises(idrl.IdrlError, match="the same environment twice"):
        idrl.train("dqn", lambda: one, settings=SMALL, out=tmp_path / "run")


def test_a_missing_package_is_named(monkeypatch):
    def missing(*args, **kwargs):
        raise gymnasium.error.DependencyNotInstalled("Box2D is not installed")

    monkeypatch.setattr(gymnasium, "make", missing)
    with pytest.raises(idrl.IdrlError, match=r"pip install 'idrl\[box2d\]'"):
        make_env("gym/LunarLander-v3")

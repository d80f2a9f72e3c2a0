"""Mixed precision: what is kept in float32, what is computed with in bfloat16, how close it is; and
how a gradient's length is estimated."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from idrl.agents import Agent, agent
from idrl.agents.agent import refresh_target
from idrl.config import resolve
from idrl.networks.heads import Transition
from idrl.storage import checkpoint

SIDE, ACTIONS, BATCH = 36, 3, 8
SMALL = {
    "heads": {"q": {"k": 2, "hidden": [16]}, "z": {"hidden": [16], "atoms": 11}},
    "optimiser": {"lr": 1.0, "eps": 100.0},  # so that an update is a multiple of its gradient
}
LARGE = 1000  # weights; the first layers of both heads have more, all others less
FULL, LESS = jnp.dtype(jnp.float32), jnp.dtype(jnp.bfloat16)

# Compiling takes all the time here: let XLA try less hard.
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch):
    monkeypatch.setattr(agent, "_LARGE", LARGE)


def built(precision, changes=SMALL, shape=(SIDE, SIDE, 4), name="c51-ids"):
    change = {"learning": {"precision": precision}}
    config = resolve(name, "atari/pong", changes=[changes, change])
    return Agent(config.spec, shape, ACTIONS)


@functools.cache
def batch():
    rng = np.random.default_rng(0)
    before, after = rng.integers(0, 256, (2, BATCH, SIDE, SIDE, 4), np.uint8)
    action = rng.integers(0, ACTIONS, BATCH).astype(np.int32)
    reward = rng.normal(size=BATCH).astype(np.float32)
    return Transition(before, action, reward, np.full(BATCH, 0.99, np.float32), after)


@functools.cache
def states():
    """Before and after an update, in each precision."""
    found = {}
    for precision in ("full", "mixed"):
        one = built(precision)
        start = jit(one.init)(jax.random.key(0), batch().s_tm1)
        after, metrics, _ = jit(one.learn)(start, batch())
        found[precision] = start, after, metrics
    return found


def named(tree):
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in leaves}


@pytest.mark.parametrize("when", [0, 1], ids=["at the start", "after an update"])
def test_convolutions_and_large_matrices_alone_are_computed_in_less(when):
    state = states()["mixed"][when]
    numbers = [x for x in jax.tree.leaves(state.opt_state) if x.dtype != jnp.int32]
    assert {x.dtype for x in numbers} == {FULL}
    params = named(state.params)
    assert {x.dtype for x in params.values()} == {FULL}
    for copy in (named(state.fast), named(state.target)):
        less = {name for name, x in copy.items() if x.dtype == LESS}
        costly = {
            name
            for name, x in params.items()
            if name.endswith("kernel") and ("Conv" in name or x.size >= LARGE)
        }
        assert less == costly
        assert len(less) == 5  # three convolutions, the first layer of two heads
        assert {x.dtype for x in copy.values()} == {LESS, FULL}
    for name, x in named(state.fast).items():
        assert np.array_equal(x, params[name].astype(x.dtype))


def test_in_full_precision_there_is_no_copy():
    state = states()["full"][0]
    assert state.fast is None
    assert {x.dtype for x in jax.tree.leaves((state.params, state.target))} == {FULL}


def test_the_target_is_what_updates_compute_with():
    _, after, _ = states()["mixed"]
    renewed = refresh_target(after)
    jax.tree.map(np.testing.assert_array_equal, renewed.target, after.fast)
    assert not np.array_equal(
        named(after.target)["trunk/params/Conv_0/kernel"],
        named(renewed.target)["trunk/params/Conv_0/kernel"],
    )


def test_an_update_is_close_to_that_in_full_precision():
    full, mixed = states()["full"], states()["mixed"]
    close = functools.partial(np.testing.assert_allclose, atol=1e-6)  # they are compiled apart
    jax.tree.map(close, full[0].params, mixed[0].params)
    steps = [
        jax.tree.map(jnp.subtract, after.params, before.params)
        for before, after, _ in (full, mixed)
    ]
    assert named(steps[0]).keys() == named(steps[1]).keys()
    for name, step in named(steps[0]).items():
        apart = optax.tree.norm(step - named(steps[1])[name])
        assert 0 < float(apart) < 0.1 * float(optax.tree.norm(step)), name
    for name, value in full[2].items():
        assert float(mixed[2][name]) == pytest.approx(float(value), rel=0.02), name


def test_small_networks_stay_as_they_are():
    """A trunk without convolutions, too."""
    change = SMALL | {"trunk": {"kind": "mlp", "hidden": [8]}}
    state = jax.eval_shape(
        built("mixed", change, (4,)).init, jax.random.key(0), jnp.zeros((2, 4))
    )  # fmt: skip
    assert {x.dtype for x in jax.tree.leaves(state.fast)} == {FULL}


def test_a_checkpoint_keeps_every_bit(tmp_path):
    state = states()["mixed"][1]
    place = checkpoint.save(tmp_path, 1, state, {})
    again = checkpoint.restore(place, jax.eval_shape(lambda: state))
    for name, x in named(state).items():
        assert named(again)[name].dtype == x.dtype
        assert named(again)[name].tobytes() == np.asarray(x).tobytes()


def test_the_length_of_a_gradient_is_estimated():
    """Of matrices whose heads differ a hundredfold, whichever axis heads are on."""
    rng = np.random.default_rng(0)
    heads = np.logspace(-1, 1, 5)
    grads = {
        "shared": rng.normal(size=(400, 5, 64)) * heads[:, None],
        "apart": rng.normal(size=(5, 400, 64)) * heads[:, None, None],
        "plain": rng.normal(size=(300, 200)),
        "small": rng.normal(size=(7, 3)) * 50,
        "bias": rng.normal(size=2000),
    }
    grads = {name: jnp.asarray(x, jnp.float32) for name, x in grads.items()}
    for tree in (grads, *({name: x} for name, x in grads.items())):
        assert float(agent.norm(tree)) == pytest.approx(float(optax.tree.norm(tree)), rel=0.05)
    few = {"small": grads["small"]}
    assert float(agent.norm(few)) == pytest.approx(float(optax.tree.norm(few)), rel=1e-6)

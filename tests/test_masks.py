"""Action masks in the replay, in every head's target and in what is told of a rule."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idrl.agents.metrics import diagnostics
from idrl.ids import decide
from idrl.networks.heads import Bayesian, Categorical, Ensemble, Implicit, Quantile, Transition
from idrl.networks.heads.bayesian import Regressed
from idrl.networks.heads.implicit import Answers
from idrl.replay import ring as ring

# Compiling takes most of the time here: let XLA try less hard.
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})

# -- the replay ---------------------------------------------------------------------------------


def mask(time, env, actions):
    """What the observation of row `time` allows: never nothing, but for row 13."""
    bits = (np.arange(actions) + time + env) % 3 == 0
    return bits & (time != 13)


add = jit(ring.add, static_argnames="n_step")


def filled(rows, written, actions, envs=2, heads=0, dead=(), ended=(), **how):
    """A ring after `written` rows, whose observation is their number."""
    heads = np.ones((envs, heads), bool) if heads else None
    stack = []
    for t in range(written):
        always = np.ones(envs, bool)
        allowed = np.stack([mask(t, env, actions) for env in range(envs)])
        obs = np.stack([np.full(envs, t), np.arange(envs)], -1).astype(np.float32)
        stack.append(
            ring.Row(obs, np.zeros(envs, np.int32), np.ones(envs, np.float32),
                     always & (t in ended), always & (t not in dead), heads, allowed)
        )  # fmt: skip
    replay = ring.empty(stack[0], rows, **how.pop("priorities", {}))
    for t, row in enumerate(stack):
        replay = add(replay, row, np.int32(t), **how)
    return replay


@pytest.mark.parametrize("actions", [3, 24, 25, 60])
@pytest.mark.parametrize("heads", [0, 2])
def test_a_transition_has_the_mask_of_the_observation_after_it(actions, heads):
    replay = filled(8, 11, actions, heads=heads)  # beyond the ring's end
    drawn = ring.sample(replay, jax.random.key(0), 11, 200, 0.9, actions=actions)
    times, envs = np.asarray(drawn.s_t).astype(int).T
    expected = np.stack([mask(t, e, actions) for t, e in zip(times, envs, strict=True)])
    assert len(set(times)) == 7
    np.testing.assert_array_equal(drawn.allowed_t, expected)
    assert (drawn.mask is None) == (heads == 0)
    assert heads == 0 or drawn.mask.shape == (200, heads)
    assert replay.facts.shape[-1] == 4 + heads + -(-actions // 24)  # a number for 24 of them


@pytest.mark.parametrize(
    ("start", "end", "discount"),
    [
        (0, 3, 0.9**3),  # three steps
        (4, 6, 0.9**2),  # a time limit after row 5: row 6 holds the last observation
        (8, 10, 0.0),  # terminated by row 9
        (10, 13, 0.0),  # row 13 allows nothing: nothing can follow
    ],
)
@pytest.mark.parametrize("prioritised", [False, True])
def test_n_steps_bootstrap_from_the_mask_of_where_they_end(start, end, discount, prioritised):
    priorities = {"priorities": {"prioritised": True}, "n_step": 3} if prioritised else {}
    replay = filled(20, 16, 5, dead=(6,), ended=(9,), **priorities)
    where = np.array([start]), np.array([1])
    found = ring.gather(replay, *where, 0.9, n_step=3, actions=5)
    assert np.asarray(found.s_t).tolist() == [[end, 1]]
    np.testing.assert_array_equal(found.allowed_t[0], mask(end, 1, 5))
    np.testing.assert_allclose(found.discount_t, [discount], rtol=1e-6)
    if prioritised:
        drawn = ring.sample(replay, jax.random.key(0), 16, 100, 0.9, n_step=3, actions=5)
        times, envs = np.asarray(drawn.s_t).astype(int).T
        expected = [mask(t, e, 5) for t, e in zip(times, envs, strict=True)]
        np.testing.assert_array_equal(drawn.allowed_t, expected)
        assert 6 not in np.asarray(drawn.s_tm1)[:, 0]


# -- targets ------------------------------------------------------------------------------------

# Two states with actions of these values, by the online and by the target network; r = 1, γ = 0.5.
ONLINE = np.array([[5.0, 1.0, 2.0], [3.0, 4.0, 9.0]], np.float32)
TARGET = np.array([[6.0, 4.0, 2.0], [8.0, 2.0, 9.0]], np.float32)
ALLOWED = np.array([[False, True, True], [True, True, False]])
# By the target: action 1 of (4, 2), action 0 of (8, 2). Double: online prefers 2 of (1, 2) and 1 of
# (3, 4), which the target values 2 and 2.
VALUES = {False: np.array([4.0, 8.0]), True: np.array([2.0, 2.0])}
BATCH = Transition(
    None, jnp.array([2, 0]), jnp.ones(2), jnp.full(2, 0.5), None, allowed_t=jnp.asarray(ALLOWED)
)


def outputs(kind, values, forbidden=None):
    """What a head of that kind says whose mean is `values`; `forbidden` replaces the values of what
    is not allowed."""
    values = np.where(ALLOWED, values, values if forbidden is None else forbidden)
    values = jnp.asarray(values, jnp.float32)
    if kind == "ensemble":
        return jnp.stack([values, values], 1)
    if kind == "bayesian":
        return Regressed(values, values[:, None], jnp.ones((2, 4)))
    if kind == "categorical":  # all mass on the atom of that value
        atoms = jnp.linspace(0.0, 10.0, 11)
        return jnp.where(jnp.abs(atoms - values[..., None]) < 0.5, 200.0, 0.0).reshape(2, 1, -1)
    if kind == "quantile":
        return jnp.repeat(values[:, None], 4, -1)
    taus = jnp.broadcast_to((jnp.arange(4) + 0.5) / 4, (2, 4))
    return Answers(jnp.repeat(values[..., None], 4, -1), taus)


HEADS = {
    "ensemble": functools.partial(Ensemble, k=2, error="squared"),
    "bayesian": functools.partial(Bayesian, k=2, error="squared"),
    "categorical": functools.partial(Categorical, atoms=11, v_min=0, v_max=10),
    "quantile": functools.partial(Quantile, quantiles=4),
    "implicit": functools.partial(Implicit, samples=4),
}
EITHER = list(itertools.product(HEADS, (False, True)))


def expected(kind, double):
    """The loss of predicting 0 where the target is 1 + value/2."""
    target = 1 + 0.5 * VALUES[double]
    if kind in ("ensemble", "bayesian"):
        return target**2 * (2 if kind == "ensemble" else 1)  # the sum over heads
    if kind == "categorical":  # 200 nats between the atom of 0 and any other
        return np.full(2, 200.0)
    # Over four quantiles: ∑ τ = 2, all errors positive and beyond κ = 1.
    return 2 * (target - 0.5)


@pytest.mark.parametrize(("kind", "double"), EITHER)
def test_targets_by_hand(kind, double):
    head = HEADS[kind](double=double)
    zero = outputs(kind, np.zeros((2, 3)))
    said = outputs(kind, ONLINE), outputs(kind, TARGET)
    np.testing.assert_allclose(head.loss(zero, *said, BATCH), expected(kind, double), rtol=1e-4)
    # Predicting the target costs nothing, as far as the loss can tell; the wrong action does.
    right = np.zeros((2, 3))
    right[[0, 1], BATCH.a_tm1] = 1 + 0.5 * VALUES[double]
    np.testing.assert_allclose(head.loss(outputs(kind, right), *said, BATCH), 0, atol=1e-4)
    blind = BATCH._replace(allowed_t=None)
    assert (np.asarray(head.loss(outputs(kind, right), *said, blind)) > 0.1).any()
    if kind in ("ensemble", "bayesian"):
        td_priority = head.td_priority(zero, *said, BATCH)
        np.testing.assert_allclose(td_priority, 1 + 0.5 * VALUES[double], rtol=1e-5)


@pytest.mark.parametrize(("kind", "double"), EITHER)
def test_values_of_what_is_not_allowed_change_nothing(kind, double):
    head = HEADS[kind](double=double)
    rng = np.random.default_rng(0)
    values = rng.uniform(0, 10, (3, 2, 3))

    def learned(forbidden):
        out_tm1 = outputs(kind, values[0])
        online_t, target_t = (outputs(kind, v, forbidden) for v in values[1:])

        def loss(out):
            return head.loss(out, online_t, target_t, BATCH).sum()

        slopes = jax.grad(loss, allow_int=True)(out_tm1)
        found = [loss(out_tm1), slopes, head.td_priority(out_tm1, online_t, target_t, BATCH)]
        if isinstance(head, Bayesian):
            found.append(head.evidence(out_tm1, online_t, target_t, BATCH))
        return found

    as_said, tempting = learned(None), learned(1e6 if kind != "categorical" else 10.0)
    for a, b in zip(jax.tree.leaves(as_said), jax.tree.leaves(tempting), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_posterior_is_fitted_to_what_allowed_actions_are_worth():
    # One feature of 1 and a wide prior: the posterior's mean is that of the targets.
    head = Bayesian(k=2, double=True, prior_std=100.0)
    said = [outputs("bayesian", v) for v in (np.zeros((2, 3)), ONLINE, TARGET)]
    said = [out._replace(features=jnp.ones((2, 1))) for out in said]
    evidence = head.evidence(*said, BATCH)
    fitted = head.refit({"params": {}}, evidence, 1e3, jax.random.key(0))["params"]["mean"][0]
    np.testing.assert_allclose(fitted, [2.0, 0.0, 2.0], atol=1e-3)  # 1 + ½·2; never tried: 0


# -- what is said of actions --------------------------------------------------------------------


def test_ranges_are_those_of_allowed_actions():
    q = jnp.array([[[1.0, 9.0, 3.0], [2.0, -9.0, 3.0]], [[5.0, 6.0, 0.0], [5.0, 6.0, 0.0]]])
    allowed = jnp.array([[True, False, True], [False, False, False]])  # the second: at an end
    variance = jnp.array([[1.0, 98.0, 3.0], [2.0, 2.0, 2.0]])
    seen = jnp.array([[True, False, True], [True, True, True]])
    told = diagnostics(decide(q, variance, mask=seen), allowed)
    numbers = {name: float(x) for name, x in told.items()}
    # ρ²: (1, 3) over their mean of 2, all alike in the other; σ: ½ of action 0, else 0.
    assert numbers["q_max"] == pytest.approx((3 + 6) / 2)
    assert numbers["sigma_max"] == pytest.approx((0.5 + 0) / 2)
    assert numbers["sigma_min"] == 0
    assert numbers["rho2_min"] == pytest.approx((0.5 + 1) / 2, rel=1e-3)
    assert numbers["rho2_max"] == pytest.approx((1.5 + 1) / 2, rel=1e-3)
    assert numbers["not_greedy"] == 0

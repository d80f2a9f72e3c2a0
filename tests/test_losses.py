"""Our losses against rlax's on random inputs, against plain loops, and by hand."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rlax

from idrl import losses
from idrl.networks.heads import Categorical, Ensemble, Quantile, Transition

# rlax says that its cross-entropy will move; it is our referee only here.
pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")

B, A, N = 64, 3, 7  # transitions, actions, atoms or quantiles

# Compiling takes most of the time here: let XLA try less hard.
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def transitions(seed):
    """Actions, rewards and discounts of B transitions; a third of them terminal."""
    rng = np.random.default_rng(seed)
    a_tm1 = jnp.asarray(rng.integers(0, A, B), jnp.int32)
    r_t = jnp.asarray(rng.normal(size=B), jnp.float32)
    discount_t = jnp.asarray(0.99 * (rng.random(B) > 0.3), jnp.float32)
    return a_tm1, r_t, discount_t


def normal(seed, *shape, scale=1.0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape) * scale, jnp.float32)


def losses_and_gradients(loss, *batch):
    """`[B]` losses and their gradients by the first argument, under vmap."""
    return jit(jax.vmap(jax.value_and_grad(loss)))(*batch)


def assert_same(ours, theirs, rtol=1e-5, atol=1e-6):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


# -- Q-learning --------------------------------------------------------------------------------


def test_huber_by_hand():
    # ½·0.25 = 0.125; at ±1 ½; beyond: ½ + (3 − 1) = 2.5
    np.testing.assert_allclose(losses.huber(jnp.array([0.0, 0.5, -1.0, 3.0])), [0, 0.125, 0.5, 2.5])
    # δ = 2: 2·3 − ½·4 = 4
    np.testing.assert_allclose(losses.huber(jnp.array([1.0, -3.0]), 2.0), [0.5, 4.0])


def test_squared_has_no_half():
    np.testing.assert_allclose(losses.squared(jnp.array([-3.0, 2.0])), [9, 4])


def test_double_q_learning_equals_rlax():
    # Both give the error of one transition; errors beyond ±1 reach the linear part of Huber.
    a_tm1, r_t, discount_t = transitions(0)
    batch = (normal(1, B, A, scale=2), a_tm1, r_t, discount_t, normal(2, B, A), normal(3, B, A))
    ours = losses_and_gradients(lambda *x: losses.huber(losses.q_learning_error(*x)), *batch)
    theirs = losses_and_gradients(lambda *x: rlax.huber_loss(rlax.double_q_learning(*x)), *batch)
    assert_same(ours, theirs)


def test_plain_q_learning_equals_rlax():
    # The target's own values as the selector.
    a_tm1, r_t, discount_t = transitions(4)
    batch = (normal(5, B, A), a_tm1, r_t, discount_t, normal(6, B, A))
    ours = losses_and_gradients(lambda *x: losses.q_learning_error(*x, x[-1]), *batch)
    assert_same(ours, losses_and_gradients(rlax.q_learning, *batch))


def test_the_target_gets_no_gradient():
    q_t, selector_t = normal(7, A), normal(8, A)

    def error(q_t, selector_t):
        return losses.q_learning_error(normal(9, A), 1, 0.5, 0.9, q_t, selector_t)

    for gradient in jax.grad(error, (0, 1))(q_t, selector_t):
        np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize("double", [True, False])
def test_ensemble_loss_is_the_sum_over_heads_of_their_own_losses(double):
    # Head k learns from target head k, at the action that online (or target) head k prefers.
    k = 4
    a_tm1, r_t, discount_t = transitions(10)
    out_tm1, online_t, target_t = (normal(seed, B, k, A) for seed in (11, 12, 13))
    mask = jnp.asarray(np.random.default_rng(14).random((B, k)) < 0.5)
    batch = Transition(None, a_tm1, r_t, discount_t, None, mask)
    loss = jit(Ensemble(k=k, double=double).loss)(out_tm1, online_t, target_t, batch)
    expected = np.zeros(B)
    for head in range(k):
        selector_t = (online_t if double else target_t)[:, head]
        error = jit(jax.vmap(rlax.double_q_learning))(
            out_tm1[:, head], a_tm1, r_t, discount_t, target_t[:, head], selector_t
        )
        expected += np.asarray(rlax.huber_loss(error)) * np.asarray(mask[:, head])
    np.testing.assert_allclose(loss, expected, rtol=1e-5, atol=1e-6)


# -- C51 ---------------------------------------------------------------------------------------


def test_categorical_q_learning_equals_rlax():
    # Targets within the range, beyond it on both sides, and terminal ones.
    a_tm1, r_t, discount_t = transitions(15)
    atoms = jnp.linspace(-2, 2, N)
    batch = (normal(16, B, A, N), a_tm1, r_t * 3, discount_t, normal(17, B, A, N))
    ours = losses_and_gradients(lambda *x: losses.categorical_loss(atoms, *x), *batch)

    def theirs(logits_tm1, a_tm1, r_t, discount_t, logits_t):
        return rlax.categorical_q_learning(
            atoms, logits_tm1, a_tm1, r_t, discount_t, atoms, logits_t
        )

    assert_same(ours, losses_and_gradients(theirs, *batch), rtol=1e-4, atol=1e-5)


def test_categorical_head_lays_its_outputs_out_by_action():
    head = Categorical(atoms=N, v_min=-2, v_max=2)
    a_tm1, r_t, discount_t = transitions(18)
    logits_tm1, logits_t = normal(19, B, A, N), normal(20, B, A, N)
    batch = Transition(None, a_tm1, r_t, discount_t, None)
    flat_tm1, flat_t = (x.reshape(B, 1, A * N) for x in (logits_tm1, logits_t))
    # The selector is the target itself: what the online network says of s_t plays no part.
    loss = jit(head.loss)(flat_tm1, flat_tm1, flat_t, batch)
    one = jax.vmap(losses.categorical_loss, (None, 0, 0, 0, 0, 0))
    expected = jit(one)(head.support, logits_tm1, a_tm1, r_t, discount_t, logits_t)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    # Mean and variance of each action's distribution.
    p = np.exp(np.asarray(logits_t, float))
    p /= p.sum(-1, keepdims=True)
    z = np.linspace(-2, 2, N)
    mean = p @ z
    np.testing.assert_allclose(head.q_heads(flat_t)[:, 0], mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(head.return_variance(flat_t), p @ z**2 - mean**2, rtol=1e-4)


ATOMS = jnp.linspace(-10, 10, 51)  # spacing 0.4; atom 25 is 0


def random_probs(seed, n=51):
    return jnp.asarray(np.random.default_rng(seed).dirichlet(np.ones(n)), jnp.float32)


def test_projection_keeps_mass_and_mean_inside_the_range():
    rng = np.random.default_rng(21)
    values = jnp.asarray(rng.uniform(-10, 10, (50, 51)), jnp.float32)
    probs = jnp.asarray(rng.dirichlet(np.ones(51), 50), jnp.float32)
    projected = np.asarray(jit(jax.vmap(losses.project, (None, 0, 0)))(ATOMS, values, probs))
    assert (projected >= 0).all()
    np.testing.assert_allclose(projected.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(
        projected @ np.asarray(ATOMS), (probs * values).sum(-1), rtol=1e-4, atol=1e-4
    )


def test_projection_keeps_mass_where_it_clips():
    for shift in (-30.0, -5.0, 5.0, 30.0):
        projected = losses.project(ATOMS, ATOMS + shift, random_probs(22))
        np.testing.assert_allclose(projected.sum(), 1, rtol=1e-5)
    # All of it beyond the end: one atom holds everything.
    np.testing.assert_allclose(projected[-1], 1, rtol=1e-5)


def test_projection_onto_the_same_atoms_changes_nothing():
    # Every value falls exactly on an atom: the case in which an older code lost all mass.
    probs = random_probs(23)
    np.testing.assert_allclose(losses.project(ATOMS, ATOMS, probs), probs, atol=1e-5)


@pytest.mark.parametrize("atoms", [51, 21, 2])
@pytest.mark.parametrize(("low", "high"), [(-10.0, 10.0), (0.0, 1.0), (-100.0, 0.0)])
def test_projection_of_a_shift_by_whole_atoms(low, high, atoms):
    support = jnp.linspace(low, high, atoms)
    probs = np.asarray(random_probs(24, atoms))
    shifted = support + (support[1] - support[0])
    expected = np.append(0, probs[:-1])
    expected[-1] += probs[-1]  # the last atom has nowhere to go
    # In float32 a shifted atom is off its atom by rounding, which moves a little mass next door.
    np.testing.assert_allclose(losses.project(support, shifted, probs), expected, atol=1e-4)


def test_a_terminal_reward_of_zero_is_all_mass_at_zero():
    projected = losses.project(ATOMS, 0.0 + 0.0 * ATOMS, random_probs(25))
    np.testing.assert_allclose(projected, np.eye(51)[25], atol=1e-5)
    # So the loss of uniform logits is log 51, not the 0 of an empty target.
    flat = jnp.zeros((2, 51))
    loss = losses.categorical_loss(ATOMS, flat, 0, 0.0, 0.0, flat)
    np.testing.assert_allclose(loss, np.log(51), rtol=1e-5)


def test_a_terminal_reward_between_two_atoms_is_shared_by_distance():
    # 0.1 lies a quarter of the way from atom 25 (0) to atom 26 (0.4).
    projected = losses.project(ATOMS, 0.1 + 0.0 * ATOMS, random_probs(26))
    expected = 0.75 * np.eye(51)[25] + 0.25 * np.eye(51)[26]
    np.testing.assert_allclose(projected, expected, atol=1e-5)


# -- QR-DQN ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kappa", [1.0, 0.5])
def test_quantile_q_learning_equals_rlax(kappa):
    # Three differences: rlax lays quantiles out as [N, A]; it takes τ as an argument; and it does
    # not divide the Huber loss by κ, as we do (so ours tends to |u| as κ → 0, and theirs to 0).
    # The reductions are the same: the mean over targets, then the sum over predictions.
    a_tm1, r_t, discount_t = transitions(27)
    batch = (normal(28, B, A, N), a_tm1, r_t, discount_t, normal(29, B, A, N))
    ours = losses_and_gradients(lambda *x: losses.quantile_loss(*x, kappa), *batch)
    taus = (jnp.arange(N) + 0.5) / N

    def theirs(quantiles_tm1, a_tm1, r_t, discount_t, quantiles_t):
        loss = rlax.quantile_q_learning(
            quantiles_tm1.T, taus, a_tm1, r_t, discount_t, quantiles_t.T, quantiles_t.T, kappa
        )
        return loss / kappa

    assert_same(ours, losses_and_gradients(theirs, *batch))


def test_quantile_loss_against_a_plain_double_loop():
    rng = np.random.default_rng(30)
    for kappa in (0.3, 1.0, 2.0):
        predicted, following = rng.normal(size=(A, N)), rng.normal(size=(A, N))
        a_tm1, r_t, discount_t = 2, 0.7, 0.9
        best = max(range(A), key=lambda a: sum(following[a]))
        total = 0.0
        for i in range(N):
            tau = (2 * i + 1) / (2 * N)
            for j in range(N):
                u = r_t + discount_t * following[best][j] - predicted[a_tm1][i]
                huber = 0.5 * u * u if abs(u) <= kappa else kappa * (abs(u) - 0.5 * kappa)
                total += abs(tau - (1.0 if u < 0 else 0.0)) * huber / kappa / N
        loss = losses.quantile_loss(
            jnp.asarray(predicted), a_tm1, r_t, discount_t, jnp.asarray(following), kappa
        )
        np.testing.assert_allclose(loss, total, rtol=1e-5)


def test_tau_belongs_to_the_predicted_quantile():
    # Predictions 0 and 10 (τ ¼ and ¾), both targets 4.
    # 0 is too low by 4:   weight ¼,           Huber 3.5 → 0.875
    # 10 is too high by 6: weight |¾ − 1| = ¼, Huber 5.5 → 1.375;  in all 2.25
    # With τ on the target axis the weights average ½, and the loss is 4.5.
    loss = losses.quantile_loss(jnp.array([[0.0, 10.0]]), 0, 0.0, 1.0, jnp.array([[4.0, 4.0]]))
    np.testing.assert_allclose(loss, 2.25)


def test_quantiles_spread_out_to_those_of_the_target():
    # With τ on the target axis all predictions would meet in one value.
    target = jnp.array([[-4.0, -1.0, 0.0, 2.0, 5.0]])
    slope = jax.grad(lambda q: losses.quantile_loss(q, 0, 0.0, 1.0, target, kappa=0.05))

    @jax.jit
    def learned(quantiles):
        return jax.lax.fori_loop(0, 10_000, lambda _, q: q - 0.01 * slope(q), quantiles)

    np.testing.assert_allclose(learned(jnp.zeros((1, 5))), target, atol=0.1)


@pytest.mark.parametrize("kappa", [0.5, 1.0, 2.0])
def test_quantiles_one_by_one_equal_all_pairs(monkeypatch, kappa):
    """As a CPU sums them, and as a GPU does, with drawn fractions and another number of targets."""
    (a_tm1, r_t, discount_t), predicted = transitions(3), normal(4, B, A, N)
    batch = (a_tm1, r_t, discount_t, normal(5, B, A, N + 4), normal(6, B, A))
    taus = jnp.asarray(np.random.default_rng(7).random((B, N)), jnp.float32)

    def loss(predicted, a_tm1, r_t, discount_t, target, selector, taus):
        return losses.quantile_loss(
            predicted, a_tm1, r_t, discount_t, target, kappa, selector, taus
        )

    by_taus = jax.grad(lambda taus: loss(predicted[0], *(x[0] for x in batch), taus))
    assert losses.one_by_one(), "tests run on a CPU"
    np.testing.assert_array_equal(by_taus(taus[0]), 0)
    alone = losses_and_gradients(loss, predicted, *batch, taus)
    monkeypatch.setattr(losses, "one_by_one", lambda: False)
    np.testing.assert_array_equal(by_taus(taus[0]), 0)
    pairs = losses_and_gradients(loss, predicted, *batch, taus)
    for x, y in zip(alone, pairs, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_mass_moved_one_by_one_equals_all_pairs(monkeypatch):
    atoms, values = jnp.linspace(-2, 2, 9), normal(8, B, N, scale=2)
    probs = jax.nn.softmax(normal(9, B, N))
    project = jax.vmap(losses.project, (None, 0, 0))
    alone = project(atoms, values, probs)
    monkeypatch.setattr(losses, "one_by_one", lambda: False)
    np.testing.assert_allclose(alone, project(atoms, values, probs), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(alone.sum(-1), 1, rtol=1e-5)


def test_midpoints():
    np.testing.assert_allclose(losses.midpoints(4), [0.125, 0.375, 0.625, 0.875])


def test_quantile_head_lays_its_outputs_out_by_action():
    head = Quantile(quantiles=N)
    values_tm1, values_t = normal(31, B, A, N), normal(32, B, A, N)
    a_tm1, r_t, discount_t = transitions(33)
    flat_tm1, flat_t = (x.reshape(B, 1, A * N) for x in (values_tm1, values_t))
    batch = Transition(None, a_tm1, r_t, discount_t, None)
    loss = jit(head.loss)(flat_tm1, flat_tm1, flat_t, batch)
    expected = jit(jax.vmap(losses.quantile_loss))(values_tm1, a_tm1, r_t, discount_t, values_t)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    np.testing.assert_allclose(head.q_heads(flat_t)[:, 0], values_t.mean(-1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        head.return_variance(flat_t), np.var(np.asarray(values_t), axis=-1), rtol=1e-4
    )

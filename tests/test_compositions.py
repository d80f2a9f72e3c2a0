"""Parts of the newer agents, each against a plain reference, and compositions by settings alone."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rlax

from idrl import losses
from idrl.agents import Agent, agent_names, declared
from idrl.agents.choosing import Ids, ReturnThompson
from idrl.agents.rule_base import Beliefs, RuleContext
from idrl.config import resolve
from idrl.errors import IdrlError
from idrl.networks.heads import Bayesian, Categorical, Ensemble, Implicit, Quantile, Transition
from idrl.networks.heads.implicit import cosines
from idrl.networks.layers import Mlps, ParallelDense
from idrl.schema import parse_assignment

jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
B, A, F, N = 6, 3, 5, 8
KEY = jax.random.key(0)


def normal(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def some_batch(seed=0):
    rng = np.random.default_rng(seed)
    return Transition(
        normal(1, B, F), jnp.asarray(rng.integers(0, A, B)), normal(2, B),
        jnp.asarray(0.9 * (rng.random(B) > 0.3), jnp.float32), normal(3, B, F),
    )  # fmt: skip


# -- layers ------------------------------------------------------------------------------------


def test_dueling_streams_are_value_plus_centred_advantage():
    module = Mlps(2, (4,), A * N, "lecun_normal", dueling=N)
    x = normal(0, B, F)
    params = module.init(KEY, x)
    out = module.apply(params, x).reshape(B, 2, A, N)
    p = params["params"]

    def dense(name, x):
        kernel, bias = p[name]["kernel"], p[name]["bias"]
        shared = kernel.shape[1] == 2 and x.ndim == 2
        return jnp.einsum("bf,fkh->bkh" if shared else "bkf,kfh->bkh", x, kernel) + bias

    advantage = dense("ParallelDense_1", jax.nn.relu(dense("ParallelDense_0", x)))
    value = dense("ParallelDense_3", jax.nn.relu(dense("ParallelDense_2", x)))
    advantage = advantage.reshape(B, 2, A, N)
    expected = value[:, :, None] + advantage - advantage.mean(2, keepdims=True)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
    # The mean over the actions is the value alone.
    np.testing.assert_allclose(out.mean(2), value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(B, F), (B, 2, F)])
def test_noisy_weights_have_the_spread_of_factorised_noise(shape):
    layer = ParallelDense(2, 4, "torch", noisy=0.5)
    x = normal(0, *shape)
    params = layer.init(KEY, x)
    mean = layer.apply(params, x)
    assert (layer.apply(params, x) == mean).all()  # no noise without a key
    draw = jit(jax.vmap(lambda key: layer.apply(params, x, rngs={"noise": key})))
    drawn = draw(jax.random.split(KEY, 4000))
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.05)
    # σ = 0.5/√F and f(ε)² has mean √(2/π): a weight's variance is σ²·2/π, a bias's σ²·√(2/π).
    sigma2 = 0.25 / F
    inputs = np.asarray(x if x.ndim == 3 else x[:, None].repeat(2, 1))
    expected = sigma2 * (2 / np.pi * (inputs**2).sum(-1) + np.sqrt(2 / np.pi))
    np.testing.assert_allclose(drawn.var(0), expected[..., None].repeat(4, -1), rtol=0.15)
    # Heads and outputs are moved each in its own way.
    assert np.abs(np.corrcoef(np.asarray(drawn - mean)[:, 0].reshape(4000, -1).T)[0, 4]) < 0.1


def test_spreads_start_at_sigma0_over_root_inputs_and_learn():
    agent, state, batch = tiny("noisynet-dqn")
    spreads = [
        leaf for path, leaf in jax.tree_util.tree_leaves_with_path(state.params)
        if "spread" in jax.tree_util.keystr(path)
    ]  # fmt: skip
    assert len(spreads) == 4
    for leaf in spreads[:2]:
        np.testing.assert_allclose(leaf, 0.5 / np.sqrt(4), rtol=1e-6)
    learned, _, _ = jit(agent.learn)(state, batch, KEY)
    moved = jax.tree.map(lambda a, b: bool((a != b).any()), learned.params, state.params)
    assert all(jax.tree.leaves(moved["heads"]))


# -- losses ------------------------------------------------------------------------------------


def test_categorical_double_q_learning_equals_rlax():
    atoms, batch = jnp.linspace(-2, 2, N), some_batch()
    logits_tm1, logits_t, selector = normal(4, B, A, N), normal(5, B, A, N), normal(6, B, A)
    ours = jax.vmap(losses.categorical_loss, (None, 0, 0, 0, 0, 0, 0))
    theirs = jax.vmap(rlax.categorical_double_q_learning, (None, 0, 0, 0, 0, None, 0, 0))
    np.testing.assert_allclose(
        jit(ours)(
            atoms, logits_tm1, batch.a_tm1, batch.r_t, batch.discount_t, logits_t, selector
        ),
        jit(theirs)(
            atoms, logits_tm1, batch.a_tm1, batch.r_t, batch.discount_t, atoms, logits_t, selector
        ),
        rtol=1e-4,
    )  # fmt: skip


def test_implicit_quantile_loss_equals_rlax():
    batch, taus = some_batch(), jnp.asarray(np.random.default_rng(7).random((B, N)), jnp.float32)
    values_tm1, values_t = normal(8, B, A, N), normal(9, B, A, 2 * N)

    def ours(v_tm1, a, r, d, v_t, tau):
        return losses.quantile_loss(v_tm1, a, r, d, v_t, 1.0, None, tau)

    def theirs(v_tm1, a, r, d, v_t, tau):
        # rlax wants [N, A]
        return rlax.quantile_q_learning(v_tm1.T, tau, a, r, d, v_t.T, v_t.T, 1.0)

    args = (values_tm1, batch.a_tm1, batch.r_t, batch.discount_t, values_t, taus)
    np.testing.assert_allclose(jit(jax.vmap(ours))(*args), jit(jax.vmap(theirs))(*args), rtol=1e-4)


def tiny(name):
    """An agent with four units a layer, its state and a batch."""
    heads = {n: {"hidden": [4]} for n in declared(name).heads}
    config = resolve(name, "cartpole", changes=[{"trunk": {"hidden": [4]}, "heads": heads}])
    agent = Agent(config.spec, (F,), A)
    return agent, jit(agent.init)(KEY, normal(0, 16, F)), some_batch()


# -- IQN ---------------------------------------------------------------------------------------


def test_fractions_are_drawn_with_a_key_and_midpoints_without():
    head = Implicit(samples=6, act_samples=4, hidden=(4,), embedding=3)
    module = head.module(A)
    x = normal(0, B, F)
    params = module.init(KEY, x)
    learn, act = module.apply(params, x), module.apply(params, x, True)
    assert (learn.values.shape, act.values.shape) == ((B, A, 6), (B, A, 4))
    np.testing.assert_allclose(act.taus[0], [0.125, 0.375, 0.625, 0.875])
    one, other = (module.apply(params, x, rngs={"tau": jax.random.key(i)}) for i in (1, 2))
    assert (one.taus != other.taus).all()
    assert ((one.taus > 0) & (one.taus < 1)).all()


@pytest.mark.parametrize(
    ("risk", "level", "expected"),
    [
        ("neutral", 0.25, [0.1, 0.5, 0.9]),
        ("cvar", 0.25, [0.025, 0.125, 0.225]),
        ("cpw", 0.71, [0.1656, 0.4606, 0.7881]),
        ("wang", -0.75, [0.0211, 0.2266, 0.7023]),
    ],
)
def test_risk_distortions(risk, level, expected):
    head = Implicit(risk=risk, risk_level=level)
    np.testing.assert_allclose(head.distort(jnp.asarray([0.1, 0.5, 0.9])), expected, atol=2e-3)


def test_cosines_of_the_embedding():
    fractions = np.append(np.random.default_rng(0).random(2000), [0, 0.25, 0.5, 1]).astype("f4")
    found = cosines(jnp.arange(64) * jnp.asarray(fractions)[:, None])
    exact = np.cos(np.pi * np.arange(64) * fractions[:, None].astype(np.float64))
    np.testing.assert_allclose(found, exact, atol=2e-5)  # float32 has 6e-6 at 63 half turns
    slopes = jax.vmap(jax.grad(cosines))(jnp.linspace(-3.3, 3.3, 50))
    exact = -np.pi * np.sin(np.pi * np.linspace(-3.3, 3.3, 50))
    np.testing.assert_allclose(slopes, exact, atol=1e-4)


@pytest.mark.slow
def test_implicit_quantiles_learn_a_known_distribution():
    # One state, one action that pays N(0, 1) and ends: quantiles of a standard normal.
    import optax

    head = Implicit(samples=32, act_samples=200, hidden=(32,), embedding=16)
    module = head.module(1)
    x = jnp.ones((64, 4))
    params = module.init(KEY, x[:1])
    optimiser = optax.adam(3e-3)

    def step(carry, key):
        params, opt = carry
        keys = jax.random.split(key)
        reward = jax.random.normal(keys[1], (64,))
        batch = Transition(x, jnp.zeros(64, jnp.int32), reward, jnp.zeros(64), x)

        def loss(params):
            out = module.apply(params, x, rngs={"tau": keys[0]})
            return head.loss(out, out, jax.lax.stop_gradient(out), batch).mean()

        updates, opt = optimiser.update(jax.grad(loss)(params), opt)
        return (optax.apply_updates(params, updates), opt), None

    keys = jax.random.split(jax.random.key(1), 1500)
    (params, _), _ = jax.jit(lambda c: jax.lax.scan(step, c, keys))(
        (params, optimiser.init(params))
    )
    out = module.apply(params, x[:1], True)
    assert abs(float(head.q_heads(out)[0, 0, 0])) < 0.15
    # κ = 1 draws the quantiles of a spread of 1 together
    assert 0.4 < float(head.return_variance(out)[0, 0]) < 1.1


# -- BDQN --------------------------------------------------------------------------------------


def test_the_posterior_of_the_last_layer_is_that_of_bayesian_linear_regression():
    head = Bayesian(k=4000, hidden=(4,), prior_std=0.7, noise_std=0.5)
    module = head.module(A)
    batch = some_batch()
    params = module.init(KEY, batch.s_tm1)
    drawn = jax.random.normal(jax.random.key(3), params["params"]["mean"].shape)
    params["params"]["mean"] = drawn
    out, out_t = module.apply(params, batch.s_tm1), module.apply(params, batch.s_t)
    evidence = jit(head.evidence)(out, out_t, out_t, batch)
    fitted = jit(head.refit)(params, evidence, 3.0, KEY)["params"]
    q_t = np.asarray(out_t.mean, float)
    y = np.asarray(batch.r_t) + np.asarray(batch.discount_t) * q_t.max(-1)
    for a in range(A):
        mine = np.asarray(batch.a_tm1) == a
        x = np.asarray(out.features, float)[mine]
        covariance = np.linalg.inv(3.0 * x.T @ x / 0.25 + np.eye(4) / 0.49)
        mean = covariance @ (3.0 * x.T @ y[mine]) / 0.25
        np.testing.assert_allclose(fitted["mean"][:, a], mean, rtol=2e-3, atol=2e-4)
        weights = np.asarray(fitted["drawn"])[:, :, a]
        np.testing.assert_allclose(weights.mean(0), mean, atol=0.05)
        np.testing.assert_allclose(np.cov(weights.T), covariance, atol=0.05)


def test_no_gradient_moves_the_posterior():
    agent, state, batch = tiny("bdqn")
    state = jit(lambda state: agent.refit(state, lambda n: batch, 2, 1.0, KEY))(state)
    learned, _, _ = jit(agent.learn)(state, batch)
    before, after = (s.params["heads"]["q"]["params"] for s in (state, learned))
    for name in ("mean", "drawn"):
        np.testing.assert_array_equal(before[name], after[name])
    assert (before["ParallelDense_0"]["kernel"] != after["ParallelDense_0"]["kernel"]).any()


# -- rules -------------------------------------------------------------------------------------


def test_return_thompson_follows_a_head_and_a_drawn_return():
    q = jnp.asarray([[[0.0, 1.0], [1.0, 0.0]]] * 2)  # two environments, two heads
    beliefs = Beliefs(q, jnp.ones((2, 2)), jnp.asarray([[0.0, 0.0], [3.0, 0.0]]))
    moment = RuleContext(jnp.int32(0), jnp.asarray([0, 0]), KEY)
    decision = ReturnThompson()(beliefs, moment)
    assert decision.action.tolist() == [1, 0]  # head 0 prefers action 1; the draw outweighs it
    assert decision.probs.tolist() == [[0, 1], [1, 0]]
    np.testing.assert_allclose(decision.mu, [[0.5, 0.5]] * 2)  # told without the draw


@pytest.mark.parametrize("head", [Categorical(v_min=-3, v_max=3), Quantile(quantiles=20)])
def test_drawn_returns_have_the_mean_and_variance_of_their_distribution(head):
    per_action = getattr(head, "atoms", 20)
    out = normal(0, 1, 1, A * per_action)
    drawn = jit(jax.vmap(lambda key: head.return_draw(out, key)))(jax.random.split(KEY, 20_000))
    np.testing.assert_allclose(drawn[:, 0].mean(0), head.q_heads(out)[0, 0], atol=0.05)
    np.testing.assert_allclose(drawn[:, 0].var(0), head.return_variance(out)[0], rtol=0.05)


def test_lambda_follows_its_schedule():
    rule = Ids(lam=2.0, lam_end=0.5, lam_steps=100)
    assert [float(rule.width(jnp.int32(s))) for s in (0, 50, 100, 1000)] == [2.0, 1.25, 0.5, 0.5]
    assert Ids(lam=0.3).width(jnp.int32(7)) == 0.3
    q = normal(0, 1, 4, A)
    told = [
        rule(Beliefs(q), RuleContext(jnp.int32(s), jnp.zeros(1, jnp.int32), KEY)).regret
        for s in (0, 100)
    ]
    fixed = [
        Ids(lam=lam)(Beliefs(q), RuleContext(jnp.int32(0), jnp.zeros(1, jnp.int32), KEY)).regret
        for lam in (2.0, 0.5)
    ]
    np.testing.assert_allclose(told, fixed, rtol=1e-6)


# -- declarations ------------------------------------------------------------------------------

ORIGINALS = {
    # agent: (optimiser, lr, its ε on averaged gradients, agent steps between target copies)
    "dqn": ("rmsprop", 2.5e-4, 9.765625e-6, 10_000),
    "ddqn": ("rmsprop", 2.5e-4, 9.765625e-6, 30_000),
    "dueling": ("rmsprop", 6.25e-5, 9.765625e-6, 30_000),
    "noisynet-dqn": ("rmsprop", 2.5e-4, 9.765625e-6, 10_000),
    "noisynet-dueling": ("rmsprop", 6.25e-5, 9.765625e-6, 30_000),
    "prioritized": ("rmsprop", 6.25e-5, 6.103515625e-7, 30_000),
    "prioritized-dueling": ("rmsprop", 6.25e-5, 6.103515625e-7, 30_000),
    "bootstrapped-dqn": ("rmsprop", 2.5e-4, 9.765625e-6, 10_000),
    "bootstrapped-ucb": ("rmsprop", 2.5e-4, 9.765625e-6, 40_000),
    "ensemble-vote": ("rmsprop", 2.5e-4, 9.765625e-6, 10_000),
    "bdqn": ("rmsprop", 2.5e-4, 9.765625e-6, 10_000),
    "c51": ("adam", 2.5e-4, 0.01 / 32, 10_000),
    "qr-dqn": ("adam", 5e-5, 0.01 / 32, 10_000),
    "iqn": ("adam", 5e-5, 0.01 / 32, 10_000),
    "rainbow": ("adam", 6.25e-5, 1.5e-4, 8_000),
    "dqn-ids": ("adam", 5e-5, 0.01 / 32, 40_000),
    "c51-ids": ("adam", 5e-5, 0.01 / 32, 40_000),
    "qrdqn-ids": ("adam", 5e-5, 0.01 / 32, 40_000),
    "iqn-ids": ("adam", 5e-5, 0.01 / 32, 40_000),
    "c51-thompson": ("adam", 5e-5, 0.01 / 32, 40_000),
}


def test_optimisers_and_targets_are_those_of_the_originals():
    found = {name: declared(name) for name in agent_names(continuous=False)}
    assert {
        name: (
            spec.optimiser.kind, spec.optimiser.lr, spec.optimiser.eps,
            spec.learning.target_every_steps,
        )
        for name, spec in found.items()
    } == ORIGINALS  # fmt: skip


def test_numbers_of_the_originals():
    heads = {name: next(iter(declared(name).heads.values())) for name in agent_names()}
    assert heads["dueling"].trunk_gradient == pytest.approx(2**-0.5)
    assert declared("dueling").optimiser.max_grad_norm == 10
    assert (heads["noisynet-dqn"].noisy, heads["c51"].atoms) == (0.5, 51)
    assert (heads["qr-dqn"].quantiles, heads["qr-dqn"].kappa) == (200, 1.0)
    iqn = heads["iqn"]
    assert (iqn.samples, iqn.act_samples, iqn.embedding) == (64, 32, 64)
    learning = declared("prioritized").learning
    assert (learning.priority, learning.importance) == (0.6, 0.4)
    rainbow = declared("rainbow")
    z = rainbow.heads["z"]
    assert (z.double, z.dueling, z.noisy, z.kind) == (True, True, 0.5, "categorical")
    assert (rainbow.learning.n_step, rainbow.learning.priority) == (3, 0.5)
    assert declared("bootstrapped-ucb").explore.kind == "ucb"


@pytest.mark.parametrize(
    ("agent", "settings", "sentence"),
    [
        ("dqn", ["explore.kind=ids"], "needs at least 2"),
        ("c51", ["explore.kind=ucb"], "needs at least 2"),
        ("dqn-ids", ["explore.noise=smoothed"], "heads.z.kind=categorical"),
        ("dqn-ids", ["explore.kind=return_thompson"], "heads.z.kind=categorical"),
        ("c51-ids", ["explore.beta=-1"], "at least 0"),
        ("iqn", ["heads.z.risk=cvar", "heads.z.risk_level=1.5"], "fraction in (0, 1]"),
        ("iqn", ["heads.z.risk=cvar", "heads.z.risk_level=0"], "fraction in (0, 1]"),
        ("dqn", ["learning.n_step=0"], "must be positive"),
        ("dqn", ["learning.priority=2"], "in [0, 1]"),
        ("dqn", ["heads.q.noisy=-1"], "≥ 0"),
        ("bdqn", ["heads.q.dueling=true"], "heads.q.kind=ensemble"),
        ("bdqn", ["heads.q.hidden=[]"], "heads.q.hidden=[64]"),
        ("dqn", ["optimiser.max_grad_norm=-1"], "at least 0"),
    ],
)
def test_compositions_that_cannot_work_are_refused_in_one_sentence(agent, settings, sentence):
    with pytest.raises(IdrlError) as refused:
        resolve(agent, "cartpole", changes=[parse_assignment(text) for text in settings])
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_priorities_weigh_the_loss_and_report_surprise():
    agent, state, batch = tiny("c51-ids")
    plain, (_, none) = jit(agent.loss)(state.params, state, batch)
    assert none is None
    halved = batch._replace(weight=jnp.full(B, 0.5), where=jnp.arange(B))
    total, (_, td_priority) = jit(agent.loss)(state.params, state, halved)
    np.testing.assert_allclose(total, plain / 2, rtol=1e-5)
    out = agent.outputs(state.params, state.prior, batch.s_tm1)["q"]
    q_t = agent.outputs(state.target, state.prior, batch.s_t)["q"]
    best = q_t.mean(1, keepdims=True).argmax(-1, keepdims=True)  # by the mean of the heads
    q_t = jnp.take_along_axis(q_t, jnp.broadcast_to(best, (*q_t.shape[:2], 1)), -1)
    said = jnp.take_along_axis(out, batch.a_tm1[:, None, None], -1)[..., 0]
    error = batch.r_t[:, None] + batch.discount_t[:, None] * q_t.max(-1) - said
    np.testing.assert_allclose(td_priority, jnp.abs(error).mean(-1), rtol=1e-4)


def test_ensembles_of_one_network_differ_by_their_flags_alone():
    plain, dueling = (Ensemble(k=1, hidden=(4,), dueling=flag).module(A) for flag in (False, True))
    x = normal(0, B, F)
    count = lambda m: sum(p.size for p in jax.tree.leaves(m.init(KEY, x)))  # noqa: E731
    assert count(dueling) == count(plain) + (F * 4 + 4) + (4 * 1 + 1)

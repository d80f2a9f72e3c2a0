"""Layers, trunks, and where gradients go, measured on the real parameters of small agents."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from idrl.agents import Agent, AgentSpec
from idrl.agents.agent import norm, refresh_target
from idrl.agents.choosing import Greedy
from idrl.agents.optimisers import Adam, RmsProp
from idrl.config import resolve
from idrl.networks.heads import Categorical, Ensemble, Mlps, Quantile, Transition
from idrl.networks.layers import ParallelDense
from idrl.networks.trunks import MinAtarCnn, Mlp, NatureCnn

A, OBS, B = 3, 5, 16  # actions, size of an observation, batch

# Compiling takes all the time here: let XLA try less hard.
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def normal(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


EXAMPLES = normal(3, B, OBS)  # what priors are measured on


# -- gradients ---------------------------------------------------------------------------------


def test_many_small_gradients_are_measured_whole():
    """Together they are as many weights as a large matrix, of which rows would stand for all."""
    grads = [jnp.zeros((240, 240)).at[:, 0].set(1.0) for _ in range(20)]
    assert float(norm(grads)) == pytest.approx((20 * 240) ** 0.5)


# -- layers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
def test_parallel_dense_equals_separate_dense_layers(shared):
    k, features, width = 4, 6, 3
    x = normal(0, B, features) if shared else normal(0, B, k, features)
    layer = ParallelDense(k, width, "torch")  # the scheme whose biases are not 0
    params = jit(layer.init)(jax.random.key(0), x)
    together = layer.apply(params, x)
    assert together.shape == (B, k, width)
    kernel, bias = params["params"]["kernel"], params["params"]["bias"]
    for head in range(k):
        own = {"kernel": kernel[:, head] if shared else kernel[head], "bias": bias[head]}
        alone = nn.Dense(width).apply({"params": own}, x if shared else x[:, head])
        np.testing.assert_allclose(together[:, head], alone, rtol=1e-5, atol=1e-5)


# A dense layer of flax's own with each scheme, and the standard deviation of its weights.
INIT = nn.initializers
ALONE = {
    "lecun_normal": (INIT.lecun_normal(), lambda f, h: f**-0.5),
    "he_normal": (INIT.he_normal(), lambda f, h: (2 / f) ** 0.5),
    "glorot_uniform": (INIT.glorot_uniform(), lambda f, h: (2 / (f + h)) ** 0.5),
    # U(±1/√F) has variance 1/3F
    "torch": (INIT.variance_scaling(1 / 3, "fan_in", "uniform"), lambda f, h: (3 * f) ** -0.5),
}


@pytest.mark.parametrize("scheme", ALONE)
@pytest.mark.parametrize("shared", [True, False])
def test_each_head_starts_with_the_spread_of_a_layer_of_its_own(shared, scheme):
    # The wide matrix must not count K·H outputs or K inputs.
    k, features, width = 8, 100, 50
    x = jnp.zeros((1, features) if shared else (1, k, features))
    params = jit(ParallelDense(k, width, scheme).init)(jax.random.key(0), x)["params"]
    kernels = np.moveaxis(params["kernel"], 1 if shared else 0, 0)
    assert kernels.shape == (k, features, width)
    kernel_init, spread = ALONE[scheme]
    expected = spread(features, width)
    # 5,000 numbers a head: their standard deviation is known to 1% (4 times that is allowed).
    for kernel in kernels:
        np.testing.assert_allclose(kernel.std(), expected, rtol=0.04)
    alone = jit(nn.Dense(width, kernel_init=kernel_init).init)(jax.random.key(1), x)["params"]
    np.testing.assert_allclose(np.std(alone["kernel"]), expected, rtol=0.04)
    bias = np.asarray(params["bias"])
    assert bias.shape == (k, width)
    if scheme == "torch":
        assert np.abs(bias).max() <= features**-0.5
        np.testing.assert_allclose(bias.std(), expected, rtol=0.2)
    else:
        np.testing.assert_array_equal(bias, 0)


def test_heads_start_different_from_each_other():
    params = jit(ParallelDense(3, 4, "torch").init)(jax.random.key(0), jnp.zeros((1, 5)))["params"]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert not np.allclose(params["kernel"][:, a], params["kernel"][:, b])
        assert not np.allclose(params["bias"][a], params["bias"][b])


@pytest.mark.parametrize("hidden", [(), (32,)])
def test_outputs_of_each_head_start_with_the_spread_of_a_network_alone(hidden):
    # The first layer of `Mlps` has shared inputs, the second an input per head.
    k, outputs, x = 6, 10, normal(2, 8, 40)

    class Alone(nn.Module):
        @nn.compact
        def __call__(self, x):
            for width in hidden:
                x = nn.relu(nn.Dense(width)(x))
            return nn.Dense(outputs)(x)

    def spread(module, keys, axes):
        out = jit(jax.vmap(lambda key: module.apply(module.init(key, x), x)))(keys)
        return np.asarray(out.std(axes))

    together = spread(
        Mlps(k, hidden, outputs, "lecun_normal"),
        jax.random.split(jax.random.key(0), 300),
        (0, 1, 3),
    )
    alone = spread(Alone(), jax.random.split(jax.random.key(1), 300), (0, 1, 2))
    assert together.shape == (k,)
    np.testing.assert_allclose(together, alone, rtol=0.06)


# -- trunks ------------------------------------------------------------------------------------


def features_of(trunk, *shape):
    obs = jax.ShapeDtypeStruct((2, *shape), jnp.uint8)
    module = trunk.module(shape)
    return jax.eval_shape(lambda x: module.init_with_output(jax.random.key(0), x)[0], obs).shape


@pytest.mark.parametrize(("padding", "features"), [("VALID", 3136), ("SAME", 7744)])
def test_nature_cnn_features(padding, features):
    # VALID: 84 → 20 → 9 → 7, 7·7·64. SAME: 84 → 21 → 11 → 11, 11·11·64.
    assert features_of(NatureCnn(padding=padding), 84, 84, 4) == (2, features)


@pytest.mark.parametrize("channels", [4, 10])
def test_minatar_cnn_features(channels):
    # 10 → 8 by a 3×3 filter without padding, 8·8·16.
    assert features_of(MinAtarCnn(), 10, 10, channels) == (2, 1024)


def test_mlp_takes_any_shape():
    assert features_of(Mlp(hidden=(7, 5)), 3, 4) == (2, 5)


def test_nature_cnn_scales_bytes_to_one():
    # A white image must look like ones: compare with the first convolution done by hand.
    module = NatureCnn().module((36, 36, 1))
    white = jnp.full((1, 36, 36, 1), 255, jnp.uint8)

    def first_convolution():
        params = module.init(jax.random.key(0), white)
        _, seen = module.apply(params, white, capture_intermediates=True)
        return params["params"]["Conv_0"]["kernel"], seen["intermediates"]["Conv_0"]["__call__"][0]

    kernel, seen = jit(first_convolution)()
    np.testing.assert_allclose(seen[0, 0, 0], np.sum(kernel, (0, 1, 2)), rtol=1e-4, atol=1e-5)


# -- where gradients go ------------------------------------------------------------------------


def make(heads, **spec):
    """An agent with a trunk of 8 units, a state whose target differs from its online network,
    and a batch."""
    spec = {"explore": Greedy(), "evaluate": Greedy(), **spec}
    agent = Agent(AgentSpec(trunk=Mlp(hidden=(8,)), heads=heads, **spec), (OBS,), A)
    shapes = jax.eval_shape(agent.init, jax.random.key(0), EXAMPLES)
    rng = np.random.default_rng(4)

    def weights():
        draw = lambda x: jnp.asarray(0.5 * rng.normal(size=x.shape), x.dtype)  # noqa: E731
        return jax.tree.map(draw, shapes.params)

    params = weights()
    state = shapes._replace(
        params=params, target=weights(), opt_state=agent.optimiser.init(params), prior={}
    )
    batch = Transition(
        normal(5, B, OBS), jnp.asarray(rng.integers(0, A, B)), normal(6, B),
        jnp.asarray(0.9 * (rng.random(B) > 0.2), jnp.float32), normal(7, B, OBS),
    )  # fmt: skip
    return agent, state, batch


def gradients(agent, state, batch):
    grads, _ = jit(jax.grad(agent.loss, has_aux=True))(state.params, state, batch)
    return grads


def plain_gradients(agent, state, batch, name):
    """Gradients of head `name`'s loss alone, summed over its heads, with nothing scaled."""
    head = agent.spec.heads[name]

    def out(params, obs):
        features = agent.trunk.apply(params["trunk"], obs)
        return agent.modules[name].apply(params["heads"][name], features)

    def loss(params):
        online_t, target_t = out(state.params, batch.s_t), out(state.target, batch.s_t)
        return head.loss(out(params, batch.s_tm1), online_t, target_t, batch).mean()

    return jit(jax.grad(loss))(state.params)


def check_same(a, b, **tolerance):
    tolerance = tolerance or {"rtol": 1e-5, "atol": 1e-7}
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, **tolerance), a, b)


def is_zero(tree):
    return all((np.asarray(x) == 0).all() for x in jax.tree.leaves(tree))


def scaled(tree, factor):
    return jax.tree.map(lambda x: factor * np.asarray(x), tree)


@pytest.mark.parametrize("k", [4, 3])
def test_an_ensemble_sends_one_kth_of_its_summed_gradient_to_the_trunk(k):
    agent, state, batch = make({"q": Ensemble(k=k, hidden=(6,))})
    grads, plain = gradients(agent, state, batch), plain_gradients(agent, state, batch, "q")
    assert not is_zero(plain["trunk"])
    # A quarter is exact in binary: nothing but the scale may differ then.
    tolerance = {"rtol": 0, "atol": 1e-8} if k == 4 else {}
    check_same(grads["trunk"], scaled(plain["trunk"], 1 / k), **tolerance)
    check_same(grads["heads"], plain["heads"])  # the heads' own weights learn at full speed


def test_a_return_head_sends_the_trunk_nothing_and_learns_itself():
    for head in (Categorical(atoms=5, hidden=(6,)), Quantile(quantiles=5, hidden=(6,))):
        agent, state, batch = make({"z": head})
        grads = gradients(agent, state, batch)
        assert is_zero(grads["trunk"])
        assert not is_zero(grads["heads"]["z"])
        check_same(grads["heads"], plain_gradients(agent, state, batch, "z")["heads"])


RETURN_HEADS = {
    "categorical": lambda share: Categorical(
        atoms=5, v_min=-3, v_max=3, hidden=(6,), trunk_gradient=share
    ),
    "quantile": lambda share: Quantile(quantiles=5, hidden=(6,), trunk_gradient=share),
}


@pytest.mark.parametrize("kind", RETURN_HEADS)
def test_trunk_gradient_of_both_either_or_neither_head(kind):
    k = 4
    by_q = by_z = None
    for q_share, z_share in ((1, 1), (1, 0), (0, 1), (0, 0)):
        q = Ensemble(k=k, hidden=(6,), trunk_gradient=q_share)
        agent, state, batch = make({"q": q, "z": RETURN_HEADS[kind](z_share)})
        by_q = by_q or plain_gradients(agent, state, batch, "q")
        by_z = by_z or plain_gradients(agent, state, batch, "z")
        grads = gradients(agent, state, batch)
        q_part, z_part = scaled(by_q["trunk"], q_share / k), scaled(by_z["trunk"], z_share)
        check_same(grads["trunk"], jax.tree.map(np.add, q_part, z_part))
        assert is_zero(grads["trunk"]) == (q_share == z_share == 0)
        # Shares are about the trunk only.
        check_same(grads["heads"]["q"], by_q["heads"]["q"])
        check_same(grads["heads"]["z"], by_z["heads"]["z"])


def test_the_return_head_of_the_paper_leaves_the_trunk_as_it_would_be_without_it():
    q = Ensemble(k=4, hidden=(6,))
    agent, state, batch = make({"q": q, "z": RETURN_HEADS["categorical"](0.0)})
    alone, _, _ = make({"q": q})

    def without_z(params):
        return {"trunk": params["trunk"], "heads": {"q": params["heads"]["q"]}}

    bare = state._replace(params=without_z(state.params), target=without_z(state.target))
    trunk, bare_trunk = gradients(agent, state, batch), gradients(alone, bare, batch)
    check_same(trunk["trunk"], bare_trunk["trunk"], rtol=1e-6, atol=0)


def test_loss_is_the_sum_over_heads_of_means_over_the_batch():
    heads = {"q": Ensemble(k=3, hidden=(6,)), "z": RETURN_HEADS["categorical"](0.0)}
    agent, state, batch = make(heads)
    loss = jit(agent.loss)
    total, (parts, _) = loss(state.params, state, batch)
    assert set(parts) == {"loss_q", "loss_z"}
    np.testing.assert_allclose(total, sum(parts.values()), rtol=1e-6)
    # Twice the same batch has the same mean.
    twice = jax.tree.map(lambda x: jnp.concatenate([x, x]), batch)
    np.testing.assert_allclose(loss(state.params, state, twice)[0], total, rtol=1e-5)


# -- bootstrap masks ---------------------------------------------------------------------------


def of_head(params, head):
    """The weights of one head of `Mlps`; the first layer is [F, K, H], later ones [K, F, H]."""
    layers = params["heads"]["q"]["params"]
    first, second = layers["ParallelDense_0"], layers["ParallelDense_1"]
    return [first["kernel"][:, head], first["bias"][head],
            second["kernel"][head], second["bias"][head]]  # fmt: skip


def test_a_head_that_sees_nothing_learns_nothing():
    agent, state, batch = make({"q": Ensemble(k=3, hidden=(6,), mask_prob=0.5)})
    mask = jnp.ones((B, 3), bool).at[:, 1].set(False)
    grads = gradients(agent, state, batch._replace(mask=mask))
    full = gradients(agent, state, batch)
    assert is_zero(of_head(grads, 1))
    for head in (0, 2):  # the others learn as if nothing had happened
        check_same(of_head(grads, head), of_head(full, head))
        assert not is_zero(of_head(grads, head))


def test_a_head_learns_from_its_transitions_only():
    agent, state, batch = make({"q": Ensemble(k=2, hidden=(6,), mask_prob=0.5)})
    seen = jnp.arange(B) < B // 2
    mask = jnp.stack([seen, jnp.ones(B, bool)], -1)
    grads = gradients(agent, state, batch._replace(mask=mask))
    half = jax.tree.map(lambda x: x[: B // 2], batch)
    # The mean is still over the whole batch, so half of it weighs half.
    expected = scaled(gradients(agent, state, half), 0.5)
    check_same(of_head(grads, 0), of_head(expected, 0))


# -- randomized priors -------------------------------------------------------------------------


@functools.cache
def with_prior(scale):
    agent, state, batch = make({"q": Ensemble(k=4, hidden=(6,), prior_scale=scale)})
    prior = jit(agent.init)(jax.random.key(0), EXAMPLES).prior
    return agent, state._replace(prior=prior), batch, jit(agent.outputs)


def prior_values(outputs, params, prior, obs):
    """What the priors add to each head: `[B, K, A]`."""
    return np.asarray(outputs(params, prior, obs)["q"] - outputs(params, {}, obs)["q"])


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_priors_spread_over_heads_by_prior_scale(scale):
    _, state, _, outputs = with_prior(scale)
    added = prior_values(outputs, state.params, state.prior, EXAMPLES)
    # Over heads, averaged over observations and actions.
    np.testing.assert_allclose(np.sqrt(added.var(1).mean()), scale, rtol=1e-4)


def test_priors_are_functions_of_the_observation():
    _, state, _, outputs = with_prior(1.0)
    added = prior_values(outputs, state.params, state.prior, normal(8, B, OBS))
    assert (added.std(0) > 1e-3).all()


def test_priors_have_a_trunk_of_their_own():
    agent, _, _, _ = with_prior(1.0)
    state = jit(agent.init)(jax.random.key(0), EXAMPLES)
    own, learning = (tree["trunk"]["params"] for tree in (state.prior["q"], state.params))
    assert not np.allclose(own["Dense_0"]["kernel"], learning["Dense_0"]["kernel"])


def test_priors_are_the_same_for_online_and_target():
    agent, state, batch, outputs = with_prior(1.0)
    online = prior_values(outputs, state.params, state.prior, batch.s_t)
    target = prior_values(outputs, state.target, state.prior, batch.s_t)
    np.testing.assert_allclose(online, target, atol=1e-5)
    # The loss with priors is the loss of those sums: prediction, selector and target have them.
    out_tm1 = outputs(state.params, state.prior, batch.s_tm1)["q"]
    online_t = outputs(state.params, {}, batch.s_t)["q"] + online
    target_t = outputs(state.target, {}, batch.s_t)["q"] + online
    expected = agent.spec.heads["q"].loss(out_tm1, online_t, target_t, batch).mean()
    loss, _ = jit(agent.loss)(state.params, state, batch)
    np.testing.assert_allclose(loss, expected, rtol=1e-4)


def test_priors_get_no_gradient_and_never_change():
    agent, state, batch, _ = with_prior(1.0)

    @jit
    def by_prior(prior):
        loss = lambda p: agent.loss(state.params, state._replace(prior=p), batch)[0]  # noqa: E731
        return jax.grad(loss)(prior)

    assert is_zero(by_prior(state.prior))
    learn, learned = jit(agent.learn), state
    for _ in range(3):
        learned, _, _ = learn(learned, batch)
    check_same(refresh_target(learned).prior, state.prior, rtol=0, atol=0)
    assert not is_zero(jax.tree.map(np.subtract, learned.params, state.params))


def test_no_prior_scale_means_no_prior():
    agent, _, _ = make({"q": Ensemble(k=2, hidden=(6,), prior_scale=0.0)})
    assert jax.eval_shape(agent.init, jax.random.key(0), EXAMPLES).prior == {}


@pytest.mark.parametrize("name", ["dqn", "bootstrapped-dqn"])
def test_first_values_on_deep_sea_are_of_the_size_of_its_returns(name):
    # The deep_sea preset gives every ensemble a prior, also one of a single head, which has no
    # spread over heads to measure it by.
    agent = Agent(resolve(name, "deep_sea/4").spec, (4, 4), 2)
    obs = jnp.eye(16).reshape(16, 4, 4)
    state = jit(agent.init)(jax.random.key(0), obs)
    q_heads = jit(agent.beliefs)(state.params, state.prior, obs).q_heads
    assert np.abs(q_heads).max() < 10


# -- optimisers --------------------------------------------------------------------------------


def one_update(optimiser):
    agent, state, batch = make({"q": Ensemble(k=2, hidden=(6,))}, optimiser=optimiser)
    after, metrics, _ = jit(agent.learn)(state, batch)
    grads = gradients(agent, state, batch)
    step = jax.tree.map(np.subtract, after.params, state.params)
    np.testing.assert_allclose(metrics["grad_norm"], optax.tree.norm(grads), rtol=1e-4)
    check_same(after.target, state.target, rtol=0, atol=0)  # the target only changes by a copy
    return step, jax.tree.map(np.asarray, grads)


def test_adam_by_its_formula():
    # The first step, with both moments corrected for their start: −lr·g / (|g| + ε).
    lr, eps = 0.01, 1e-3
    step, grads = one_update(Adam(lr=lr, eps=eps))
    check_same(
        step, jax.tree.map(lambda g: -lr * g / (np.abs(g) + eps), grads), rtol=1e-3, atol=1e-6
    )


@pytest.mark.parametrize("centered", [True, False])
def test_rmsprop_by_its_formula(centered):
    # The first step of the centred form of Mnih et al., with (1−d)g² less the square of (1−d)g:
    # −lr·g / √((1−d)g² − (1−d)²g² + ε), ε inside the root.
    lr, decay, eps = 0.01, 0.95, 0.01
    step, grads = one_update(RmsProp(lr=lr, decay=decay, eps=eps, centered=centered))

    def update(g):
        square, mean = (1 - decay) * g**2, (1 - decay) * g * centered
        return -lr * g / np.sqrt(square - mean**2 + eps)

    check_same(step, jax.tree.map(update, grads), rtol=1e-3, atol=1e-6)


def test_rmsprop_on_averages_is_that_of_mnih_et_al_on_sums():
    """Theirs: ε = 0.01 inside the root, over gradients summed over a batch of 32."""
    gradients = np.random.default_rng(0).normal(size=(20, 32, 5)) * 10.0 ** np.arange(-4.0, 1)
    optimiser = RmsProp().make()
    weights = np.zeros(5, np.float32)
    state, mean, square = optimiser.init(weights), np.zeros(5), np.zeros(5)
    for each in gradients:
        step, state = optimiser.update(each.mean(0).astype(np.float32), state, weights)
        total = each.sum(0)
        mean, square = 0.95 * mean + 0.05 * total, 0.95 * square + 0.05 * total**2
        theirs = -2.5e-4 * total / np.sqrt(square - mean**2 + 0.01)
        np.testing.assert_allclose(step, theirs, rtol=1e-3)

"""Critics, actors and rules for continuous actions, against values worked out by hand: with no
hidden layers a critic is linear, Q(s, a) = w·s + v·a + b, and an actor is tanh of a line."""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from idrl import ids
from idrl.actions import Box
from idrl.agents import declared, make_agent
from idrl.agents.actor_rules import Acting, GaussianNoise, OuNoise
from idrl.agents.agent import refresh_target
from idrl.agents.choosing import Ids
from idrl.errors import IdrlError
from idrl.networks.heads import Actor, GaussianActor, Transition
from idrl.networks.heads.actors import Candidates, GaussianParams

jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})

BOX = Box((-2.0,), (2.0,))  # half its width is 2, so 1 in the unit box is 2 outside
GAMMA = 0.9


def linear(name, box=BOX, obs=1, **actor):
    """Agent `name` with linear critics and actor."""
    spec = declared(name)
    heads = {n: replace(head, hidden=()) for n, head in spec.heads.items()}
    heads["actor"] = replace(heads["actor"], **actor)
    return make_agent(replace(spec, heads=heads), (obs,), box)


def set_q(params, rows):
    """Critic k is rows[k] = (w, v, b)."""
    rows = np.array(rows, np.float32)
    layer = {"kernel": rows[:, :2].T[:, :, None], "bias": rows[:, 2:]}
    heads = {**params["heads"], "q": {"params": {"ParallelDense_0": layer}}}
    return {**params, "heads": heads}


def set_actor(params, slope, bias):
    layer = {"kernel": jnp.array([[slope]]), "bias": jnp.array([bias])}
    own = {**params["heads"]["actor"]["params"], "Dense_0": layer}
    return {**params, "heads": {**params["heads"], "actor": {"params": own}}}


def batch(action, s=0.5, reward=1.0, discount=GAMMA, s_t=0.25):
    def column(*x):
        return jnp.array([x], jnp.float32)

    return Transition(
        column(s), column(action), column(reward)[0], column(discount)[0], column(s_t)
    )


@pytest.fixture(scope="module")
def td3():
    agent = linear("td3", smoothing=0.0)
    state = jit(agent.init)(jax.random.key(0), jnp.ones((4, 1)))
    # Q₁ = s + 2a, Q₂ = 3a; their targets Q₁' = s + a, Q₂' = 2s − a + 1; the actor tanh(s), its
    # target tanh(2s).
    params = set_actor(set_q(state.params, [(1, 2, 0), (0, 3, 0)]), 1.0, 0.0)
    target = set_actor(set_q(state.target, [(1, 1, 0), (2, -1, 1)]), 2.0, 0.0)
    return agent, state._replace(params=params, target=target)


def test_a_critic_sees_the_unit_box_and_targets_take_the_smaller(td3):
    agent, state = td3
    critics, _ = agent._apart(state.params)
    # action 1.0 of [-2, 2] is 0.5: Q₁ = 0.5 + 1 = 1.5, Q₂ = 1.5
    ahead = np.tanh(0.5)  # the target's actor at s' = 0.25
    least = min(0.25 + ahead, 0.5 - ahead + 1)
    target = 1.0 + GAMMA * least
    total, (metrics, td_priority) = jit(agent.critic_loss)(
        critics, state, batch(1.0), jax.random.key(0)
    )
    expected = 2 * (target - 1.5) ** 2
    np.testing.assert_allclose(metrics["loss_q"], expected, rtol=1e-5)
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    assert td_priority is None


def test_targets_of_their_own(td3):
    _, state = td3
    agent = linear("td3", smoothing=0.0, targets="own")
    critics, _ = agent._apart(state.params)
    ahead = np.tanh(0.5)
    errors = [1 + GAMMA * (0.25 + ahead) - 1.5, 1 + GAMMA * (0.5 - ahead + 1) - 1.5]
    loss, _ = jit(agent.critic_loss)(critics, state, batch(1.0), jax.random.key(0))
    np.testing.assert_allclose(loss, sum(e**2 for e in errors), rtol=1e-5)


def test_targets_at_what_each_critic_likes_best(td3):
    """Q₁' is largest at the right end of the box, Q₂' at the left one; so many candidates have
    both. With none beside the actor's it is as above."""
    _, state = td3
    ends = [1 + GAMMA * (0.25 + 1) - 1.5, 1 + GAMMA * (0.5 + 1 + 1) - 1.5]
    there = np.tanh(0.5)
    actors = [1 + GAMMA * (0.25 + there) - 1.5, 1 + GAMMA * (0.5 - there + 1) - 1.5]
    for ahead, errors in ((200, ends), (0, actors)):
        agent = linear("td3", smoothing=0.0, targets="best", ahead=ahead)
        critics, _ = agent._apart(state.params)
        loss, _ = jit(agent.critic_loss)(critics, state, batch(1.0), jax.random.key(0))
        np.testing.assert_allclose(loss, sum(e**2 for e in errors), rtol=1e-5)


@pytest.mark.parametrize(("climbs", "slope"), [("first", 2.0), ("mean", 2.5), ("least", None)])
def test_an_actor_climbs_critics(td3, climbs, slope):
    _, state = td3
    agent = linear("td3", climbs=climbs)
    _, weights = agent._apart(state.params)
    s = 0.5
    action = np.tanh(s)
    # of Q₁ = s + 2a and Q₂ = 3a the second is smaller while a < s, which tanh(s) is
    slope = 3.0 if slope is None else slope
    value = {"first": s + 2 * action, "mean": s / 2 + 2.5 * action, "least": 3 * action}[climbs]
    loss, grads = jit(jax.value_and_grad(agent.actor_loss))(
        weights, state.params, state.prior, jnp.array([[s]]), jax.random.key(0)
    )
    np.testing.assert_allclose(loss, -value, rtol=1e-5)
    got = grads["params"]["Dense_0"]
    np.testing.assert_allclose(got["bias"], [-slope * (1 - action**2)], rtol=1e-5)
    np.testing.assert_allclose(got["kernel"], [[-slope * (1 - action**2) * s]], rtol=1e-5)


def test_restraint_prices_what_goes_into_tanh(td3):
    _, state = td3
    agent = linear("td3", restraint=0.1)
    _, weights = agent._apart(state.params)
    given = (weights, state.params, state.prior, jnp.array([[0.5]]), jax.random.key(0))
    # climbs Q₁ = s + 2a at a = tanh(s)
    assert float(agent.actor_loss(*given)) == pytest.approx(
        0.1 * 0.5**2 - (0.5 + 2 * np.tanh(0.5)), rel=1e-5
    )


def test_delayed_actor_and_moving_target(td3):
    agent, state = td3
    learn = jit(agent.learn)
    first, told, _ = learn(state, batch(1.0), jax.random.key(1), 0)
    second, silent, _ = learn(first, batch(1.0), jax.random.key(2), 1)

    def actor(state):
        return float(state.params["heads"]["actor"]["params"]["Dense_0"]["bias"][0])

    assert actor(first) == pytest.approx(1e-3, rel=1e-3)  # Adam's first step is its lr
    assert actor(second) == actor(first)
    # told twice and nought, so that the mean over updates is the loss of an update
    assert told["loss_actor"] != 0
    assert silent["loss_actor"] == 0
    q = state.params["heads"]["q"]["params"]["ParallelDense_0"]["kernel"]
    before = state.target["heads"]["q"]["params"]["ParallelDense_0"]["kernel"]
    after = refresh_target(state, 0.005).target["heads"]["q"]["params"]["ParallelDense_0"]["kernel"]
    np.testing.assert_allclose(after, 0.995 * before + 0.005 * q, rtol=1e-5)


def test_smoothing_is_cut():
    actor = Actor(smoothing=10.0, smoothing_clip=0.5)
    drawn = np.asarray(actor.smoothed(jnp.zeros((1000, 1)), jax.random.key(0)))
    assert np.abs(drawn).max() == 0.5
    assert (np.abs(drawn) == 0.5).mean() > 0.9
    edge = actor.smoothed(jnp.full((100, 1), 5.0), jax.random.key(0))
    assert float(edge.max()) <= 1.0


def test_the_density_of_a_squashed_gaussian():
    mean, log_std = jnp.array([[0.3, -1.0]]), jnp.array([[-0.5, 0.2]])
    action, log_prob = GaussianActor().draw(
        GaussianParams(mean, log_std, jnp.float32(0)), jax.random.key(3)
    )
    before = np.arctanh(np.asarray(action, np.float64))
    density = norm.logpdf(before, mean, np.exp(log_std)) - np.log(1 - np.asarray(action) ** 2)
    np.testing.assert_allclose(log_prob, density.sum(-1), rtol=1e-4)


def test_sac_pays_for_entropy_and_tunes_its_price():
    agent = linear("sac")
    state = jit(agent.init)(jax.random.key(0), jnp.ones((4, 1)))
    params = set_q(state.params, [(0, 0, 5.0), (0, 0, 7.0)])  # whatever is done is worth 5
    own = {**params["heads"]["actor"]["params"], "log_alpha": jnp.float32(np.log(0.5))}
    params["heads"]["actor"] = {"params": own}
    state = state._replace(params=params, target=params)
    _, weights = agent._apart(params)
    key, s = jax.random.key(4), jnp.array([[0.5]])
    draw_key = jax.random.split(key)[1]
    _, log_prob = agent.actor.draw(agent._policy(params, s), draw_key)
    log_prob = float(log_prob[0])
    loss, grads = jit(jax.value_and_grad(agent.actor_loss))(weights, params, {}, s, key)
    # the target entropy is −1 for one number: α falls where there is more of it
    expected = 0.5 * log_prob - 5.0 - np.log(0.5) * (log_prob - 1.0)
    np.testing.assert_allclose(loss, expected, rtol=1e-4)
    np.testing.assert_allclose(grads["params"]["log_alpha"], -(log_prob - 1.0), rtol=1e-4)
    _, bonus = agent._ahead(params, state, s, key)
    _, ahead = agent.actor.draw(agent._policy(params, s), key)
    np.testing.assert_allclose(bonus, -0.5 * ahead, rtol=1e-5)


def test_candidates():
    actor, before = jnp.array([[0.5, -0.5]]), jnp.array([[0.1, 0.2]])
    found = Candidates(perturbed=400, scales=(0.1, 0.2), uniform=100)
    actions = np.asarray(found.propose(jax.random.key(0), actor, before))[0]
    assert actions.shape == (502, 2)
    np.testing.assert_allclose(actions[:2], [[0.5, -0.5], [0.1, 0.2]])
    near = actions[2:402] - np.array([0.5, -0.5])
    np.testing.assert_allclose([near[::2].std(), near[1::2].std()], [0.1, 0.2], rtol=0.1)
    assert np.abs(actions).max() <= 1
    assert np.abs(actions[402:].mean(0)).max() < 0.2
    more = found.around_best(jax.random.key(1), actions[None], jnp.asarray(actions[None, :, 0]))
    assert float(more[..., 0].mean()) < -0.3  # the smallest "ratio" is at the left


def test_ids_decides_among_candidates_as_everywhere():
    agent = linear("ddpg-ids")
    state = jit(agent.init)(jax.random.key(0), jnp.ones((4, 1)))
    obs, first = jnp.array([[0.5], [-1.0]]), jnp.ones(2, bool)
    rule = Ids(lam=0.5)
    decision, memory, beliefs, _ = jit(agent.consider, static_argnums=0)(
        rule, state.params, state.prior, obs, first, agent.blank_memory(2), jax.random.key(7), 0
    )
    count = 2 + agent.actor.candidates.perturbed + agent.actor.candidates.uniform
    assert beliefs.q_heads.shape == (2, 10, count)
    assert decision.candidates.shape == (2, count, 1)
    again = ids.decide(beliefs.q_heads, beliefs.return_variance, lam=0.5)
    for name in ("mu", "sigma", "rho2", "regret", "info_gain", "ratio", "probs"):
        np.testing.assert_allclose(getattr(decision, name), getattr(again, name), rtol=1e-5)
    # one candidate's values are those of the critics at that action
    pick = int(decision.action[1])
    unit = BOX.to_unit(decision.candidates[1, pick])[None]
    out = agent.critics(state.params, state.prior, obs[1:], unit)
    np.testing.assert_allclose(decision.mu[1, pick], out["q"].mean(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(decision.taken[1], decision.candidates[1, pick])
    np.testing.assert_allclose(memory[1, 1:], unit[0], atol=1e-6)  # the next step's candidate


def test_refining_finds_no_worse_a_ratio():
    plain, refined = (
        linear("ddpg-ids", candidates=Candidates(perturbed=8, uniform=6, refine=r)) for r in (0, 3)
    )
    state = jit(plain.init)(jax.random.key(0), jnp.ones((4, 1)))
    obs, first, memory = jnp.ones((4, 1)), jnp.ones(4, bool), plain.blank_memory(4)
    given = (Ids(noise="constant"), state.params, {}, obs, first, memory, jax.random.key(1), 0)
    few, many = (jit(a.choose, static_argnums=0)(*given)[0] for a in (plain, refined))
    assert many.candidates.shape[1] == few.candidates.shape[1] + 3 * 8
    # the maximum of the regret is over more actions, so compare as found among all of them
    before = np.take_along_axis(np.asarray(many.ratio), np.asarray(few.action)[:, None], 1)[:, 0]
    assert (np.asarray(many.ratio).min(1) <= before + 1e-6).all()


def test_noise():
    out = jnp.zeros((500, 1))
    acting = Acting(Actor(), out, jnp.full((500, 1), 0.4), jnp.zeros(500, bool), jax.random.key(0))
    action, kept = GaussianNoise(scale=0.1).act(acting)
    assert float(action.std()) == pytest.approx(0.1, rel=0.1)
    np.testing.assert_array_equal(kept, acting.kept)
    action, kept = OuNoise(scale=0.2, theta=0.15).act(acting)
    assert float(kept.mean()) == pytest.approx(0.85 * 0.4, abs=0.03)
    assert float(kept.std()) == pytest.approx(0.2, rel=0.1)
    np.testing.assert_allclose(action, jnp.clip(kept, -1, 1))
    _, anew = OuNoise().act(acting._replace(first=jnp.ones(500, bool)))
    assert float(anew.mean()) == pytest.approx(0, abs=0.03)


def test_priors_differ_by_action_and_are_not_trained():
    agent = linear("ddpg-ucb")
    heads = {**agent.spec.heads, "q": replace(agent.spec.heads["q"], prior_scale=2.0)}
    agent = make_agent(replace(agent.spec, heads=heads), (1,), BOX)
    examples = jnp.linspace(-1, 1, 64)[:, None]
    state = jit(agent.init)(jax.random.key(0), examples)
    nothing = jax.tree.map(jnp.zeros_like, state.params)
    unit = jax.random.uniform(jax.random.key(1), (64, 1), minval=-1, maxval=1)
    said = agent.critics(nothing, state.prior, examples, unit)["q"]
    assert float(said.var(1).mean() ** 0.5) == pytest.approx(2.0, rel=0.2)
    assert float(np.abs(said[:, :, 0].std(0)).min()) > 0
    after, _, _ = jit(agent.learn)(state, batch(1.0), jax.random.key(0), 0)
    jax.tree.map(np.testing.assert_array_equal, after.prior, state.prior)


@pytest.mark.parametrize(
    ("name", "actions", "fits"),
    [("dqn", BOX, "td3"), ("c51-ids", BOX, "ddpg-ids"), ("bootstrapped-ucb", BOX, "ddpg-ucb"),
     ("ddpg-ids", 4, "c51-ids"), ("sac", 4, "dqn"), ("ddpg-thompson", 2, "bootstrapped-dqn")],
)  # fmt: skip
def test_an_agent_that_does_not_fit_names_one_that_does(name, actions, fits):
    with pytest.raises(IdrlError, match=f"task has .*actions.*; try '{fits}'"):
        make_agent(declared(name), (84, 84, 4), actions, "task")


@pytest.mark.parametrize(
    ("low", "high"), [((), ()), ((0.0,), (0.0,)), ((-np.inf,), (1.0,)), ((1.0,), (-1.0,))]
)
def test_boxes_that_cannot_be(low, high):
    with pytest.raises(IdrlError, match="finite low below a finite high"):
        Box(low, high)


def test_units_of_a_box():
    box = Box((-2.0, 0.0), (2.0, 10.0))
    np.testing.assert_allclose(box.from_unit(np.array([1.0, -1.0])), [2.0, 0.0])
    np.testing.assert_allclose(box.to_unit(np.array([0.0, 7.5])), [0.0, 0.5])


def test_targets_that_compare_critics_need_an_ensemble():
    spec = declared("ddpg")
    actor = replace(spec.heads["actor"], targets="best")
    critic = declared("ddpg-ids").heads["z"]
    with pytest.raises(IdrlError, match="targets=best compares the critics of an ensemble"):
        replace(spec, heads={"q": critic, "actor": actor}).check()

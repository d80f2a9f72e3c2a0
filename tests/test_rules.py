"""The other rules: what they choose, how they break ties, and that a wrong number never wins."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idrl import ids, rules

NAN, INF = np.nan, np.inf

# Compiling takes most of the time here: let XLA try less hard.
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@functools.cache
def compiled(rule, lam):
    options = {} if lam is None else {"lam": lam}
    return jit(lambda q, args, mask: rule(q, *args, mask=mask, **options))


def chosen(rule, heads, *args, mask=None, lam=None):
    """The `Decision` for `heads`; one program per rule and shape."""
    mask = None if mask is None else jnp.asarray(mask)
    return compiled(rule, lam)(jnp.asarray(heads, jnp.float32), args, mask)


# -- what they choose --------------------------------------------------------------------------


def test_greedy_takes_the_largest_mean():
    # Means: 2, 3, 1; a2 has the largest single value, which does not count.
    d = chosen(rules.greedy, [[2.0, 2.0, 9.0], [2.0, 4.0, -7.0]])
    assert d.action == 1
    np.testing.assert_array_equal(d.probs, [0, 1, 0])


def test_greedy_gives_ties_to_the_lowest_index():
    assert chosen(rules.greedy, [[1.0, 3.0, 3.0], [1.0, 3.0, 3.0]]).action == 1


def test_ucb_adds_lam_standard_deviations():
    # a0: μ 1, σ 0. a1: 0, 1 → μ 0.5, σ 0.5. Equal at λ = 1: below it a0, above it a1.
    heads = [[1.0, 0.0], [1.0, 1.0]]
    assert chosen(rules.ucb, heads, lam=0.9).action == 0
    assert chosen(rules.ucb, heads, lam=1.1).action == 1
    assert chosen(rules.ucb, heads).action == 0  # λ = 0.1


def test_thompson_is_greedy_by_its_head():
    heads = np.array([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0], [0.0, 5.0, 1.0]])
    each = np.broadcast_to(heads, (3, 3, 3))
    d = chosen(rules.thompson, each, jnp.array([0, 1, 2]))
    np.testing.assert_array_equal(d.action, [0, 2, 1])
    np.testing.assert_array_equal(d.probs, np.eye(3)[[0, 2, 1]])


def test_vote_counts_heads_and_not_values():
    # Two heads for a1 by little, one for a0 by a lot: the mean would say a0.
    heads = [[0.0, 1.0], [0.0, 1.0], [9.0, 0.0]]
    assert chosen(rules.vote, heads).action == 1
    assert chosen(rules.greedy, heads).action == 0


def test_vote_gives_ties_to_the_larger_mean_then_the_lower_index():
    # Two votes each for a0 and a2; means 2.5, 1, 3.
    heads = [[5.0, 1.0, 0.0], [5.0, 1.0, 0.0], [0.0, 1.0, 6.0], [0.0, 1.0, 6.0]]
    assert chosen(rules.vote, heads).action == 2
    # A vote each, equal means.
    assert chosen(rules.vote, [[1.0, 0.0], [0.0, 1.0]]).action == 0
    # A large mean breaks ties but never outweighs a vote: 2 votes for a1, 1 for a2, 0 for a0.
    heads = [[8.0, 9.0, 0.0], [8.0, 9.0, 0.0], [8.0, -99.0, 9.0]]
    assert chosen(rules.vote, heads).action == 1


def test_vote_ties_of_many_actions():
    # With 18 actions the tie-breaking ranks must still weigh less than one vote.
    heads = np.tile(np.arange(18.0), (3, 1))
    heads[0, 3] = heads[1, 3] = 100  # two votes for a3, one for a17
    heads[2, 3] = -1000  # and the worst mean
    assert chosen(rules.vote, heads).action == 3


def test_rules_describe_their_choice_in_the_terms_of_ids():
    q = np.random.default_rng(0).normal(size=(5, 4, 3)).astype(np.float32)
    variance = np.ones((5, 3), np.float32)
    said = ids.decide(q, variance)
    for rule in (rules.greedy, rules.vote):
        d = jit(functools.partial(rule, return_variance=variance))(q)
        for name in ("mu", "sigma", "regret", "rho2", "info_gain", "ratio"):
            np.testing.assert_allclose(getattr(d, name), getattr(said, name), rtol=1e-4, atol=1e-5)


def test_rules_take_any_leading_shape():
    q = jnp.asarray(np.random.default_rng(1).normal(size=(2, 3, 4, 5)), jnp.float32)
    mu = np.asarray(q).mean(-2)
    np.testing.assert_array_equal(chosen(rules.greedy, q).action, mu.argmax(-1))
    head = jnp.array([[0, 1, 2], [3, 0, 1]])
    followed = np.take_along_axis(np.asarray(q), np.asarray(head)[..., None, None], 2)[..., 0, :]
    np.testing.assert_array_equal(chosen(rules.thompson, q, head).action, followed.argmax(-1))
    assert chosen(rules.vote, q).action.shape == (2, 3)
    assert chosen(rules.epsilon_greedy, q, jax.random.key(0), 0.5).action.shape == (2, 3)


# -- ε-greedy ----------------------------------------------------------------------------------


def frequencies(decision):
    actions = np.asarray(decision.action)
    return np.bincount(actions, minlength=decision.probs.shape[-1]) / actions.size


def test_epsilon_greedy_has_the_frequencies_of_its_probs():
    n = 20_000
    q = np.broadcast_to([[0.0, 1.0, 0.5]], (n, 1, 3))
    d = chosen(rules.epsilon_greedy, q, jax.random.key(0), 0.3)
    # ε/3 = 0.1 for each, and 0.7 more for the greedy one
    np.testing.assert_allclose(d.probs[0], [0.1, 0.8, 0.1], rtol=1e-6)
    np.testing.assert_allclose(frequencies(d), [0.1, 0.8, 0.1], atol=4 * 0.4 / np.sqrt(n))


def test_epsilon_greedy_with_a_mask_draws_among_the_allowed():
    n = 20_000
    q = np.broadcast_to([[0.0, 9.0, 0.5, 1.0]], (n, 1, 4))
    mask = np.broadcast_to([True, False, True, True], (n, 4))
    d = chosen(rules.epsilon_greedy, q, jax.random.key(0), 0.3, mask=mask)
    # ε/3 = 0.1 for each allowed action, and 0.7 more for the best of them
    np.testing.assert_allclose(d.probs[0], [0.1, 0, 0.1, 0.8], rtol=1e-6)
    np.testing.assert_allclose(frequencies(d), [0.1, 0, 0.1, 0.8], atol=4 * 0.4 / np.sqrt(n))
    assert 1 not in np.asarray(d.action)


def test_epsilon_greedy_at_its_ends():
    n = 5000
    q = np.broadcast_to([[0.0, 1.0]], (n, 1, 2))
    assert (np.asarray(chosen(rules.epsilon_greedy, q, jax.random.key(0), 0.0).action) == 1).all()
    d = chosen(rules.epsilon_greedy, q, jax.random.key(0), 1.0)
    np.testing.assert_allclose(frequencies(d), [0.5, 0.5], atol=4 * 0.5 / np.sqrt(n))


# -- wrong numbers and masks -------------------------------------------------------------------

# Each rule with what it needs besides the heads; Thompson follows head 0.
RULES = {
    "greedy": (rules.greedy,),
    "ucb": (rules.ucb,),
    "thompson": (rules.thompson, jnp.int32(0)),
    "vote": (rules.vote,),
    "epsilon_greedy": (rules.epsilon_greedy, jax.random.key(0), 0.0),
}
every_rule = pytest.mark.parametrize("name", RULES)


@every_rule
@pytest.mark.parametrize("wrong", [NAN, INF])
def test_a_wrong_number_in_every_head_never_wins(name, wrong):
    rule, *args = RULES[name]
    for bad in range(3):
        heads = np.tile([1.0, 2.0, 3.0], (3, 1))
        heads[:, bad] = wrong
        d = chosen(rule, heads, *args)
        assert d.action == (1 if bad == 2 else 2)
        assert d.probs[bad] == 0


@every_rule
@pytest.mark.parametrize("wrong", [NAN, INF])
def test_a_wrong_number_in_one_head_never_wins(name, wrong):
    # All heads that still make sense prefer a0, but its mean is no number any more.
    rule, *args = RULES[name]
    heads = np.array([[wrong, 1.0, 2.0], [9.0, 1.0, 2.0], [9.0, 1.0, 2.0]])
    assert chosen(rule, heads, *args).action == 2


@every_rule
def test_a_masked_action_never_wins(name):
    rule, *args = RULES[name]
    heads = np.tile([9.0, 1.0, 2.0], (3, 1))
    d = chosen(rule, heads, *args, mask=[False, True, True])
    assert d.action == 2
    np.testing.assert_array_equal(d.probs, [0, 0, 1])


@every_rule
def test_a_masked_action_does_not_win_by_the_others_being_wrong(name):
    # The only allowed action is no number: there is no choice, and the others stay forbidden.
    rule, *args = RULES[name]
    heads = np.tile([1.0, NAN, 2.0], (3, 1))
    d = chosen(rule, heads, *args, mask=[False, True, False])
    assert d.action not in (0, 2)
    assert d.probs[0] == d.probs[2] == 0


@every_rule
def test_where_no_action_is_left_rules_answer_minus_one_as_ids_does(name):
    rule, *args = RULES[name]
    d = chosen(rule, np.full((3, 3), NAN), *args)
    assert d.action == -1
    np.testing.assert_array_equal(d.probs, [0, 0, 0])


def test_thompson_whose_head_is_broken_obeys_the_mask():
    # Head 0 says nothing any more; whatever is done then, it is something allowed.
    heads = np.array([[NAN, NAN, NAN], [1.0, 3.0, 2.0], [1.0, 3.0, 2.0]])
    d = chosen(rules.thompson, heads, jnp.int32(0), mask=[False, True, True])
    assert d.action != 0
    assert d.probs[0] == 0


def test_heads_vote_among_the_allowed_actions():
    # Two heads would like a0, which is forbidden; their next best is a2. The third likes a1.
    heads = [[9.0, 1.0, 2.0], [9.0, 1.0, 2.0], [0.0, 5.0, 1.0]]
    assert chosen(rules.vote, heads, mask=[False, True, True]).action == 2


def test_drawn_actions_have_the_probabilities_of_their_logits():
    q_heads = jnp.zeros((4000, 1, 3))
    logits, mask = jnp.log(jnp.array([0.2, 0.6, 0.2])), jnp.array([True, True, False])
    said = rules.drawn(q_heads, jnp.broadcast_to(logits, (4000, 3)), jax.random.key(0), mask=mask)
    np.testing.assert_allclose(said.probs[0], [0.25, 0.75, 0], atol=1e-6)
    shares = np.bincount(said.action, minlength=3) / 4000
    np.testing.assert_allclose(shares, [0.25, 0.75, 0], atol=0.03)
    none = rules.drawn(q_heads[:1], logits[None], jax.random.key(0), mask=jnp.zeros((1, 3), bool))
    assert none.action.tolist() == [-1]
    assert not none.probs.any()

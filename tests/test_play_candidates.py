"""`idrl play` for continuous actions: which candidates are shown, and how they are drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idrl.agents import make_agent
from idrl.config import resolve
from idrl.envs import make_env
from idrl.ids import Comparison
from idrl.inspect.play.candidates import MOST, arranged, in_words
from idrl.inspect.play.episode import Episode, Returns
from idrl.inspect.play.recorder import DecisionRecorder
from idrl.inspect.play.video import write_video
from idrl.inspect.play.views import View
from idrl.runs.policy import Policy

TINY = {
    "heads": {
        "q": {"hidden": [4], "k": 2},
        "z": {"hidden": [4], "quantiles": 3},
        "actor": {"hidden": [4]},
    }
}


def compared(candidates, ratio, action):
    ratio = np.array(ratio, float)
    return Comparison(action, *[ratio.copy() for _ in range(7)], np.array(candidates, float))


def test_one_number_is_shown_along_itself():
    decision = compared([[0.5], [-1.0], [1.0], [0.0]], [3, 2, 1, 4], action=2)
    shown, taken, actor = arranged(decision, np.array([1.0]))
    assert shown.candidates[:, 0].tolist() == [-1, 0, 0.5, 1]
    assert shown.ratio.tolist() == [2, 4, 3, 1]
    assert (shown.action, taken, actor) == (3, 3, 2)


def test_of_several_numbers_the_few_of_the_smallest_ratio_are_shown():
    rng = np.random.default_rng(0)
    candidates, ratio = rng.uniform(-1, 1, (40, 3)), rng.permutation(40)
    candidates[ratio == 1] = candidates[ratio == 0]  # the same twice
    decision = compared(candidates, ratio, action=int(ratio.argmin()))
    shown, taken, actor = arranged(decision, candidates[ratio == 39][0])
    # The actor's (0), the one taken, and the best, of which none is there twice.
    wanted = sorted({0, 2, 3, 4, 5, 6, 39, int(ratio[0]), 7})
    assert len(shown.ratio) == MOST
    assert set(shown.ratio.tolist()) <= set(wanted)
    assert shown.ratio.tolist() == sorted(shown.ratio.tolist())
    assert (shown.action, shown.ratio[taken], shown.ratio[actor]) == (0, 39, ratio[0])


def test_in_a_corner_the_rule_and_the_actor_agree():
    decision = compared([[1, 1], [0, 0], [1, 1]], [2, 3, 1], action=2)
    shown, taken, actor = arranged(decision, np.array([1.0, 1.0]))
    assert shown.action == taken == actor
    assert np.array_equal(shown.candidates[actor], [1, 1])


def test_an_action_in_words():
    assert in_words(np.array([0.5, -1.0])) == "+0.50 -1.00"
    assert in_words(np.arange(6.0), 2) == "+0.00 +1.00 …"


@pytest.fixture(scope="module")
def policy():
    jax.config.update("jax_disable_most_optimizations", True)  # compiling takes all the time here
    follow = {"evaluate": {"kind": "follow"}}
    env = make_env("noisy_push/4")
    config = resolve("ddpg-ids", "noisy_push/4", changes=[TINY, follow])
    agent = make_agent(config.spec, env.obs_shape, env.action_box)
    state = jax.jit(agent.init)(jax.random.key(0), jnp.zeros((1, *env.obs_shape)))
    yield Policy(config, agent, state.params, state.prior, 0)
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.mark.slow
@pytest.mark.parametrize("acting", ["explore", "evaluate"])
def test_a_mind_with_an_actor(policy, acting):
    mind = DecisionRecorder(policy.agent, acting)
    mind.begin(policy)
    for place in (0, 1):
        thought = mind.think(np.eye(4)[place], None)
        shown = thought.decision.candidates
        assert shown.shape == (MOST, 2)
        assert np.array_equal(shown[thought.action], thought.done)
        assert thought.returns[0].shape == thought.returns[1].shape == (2, 3)
        if acting == "evaluate":
            assert thought.action == thought.greedy  # it follows the actor
        else:
            assert thought.action == thought.decision.action == thought.decision.ratio.argmin()


def made_up(dims):
    rng = np.random.default_rng(dims)
    actions = 20 if dims == 1 else MOST
    mu, sigma, rho2, gain = rng.uniform(0.1, 1, (4, 2, actions)).astype(np.float32)
    return Episode(
        title="made up", seed=0, rule="ids", acting="explore", lam=0.1, ended=True,
        action=np.array([0, 1]), greedy=np.array([0, 2]), explored=np.array([0, 1]),
        reward=np.ones(2, np.float32), mu=mu, sigma=sigma, rho2=rho2, regret=mu, info_gain=gain,
        ratio=mu**2 / gain, returns=Returns(-1.0, 1.0, np.full((2, 2, 4), 0.25, np.float32)),
        view=View("numbers", mu, "Numbers"),
        candidates=np.sort(rng.uniform(-2, 2, (2, actions, dims)), 1).astype(np.float32),
    )  # fmt: skip


@pytest.mark.parametrize("dims", [1, 6])
def test_candidates_are_drawn(dims, tmp_path):
    from PIL import Image

    episode = made_up(dims)
    assert episode.disagreements.tolist() == [1]
    write_video(episode, tmp_path / "e.gif")
    image = Image.open(tmp_path / "e.gif")
    assert image.n_frames == 2
    image.seek(1)
    seen = {tuple(c) for c in np.asarray(image.convert("RGB")).reshape(-1, 3)}
    for colour in ((213, 94, 0), (0, 158, 115)):  # taken, and the actor's
        assert min(np.abs(np.subtract(colour, other)).max() for other in seen) < 8

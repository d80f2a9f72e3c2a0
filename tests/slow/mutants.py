"""Mistakes that were made here or elsewhere, and the tests that must not let them pass."""

from typing import NamedTuple


class Mutant(NamedTuple):
    file: str  # below src/idrl
    right: str
    wrong: str
    caught_by: str  # below tests


MUTANTS = {
    "a sign in the loss": Mutant(
        "losses.py",
        "target = r_t + discount_t * q_t[selector_t.argmax()]",
        "target = r_t - discount_t * q_t[selector_t.argmax()]",
        "test_losses.py",
    ),
    "the heads' gradients into the trunk are summed, not averaged": Mutant(
        "networks/heads/ensemble.py",
        "return self.trunk_gradient / self.k",
        "return self.trunk_gradient",
        "test_networks.py",
    ),
    "no floor under ρ²": Mutant(
        "ids/noise.py",
        "return xp.maximum(variance / scale, xp.asarray(rho2_floor, dtype=like.dtype))",
        "return variance / scale",
        "test_ids.py",
    ),
    "truncation taken for termination": Mutant(
        "training/rollout.py",
        "happened = Happened(reward, terminated, ended,",
        "happened = Happened(reward, ended, ended,",
        "test_training.py::test_ends_of_episodes",
    ),
    "truncation taken for termination on the host": Mutant(
        "training/hosted/fleet.py",
        "terminated=seen.terminated if lost is None",
        "terminated=seen.terminated | seen.truncated if lost is None",
        "test_gymnasium.py",
    ),
    "a target that is never copied inside a block": Mutant(
        "training/compiled.py",
        "if inner == c.target_every:",
        "if inner > c.target_every:",
        "test_training.py::test_the_target_is_copied_on_its_count_whether_inside_or_between_blocks",
    ),
    "a target that is never copied between blocks": Mutant(
        "training/compiled.py",
        "if c.block < c.target_every and due(",
        "if c.block < 0 and due(",
        "test_training.py::test_a_long_target_period_is_kept_by_copies_between_blocks",
    ),
    "RMSProp's ε for summed gradients": Mutant(
        "agents/optimisers.py",
        "eps: float = 0.01 / 32**2",
        "eps: float = 0.01",
        "test_compositions.py::test_optimisers_and_targets_are_those_of_the_originals",
    ),
    "RMSProp's ε outside the root": Mutant(
        "agents/optimisers.py", "eps_in_sqrt=True", "eps_in_sqrt=False", "test_networks.py"
    ),
    "a mask ignored in the target": Mutant(
        "replay/ring.py",
        "allowed_t = allowed(replay, end % rows, env, actions)",
        "allowed_t = allowed(replay, end % rows, env, actions) | True",
        "test_masks.py",
    ),
    "a mask ignored in acting": Mutant(
        "training/rollout.py",
        "return None if mask is None else jax.vmap(mask, (None, 0))(task, worlds.state)",
        "return None if mask is None else jax.vmap(mask, (None, 0))(task, worlds.state) | True",
        "test_mask_runs.py",
    ),
    "stacks a frame too old": Mutant(
        "replay/ring.py",
        "Address((time[:, None] - jnp.minimum(back, length)) % rows",
        "Address((time[:, None] - jnp.minimum(back + 1, length)) % rows",
        "test_stacks.py",
    ),
    "a seed used twice": Mutant(
        "training/layout.py",
        "np.arange(seed, seed + self.seeds, dtype=np.uint32)",
        "seed + np.arange(self.seeds, dtype=np.uint32) // 2",
        "test_training.py::test_seeds_differ_in_everything",
    ),
    "an evaluation that explores": Mutant(
        "training/evaluation.py", "acting.rule,", "agent.spec.explore,", "test_evaluating.py"
    ),
    "an evaluation on the host that explores": Mutant(
        "training/hosted/evaluation.py",
        "acting.rule,",
        "self.agent.spec.explore,",
        "test_evaluating.py",
    ),
    "a score of what an agent explores by, with schedules at their beginning": Mutant(
        "training/evaluation.py",
        "ActingRule(spec.explore, True, steps)",
        "ActingRule(spec.explore, True, 0)",
        "test_evaluating.py",
    ),
    "an environment that stops one step before it cannot matter": Mutant(
        "training/hosted/window.py",
        'np.searchsorted(ends, self.steps, "right")',
        "np.searchsorted(ends, self.steps)",
        "test_window.py",
    ),
}

"""Settings that families with continuous actions share, each number with its reason.

All agents get the same networks, schedule and replay, so that what differs is how they explore.
"""

from __future__ import annotations

from idrl.envs.presets import PresetContext, Settings


def as_published() -> Settings:
    """MuJoCo and whatever is not known: the declarations' own networks. Fujimoto et al. start
    after 25,000 random steps in the published code for HalfCheetah and Ant, 1,000 elsewhere; here
    10,000 for all, since one preset serves unknown tasks."""
    return {
        "learning": {"learning_starts_steps": 10_000},
        "training": _recorded(1_000_000, 5_000),
        "evaluation": {"every_steps": 10_000, "steps": 10_000, "envs": 10},
    }


def small_box(task: PresetContext, steps: int, episode: int, often: int) -> Settings:
    """Few numbers seen and done: networks of 64 units twice are enough. Of an ensemble five, not
    ten, since each critic is a network of its own here and time goes with their number; quantiles
    are compared each with each."""
    heads: Settings = {name: {"hidden": [64, 64]} for name in task.heads()}
    for name in task.heads("ensemble"):
        if task.agent["heads"][name]["k"] > 5:
            heads[name]["k"] = 5
    for name in task.heads("quantile"):
        heads[name]["quantiles"] = 21
    return {
        "heads": heads,
        "optimiser": {"lr": 1e-3},  # SAC's own 3e-4 needs twice the steps on Pendulum
        "learning": {
            "batch_size": 64,
            "learning_starts_steps": 1_000,
            "replay_capacity": steps,  # nothing is forgotten
        },
        "training": _recorded(steps, often),
        "evaluation": {"every_steps": often, "steps": 10 * (episode + 1), "envs": 10},
    }


def among_candidates(task: PresetContext, changes: Settings, prior_scale: float) -> Settings:
    """For agents that choose among candidates, where rewards are far: chosen on `noisy_push/10`,
    seeds 0 to 9."""
    if not task.explores("ids", "ucb", "thompson"):
        return changes
    for name in task.heads("ensemble"):
        changes["heads"][name]["prior_scale"] = prior_scale
    for name in task.heads("actor"):
        # Else no critic's hopes reach further than the actor goes.
        changes["heads"][name]["targets"] = "best"
    # Actors are slower to learn where the goal is than the critics they climb.
    changes["evaluate"] = {"kind": "greedy"}
    if task.explores("ids"):
        # With λ = 0.1 it rarely leaves what it thinks best. `relative` won on the seeds of the
        # choice (8 of 10 against 6); on fresh ones it makes no difference (17 of 40, 13 of 30).
        changes["explore"] = {"lam": 1.0, "relative": True}
    return changes


def _recorded(steps: int, often: int) -> Settings:
    return {"steps": steps, "log_every_steps": often, "distributions_every_steps": often}

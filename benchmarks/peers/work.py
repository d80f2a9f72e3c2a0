"""What every library is asked to do. Imports nothing: every worker has an environment of its own.

One update of `batch` transitions per 4 environment steps everywhere, Adam, a hard copy to the
target; what a library calls these is its worker's business.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Task:
    """A row of the tables: the work of one seed."""

    name: str
    replay: int
    starts: int  # random steps before the first update
    loop_steps: int  # measured stretch of a library that steps from Python
    compiled_steps: int  # measured stretch of one that compiles its loop: it is done in no time
    envs: int = 4
    batch: int = 32
    update_every: int = 4  # environment steps
    target_every: int = 1_000
    lr: float = 1e-3
    gamma: float = 0.99
    eps_end: float = 0.05
    eps_steps: int = 10_000

    def stretch(self, job: dict) -> int:
        """Steps of a measured stretch that is compiled: the more there is to do, the fewer."""
        if "steps" in job:
            return job["steps"]
        heavy = job["seeds"] > 1 or job["algo"] != "dqn"
        return (
            self.compiled_steps // 4 if heavy and self.name == "cartpole" else self.compiled_steps
        )


CARTPOLE = Task("cartpole", replay=50_000, starts=1_000, loop_steps=2_000, compiled_steps=40_000)
BREAKOUT = Task("breakout", replay=50_000, starts=1_000, loop_steps=1_200, compiled_steps=6_000)
SCREENS = Task("screens", replay=2_000, starts=400, loop_steps=160, compiled_steps=160)
TASKS = {
    "cartpole": CARTPOLE,
    # rejax draws from the whole replay at every update: here there is little of it
    "cartpole-2000": replace(CARTPOLE, replay=2_000),
    "breakout": BREAKOUT,
    "screens": SCREENS,
}

# Settings of the distributional agents, the same for all: C51's and QR-DQN's 51 numbers an action,
# IQN's 16 drawn fractions (32 to act).
ATOMS, FRACTIONS, ACT_FRACTIONS = 51, 16, 32
V_MIN, V_MAX = 0.0, 100.0

# Learning: hyperparameters that all three libraries can be given, and how it is looked at.
LEARNING = {
    "cartpole": replace(CARTPOLE, batch=64, target_every=200),
    "breakout": replace(BREAKOUT, lr=5e-4, eps_steps=20_000),
}
STEPS = {"cartpole": 50_000, "breakout": 40_000}
EVAL_EVERY = {"cartpole": 5_000, "breakout": 10_000}
EVAL_EPISODES = 20
FIRST_SEED, SEEDS = 100, 10

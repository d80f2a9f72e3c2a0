"""Scores of agents from elsewhere, in a folder that reports and comparisons read as a run's."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any

from idrl.errors import IdrlError
from idrl.runs.evaluating import world_of
from idrl.runs.run import Run, open_run
from idrl.storage.folder import RunFolder, free_name
from idrl.system import words
from idrl.system.devices import prepare
from idrl.training.evaluation import Score
from idrl.training.predictors import is_predictor, score_window


def numbered(steps: int, every: int, total: int) -> int:
    """Which evaluation of a run it is after `steps` steps; see `Cadence.evaluation`. A block may
    end a little beyond a count, and the run between two."""
    return steps // every if steps < total else -(-steps // every)


class Baseline:
    """A baseline of your own in reports: scores of anything with a `predict`.

    They follow the protocol of the run `like`: its task, and as many steps per evaluation. The
    baseline appears beside that run in `idrl report` and `idrl compare` once each of its `seeds`
    has been evaluated at the end of training::

        baseline = idrl.Baseline("sb3-dqn", like="runs/dqn-ids-cartpole-001")
        for steps in baseline.schedule:
            model.learn(steps - model.num_timesteps, reset_num_timesteps=False)
            baseline.evaluate(model, steps=steps)

    A score is the highest evaluation of a seed, so a baseline that is evaluated once has fewer
    chances than the run: the schedule is the run's own.

    Args:
        name: what reports call it.
        like: the run, or its folder, whose protocol it is scored by.
        seeds: how many seeds it has, from the run's first on.
        out: its folder; by default a new one in `runs`.
        env: the environment object, where the run was trained on one.
    """

    def __init__(
        self, name: str, like: str | PathLike[str] | Run, *, seeds: int = 1,
        out: str | Path | None = None, env: Any = None,
    ):  # fmt: skip
        run = like if isinstance(like, Run) else open_run(fspath(like))
        if not isinstance(name, str) or not name.strip() or name != words.name(name):
            raise IdrlError(f"a baseline cannot be called {name!r}; a name is a word, as 'my-dqn'.")
        if type(seeds) is not int or seeds < 1:
            raise IdrlError(f"seeds is {seeds!r}; it must be a whole number, 1 or more.")
        about = RunFolder.open(run.path).read_about()
        prepare()
        self.name, self.config = name, run.config
        shapes = RunFolder.open(run.path).read_shapes()
        self.env = world_of(run.config, env, about.get("env_object"), *shapes)
        self.seeds = range(run.config.seed, run.config.seed + seeds)
        evaluation = run.config.evaluation
        config = {
            "agent": name, "env": run.config.env, "seed": run.config.seed, "seeds": seeds,
            "training": {"steps": run.config.training.steps},
            "evaluation": {
                "every_steps": evaluation.every_steps, "steps": evaluation.steps,
                "envs": evaluation.envs,
            },
        }  # fmt: skip
        kept = ("obs_shape", "num_actions", "action_box", "unit", "unit_per_step", "env_object")
        told = {key: about[key] for key in kept if key in about} | {"baseline": True}
        path = Path(out) if out else free_name(Path("runs"), f"{name}-{run.config.env}")
        self._folder = RunFolder.create(path, config, told)
        last = run.config.training.steps
        found = {min(int(row["steps"]), last) for row in run.evaluations}  # a block may go beyond
        self._run_steps = sorted(found | {last}) if found else []
        self._best = dict.fromkeys(self.seeds, float("-inf"))

    @property
    def path(self) -> Path:
        """Its folder."""
        return self._folder.path

    @property
    def every_steps(self) -> int:
        """Training steps between two evaluations of the run."""
        return self.config.evaluation.every_steps

    @property
    def schedule(self) -> list[int]:
        """The steps after which the run was evaluated, and the baseline is. For a run that has not
        been evaluated yet, about when it will be."""
        if self._run_steps:
            return self._run_steps
        steps = self.config.training.steps
        return sorted({*range(self.every_steps, steps, self.every_steps), steps})

    def evaluate(self, model: Any, *, seed: int | None = None, steps: int | None = None) -> Score:
        """Score a model by the protocol of the run, and record the score.

        Args:
            model: an object with a `predict`.
            seed: which seed of the baseline; by default the first.
            steps: how many steps it has been trained for; by default all.
        """
        seed = self.seeds[0] if seed is None else seed
        steps = self.config.training.steps if steps is None else steps
        if not is_predictor(model):
            raise IdrlError(
                f"{type(model).__name__} has no predict(observation, state, episode_start, "
                "deterministic)."
            )
        if seed not in self.seeds:
            raise IdrlError(
                f"the baseline has seeds {self.seeds[0]} to {self.seeds[-1]}, not {seed}."
            )
        if type(steps) is not int or not 0 <= steps <= self.config.training.steps:
            raise IdrlError(f"steps is {steps!r}; the run has {self.config.training.steps:,}.")
        how = self.config.evaluation
        number = numbered(steps, how.every_steps, self.config.training.steps)
        score = score_window(model, self.env, seed, number, how.steps, how.envs)
        mean = float(score.return_mean)
        self._best[seed] = max(self._best[seed], mean if mean == mean else float("-inf"))
        row = {
            "seed": seed, "steps": steps, "episodes": int(score.episodes), "return_mean": mean,
            "best": self._best[seed], "return_std": float(score.return_std),
            "length_mean": float(score.length_mean), "truncated": int(score.truncated),
        }  # fmt: skip
        self._folder.tables["evaluations"].append([row])
        return score

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Baseline({words.title(self.name, self.config.env)}, {str(self.path)!r})"

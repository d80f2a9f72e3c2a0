"""Plays one episode and keeps what the page and the video show of it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from idrl.envs import Env, HostEnv, View, make_env
from idrl.errors import IdrlError
from idrl.ids import Decided
from idrl.inspect.play.candidates import in_words
from idrl.inspect.play.recorder import DecisionRecorder, Thought
from idrl.inspect.play.views import view
from idrl.inspect.walking import Sight, walk
from idrl.runs import api
from idrl.storage.folder import RunFolder
from idrl.system import words
from idrl.training.seeding import seed_key

_BINS = 40
MAX_STEPS = 27_000  # the paper's cap on an episode


class Returns(NamedTuple):
    """The distributions of the return as histograms: `probs` `[T, A, B]` on equal bins. Of an
    agent with an actor, A are the action taken and the actor's."""

    low: float
    high: float
    probs: np.ndarray


class Episode(NamedTuple):
    """T decisions. Arrays are `[T, A]` but for `action`, `greedy`, `explored` and `reward`, `[T]`.

    Continuous actions are those of `candidates` that are shown, and greedy is the actor's.
    """

    title: str
    seed: int
    rule: str  # that it explores with
    acting: str  # the rule that acted: "explore" or "evaluate"
    lam: float  # of μ ± λσ
    ended: bool  # by itself, not by the limit
    action: np.ndarray
    greedy: np.ndarray
    explored: np.ndarray  # what the exploring rule would do: `action`, if it acted
    reward: np.ndarray  # of each action
    mu: np.ndarray
    sigma: np.ndarray
    rho2: np.ndarray
    regret: np.ndarray
    info_gain: np.ndarray
    ratio: np.ndarray
    returns: Returns | None
    view: View
    candidates: np.ndarray | None = None  # [T, A, D]

    @property
    def other(self) -> str:
        """Whom the exploring rule is compared with."""
        return "greedy" if self.candidates is None else "the actor"

    def named(self, t: int) -> str:
        """The action taken."""
        number = self.action[t]
        return str(number) if self.candidates is None else in_words(self.candidates[t, number])

    @property
    def disagreements(self) -> np.ndarray:
        """The steps where the exploring rule does not take the greedy action."""
        return np.flatnonzero(self.explored != self.greedy)


def play(
    run_path: str | Path,
    *,
    seed: int | None = None,
    weights: str = "best",
    acting: str = "explore",
    max_steps: int = MAX_STEPS,
) -> Episode:
    run = api.open_run(run_path)
    if RunFolder.open(run.path).read_about().get("env_object"):
        raise IdrlError(
            f"{str(run.path)!r} was trained on an environment object, which cannot be made again "
            "from its name."
        )
    policy = api.load(run, seed, weights)
    mind = DecisionRecorder(policy, acting)
    steps = walk(_drawing(run.config.env), seed_key(policy.seed))
    sight, sights, rewards = next(steps), [], []
    thoughts: list[Thought] = []
    while not sight.over and len(thoughts) < max_steps:
        thoughts.append(mind.think(sight.obs, sight.allowed))
        # Of what is drawn the observation is not kept too: an episode may be long.
        sights.append(sight if sight.picture is None else sight._replace(obs=None))
        sight = steps.send(thoughts[-1].done)
        rewards.append(sight.reward)
    steps.close()
    rule, title = run.config.explore, words.title(run.config.agent, run.config.env)
    decisions = [thought.decision for thought in thoughts]
    names = ("mu", "sigma", "rho2", "regret", "info_gain", "ratio")
    return Episode(
        title=f"{title}, seed {policy.seed}, {weights} weights",
        seed=policy.seed,
        rule=rule.kind,
        acting=acting,
        lam=float(getattr(rule, "lam", 0.1)),
        ended=sight.over,
        action=np.array([thought.action for thought in thoughts]),
        greedy=np.array([thought.greedy for thought in thoughts]),
        explored=np.array([int(decision.action) for decision in decisions]),
        reward=np.array(rewards, np.float32),
        **{n: np.stack([getattr(d, n) for d in decisions]).astype(np.float32) for n in names},
        returns=_histograms(thoughts),
        view=_view(run.config.env, sights),
        candidates=_candidates(decisions),
    )


def _candidates(decisions: list[Decided]) -> np.ndarray | None:
    sets = [decision.candidates for decision in decisions if decision.candidates is not None]
    return np.stack(sets) if sets else None


def _drawing(name: str) -> Env | HostEnv:
    """The environment, made to draw itself where it can."""
    env = make_env(name)
    if not isinstance(env, HostEnv):
        return env
    try:
        drawn = env.drawn()
        next(walk(drawn, seed_key(0)))  # its drawing may need packages that are not there
    except Exception:  # whatever a game's own drawing raises: then it is shown as it is seen
        return env
    return drawn


def _view(env: str, sights: list[Sight]) -> View:
    return view(env, [sight.obs for sight in sights], [sight.picture for sight in sights])


def _histograms(thoughts: list[Thought]) -> Returns | None:
    """All steps on the same bins, over the range where any of them has a thousandth of its mass."""
    told = [thought.returns for thought in thoughts if thought.returns is not None]
    if not told:
        return None
    heavy = [values[weights > 1e-3] for values, weights in told]
    low = min(float(values.min(initial=np.inf)) for values in heavy)
    high = max(float(values.max(initial=-np.inf)) for values in heavy)
    if not low < high:
        low, high = low - 0.5, low + 0.5
    atoms, bins = told[0][0][0], _BINS
    if np.array_equal(atoms, told[-1][0][-1]):  # fixed: each in the middle of its own bin
        bins = int(((atoms >= low) & (atoms <= high)).sum())
    half = (high - low) / max(bins - 1, 1) / 2
    low, high = low - half, high + half
    probs = np.zeros((len(told), len(told[0][0]), bins), np.float32)
    for t, (values, weights) in enumerate(told):
        where = ((values - low) / (high - low) * bins).astype(int).clip(0, bins - 1)
        for a, (place, weight) in enumerate(zip(where, weights, strict=True)):
            probs[t, a] = np.bincount(place, weight, bins)
    return Returns(low, high, probs)

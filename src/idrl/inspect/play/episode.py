"""Plays one episode and keeps what the page and the video show of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from idrl.agents import AgentSpec
from idrl.agents.telling import told
from idrl.envs import Env, HostEnv, View
from idrl.errors import IdrlError
from idrl.inspect.play.candidates import in_words
from idrl.inspect.play.recorder import DecisionRecorder, Thought
from idrl.inspect.play.returns import Returns, ReturnsRecorder
from idrl.inspect.play.rows import Rows
from idrl.inspect.play.sigma import SigmaMap, read_sigma
from idrl.inspect.play.views import drawn, small, view
from idrl.inspect.walking import walk
from idrl.report.decisions import COLUMNS
from idrl.runs.evaluating import world_of
from idrl.runs.loading import check_acting, load, open_agent
from idrl.runs.policy import Policy
from idrl.runs.run import Run
from idrl.storage.files import check_writable
from idrl.system import words
from idrl.system.arguments import whole
from idrl.training.seeding import seed_key

MAX_STEPS = 27_000  # the paper's cap on an episode
FPS = 5
MAX_FPS = 100  # a GIF counts in hundredths of a second


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
    sigma_map: SigmaMap | None = None  # that the run recorded
    shown: tuple[str, ...] = COLUMNS  # of these arrays, what means something for the agent

    def save_page(self, path: str | Path) -> Path:
        """One HTML file with everything in it."""
        from idrl.inspect.play.page import write_page

        target = _target(path)
        write_page(self, target)
        return target

    def save_video(self, path: str | Path, fps: int = FPS) -> Path:
        """An .mp4 or a .gif of so many steps a second."""
        from idrl.inspect.play.video import check_target, write_video

        target = _target(path)
        check_target(target)
        write_video(self, target, whole("fps", fps, most=MAX_FPS))
        return target

    def __repr__(self) -> str:
        end = "" if self.ended else ", cut off"
        steps = f"{len(self.action):,} steps{end}"
        return f"Episode({self.title}, return {self.reward.sum():.4g} in {steps})"

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
    run: Run | Policy | str | Path,
    env: Any = None,
    *,
    seed: int | None = None,
    weights: str = "best",
    at: int | None = None,
    acting: str = "explore",
    episode: int = 0,
    max_steps: int = MAX_STEPS,
    page: str | Path | None = None,
    video: str | Path | None = None,
    fps: int = FPS,
) -> Episode:
    """Play one episode and record what the agent believes and decides at every step.

    Args:
        run: a run, its folder, a model file, or a loaded agent.
        env: what it plays; by default what it was trained on.
        seed: which seed of the run; by default the best.
        weights: `"best"` or `"latest"`.
        at: a step whose weights the run kept, as for `idrl.load`.
        acting: `"explore"` acts by the rule it explores with, `"evaluate"` by the one it is
            evaluated with.
        episode: which episode; the same number is the same one.
        max_steps: where to cut a long episode.
        page: an HTML file to write, as `Episode.save_page` does.
        video: an .mp4 or .gif to write, as `Episode.save_video` does.
        fps: steps per second of the video.
    """
    check_acting(acting)
    episode, max_steps = whole("episode", episode, 0), whole("max_steps", max_steps)
    fps = whole("fps", fps, most=MAX_FPS)
    if page is not None:
        _target(page)
    if video is not None:
        from idrl.inspect.play.video import check_target

        check_target(_target(video))
    played = _played(run, env, seed, weights, at, acting, episode, max_steps)
    if page is not None:
        played.save_page(page)
    if video is not None:
        played.save_video(video, fps)
    return played


def _target(path: str | Path) -> Path:
    """Refuse what cannot be written before anything is played."""
    target = Path(path)
    check_writable(target)
    return target


def _played(
    source: Any, env: Any, seed: int | None, weights: str, at: int | None, acting: str,
    number: int, max_steps: int,
) -> Episode:  # fmt: skip
    source = source if isinstance(source, Policy) else open_agent(source)
    if isinstance(source, Policy):
        other = None if weights == "best" else repr(weights)
        for name, value in (("seed", seed), ("at", at), ("weights", other)):
            if value is not None:
                raise IdrlError(f"a loaded agent has its seed and weights: omit {name}={value}.")
        policy, held, recorded = source, "", None
    else:
        policy = load(source, seed, weights, at=at)
        held = f", {weights} weights" if at is None else f", after {at:,} steps"
        recorded = read_sigma(source.path, policy.seed)
    config, agent = policy.config, policy.agent
    world = world_of(config, env, policy.env_object, agent.obs_shape, agent.actions)
    name = config.env if env is None else world.name
    recorder = DecisionRecorder(policy.agent, acting)
    episode = recorded_episode(recorder, policy, _drawn(world), name, max_steps, number=number)
    held += f", episode {number}" if number else ""
    return episode._replace(title=f"{episode.title}{held}", sigma_map=recorded)


def _named(spec: AgentSpec) -> str:
    """The exploring rule. One in noisy weights is compared with greedy in their means."""
    noisy = any(head.is_noisy for head in spec.heads.values())
    return f"noisy {spec.explore.kind}" if noisy else spec.explore.kind


def recorded_episode(
    recorder: DecisionRecorder, policy: Policy, world: Env | HostEnv, name: str, max_steps: int,
    advance: Callable | None = None, number: int = 0,
) -> Episode:  # fmt: skip
    """One episode of these weights in `world`, which goes by `name`; `advance` and `number` as in
    `walk`."""
    recorder.begin(policy)
    config = policy.config
    steps = walk(world, seed_key(policy.seed), advance, number)
    sight, kept, seen = next(steps), _Kept(), Rows()
    pictured = sight.picture is not None
    while not sight.over and len(seen) < max_steps:
        thought = recorder.think(sight.obs, sight.allowed)
        seen.append(sight.obs if sight.picture is None else small(np.asarray(sight.picture)))
        sight = steps.send(thought.done)
        kept.append(thought, sight.reward)
    steps.close()
    rule, title = config.explore, words.title(config.agent, name)
    numbers = np.asarray(kept.numbers)  # [T, columns, A]
    return Episode(
        title=f"{title}, seed {policy.seed}",
        seed=policy.seed,
        rule=_named(config.spec),
        acting=recorder.acting,
        lam=float(getattr(rule, "lam", 0.1)),
        ended=sight.over,
        action=np.array(kept.action),
        greedy=np.array(kept.greedy),
        explored=np.array(kept.explored),
        reward=np.array(kept.reward, np.float32),
        **{name: numbers[:, i] for i, name in enumerate(COLUMNS)},
        returns=kept.returns.finish(),
        view=drawn(name, seen) if pictured else view(name, seen),
        candidates=np.asarray(kept.candidates) if len(kept.candidates) else None,
        sigma_map=None,
        shown=told(config.spec),
    )


class _Kept:
    """What was thought so far: numbers, not the many small arrays that they come in."""

    def __init__(self) -> None:
        self.action: list[int] = []
        self.greedy: list[int] = []
        self.explored: list[int] = []
        self.reward: list[float] = []
        self.numbers, self.candidates, self.returns = Rows(), Rows(), ReturnsRecorder()

    def append(self, thought: Thought, reward: float) -> None:
        decision = thought.decision
        self.action.append(thought.action)
        self.greedy.append(thought.greedy)
        self.explored.append(int(decision.action))
        self.reward.append(reward)
        self.numbers.append(np.stack([getattr(decision, n) for n in COLUMNS]).astype(np.float32))
        if decision.candidates is not None:
            self.candidates.append(decision.candidates)
        if thought.returns is not None:
            self.returns.append(*thought.returns)


def _drawn(env: Env | HostEnv) -> Env | HostEnv:
    """The environment, made to draw itself where it can."""
    if not isinstance(env, HostEnv):
        return env
    try:
        drawn = env.drawn()
        next(walk(drawn, seed_key(0)))  # its drawing may need packages that are not there
    except Exception:  # whatever a game's own drawing raises: then it is shown as it is seen
        return env
    return drawn

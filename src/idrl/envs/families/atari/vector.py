"""N Atari games side by side, stepped by ale-py's threads.

A game's course depends on its own seed and actions alone: not on the number of threads, nor on the
other games beside it. `tests/test_atari_env.py` compares it with a plain reference frame by frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from idrl.envs.families.atari.env import MAX_NOOPS, SKIP, emulator
from idrl.envs.host import Seen, Vector
from idrl.envs.patience import Patience
from idrl.errors import IdrlError

if TYPE_CHECKING:
    from idrl.envs.families.atari.env import AtariEnv

HEIGHT, WIDTH = 210, 160  # of the screen


class AtariVector(Vector):
    """Whoever ends is reset by ale-py in the step after; a seed resets on top of that."""

    def __init__(self, env: AtariEnv, count: int, timeout_s: float):
        self.env = env
        self.games = [_games(env, count)]
        if env.colour:  # the same games once more: with the same seeds and actions they do the same
            screen = {"grayscale": False, "img_height": HEIGHT, "img_width": WIDTH}
            self.games.append(_games(env, count, **screen))
        # Only steps are watched: seeded resets take 90 ms each, however many there are.
        self.patience = Patience(env.name, timeout_s)
        self.sent: tuple[bool, np.ndarray] | None = None  # whether stepped, and seeds
        self.over = np.zeros(count, bool)  # the episode has ended: the next step resets
        self.lives = np.zeros(count, np.int32)
        self.screens: list[np.ndarray] = []  # grey, and coloured if drawn

    def send(self, action: np.ndarray, seed: np.ndarray) -> None:
        action, seed = np.asarray(action, np.int64), np.asarray(seed, np.int64)
        stepping = bool((action >= 0).any())
        # ale-py waits for ever for what it was not given in order.
        if self.sent is not None:
            if stepping:
                raise RuntimeError("send must be followed by recv")
            self.recv()  # whoever begins anew need not know what was under way
        if not self.screens and (stepping or (seed < 0).all()):
            raise RuntimeError("the first step is a reset with seeds")
        check_actions(self.env, action, seed)
        if stepping:
            for games in self.games:
                games.send(np.maximum(action, 0))
        self.sent = stepping, seed

    def recv(self) -> Seen:
        if self.sent is None:
            raise RuntimeError("recv must follow send")
        (stepped, seed), self.sent = self.sent, None
        count = len(seed)
        reward = np.zeros(count, np.float32)
        terminated, truncated, reset, lost = (np.zeros(count, bool) for _ in range(4))
        if stepped:
            parts = [self.patience.call(games.recv, lambda: "a step") for games in self.games]
            self.screens = [part[0][:, 0] for part in parts]
            _, gained, terminated, truncated, info = parts[0]
            reward, reset = gained.astype(np.float32), self.over
            truncated &= ~terminated
            lost = (info["lives"] < self.lives) & ~reset & ~terminated
            self.lives, self.over = info["lives"], terminated | truncated
        anew = seed >= 0
        if anew.any():
            self._reset(anew, seed)
            reward = np.where(anew, np.float32(0), reward)
            terminated, truncated, lost, self.over = (
                flags & ~anew for flags in (terminated, truncated, lost, self.over)
            )
            reset = reset | anew
        life_lost = lost if self.env.life_loss else None
        return Seen(self.screens[0], reward, terminated, truncated, reset, life_lost=life_lost)

    def _reset(self, anew: np.ndarray, seed: np.ndarray) -> None:
        # The first time all must be; who has no seed yet is not looked at before it gets one.
        mask = anew if self.screens else np.ones_like(anew)
        seeds = np.maximum(seed[mask], 0)
        parts = [games.reset(seed=seeds, options={"reset_mask": mask}) for games in self.games]
        fresh = [part[0][:, 0] for part in parts]
        for new, old in zip(fresh, self.screens, strict=False):  # no old ones the first time
            new[~mask] = old[~mask]
        self.screens = fresh
        self.lives = np.where(mask, parts[0][1]["lives"], self.lives)

    def picture(self) -> np.ndarray | None:
        return self.screens[1][0] if len(self.screens) > 1 else None

    def close(self) -> None:
        if self.sent is not None:
            self.recv()
        for games in self.games:
            games.close()
        self.patience.close()


def check_actions(env: AtariEnv, action: np.ndarray, seed: np.ndarray) -> None:
    """Refuse what ale-py would hang on or take for something else."""
    if action.max() >= env.num_actions:
        raise IdrlError(
            f"{env.name} has actions 0 to {env.num_actions - 1}; it was given {action.max()}."
        )
    if seed.max() >= 2**31:
        raise IdrlError(f"{env.name} takes seeds below 2³¹; it was given {seed.max()}.")


def _games(env: AtariEnv, count: int, **screen: Any) -> Any:
    return emulator().AtariVectorEnv(
        env.game, count, num_threads=env.threads, max_num_frames_per_episode=env.max_frames,
        repeat_action_probability=env.sticky, frameskip=SKIP, maxpool=True, stack_num=1,
        noop_max=MAX_NOOPS + 1, use_fire_reset=False, reward_clipping=False,
        episodic_life=False, life_loss_info=False, **screen,
    )  # fmt: skip

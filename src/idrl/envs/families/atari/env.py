"""Atari 2600 games by ale-py, as the Nature DQN saw them (Mnih et al. 2015).

An action lasts four frames. The agent sees the last two of them, the brighter of each pixel, in
grey, at 84×84, in a stack of four; an episode starts after 0 to 30 frames of doing nothing and is
cut off after 108,000. Rewards are the game's own: clipping them is the learner's business.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

import numpy as np

from idrl.envs.host import HostEnv, Vector
from idrl.errors import IdrlError

# The 55 games of the paper, and defender and surround, which complete the usual 57.
_NAMES = """
    alien amidar assault asterix asteroids atlantis bank_heist battle_zone beam_rider berzerk
    bowling boxing breakout centipede chopper_command crazy_climber defender demon_attack
    double_dunk enduro fishing_derby freeway frostbite gopher gravitar hero ice_hockey jamesbond
    kangaroo krull kung_fu_master montezuma_revenge ms_pacman name_this_game phoenix pitfall pong
    private_eye qbert riverraid road_runner robotank seaquest skiing solaris space_invaders
    star_gunner surround tennis time_pilot tutankham up_n_down venture video_pinball wizard_of_wor
    yars_revenge zaxxon"""
GAMES = tuple(_NAMES.split())
SIDE = 84  # pixels of what the agent sees
SKIP = 4  # frames of one action
MAX_NOOPS = 30
MAX_FRAMES = 108_000
_FEWEST, _MANY_CORES = 4, 4  # games of a process; below so many cores one process keeps them busy


class AtariEnv(HostEnv):
    """One game.

    `sticky` is the probability that the game repeats the last action instead of the new one;
    `life_loss` tells who learns of lost lives; `release` plays as the authors' code did (see
    `release`). What is behind the star cannot be said by name: `threads` that step a vector (0:
    one per core; they change nothing but the speed) and the frames of an episode.
    """

    obs_shape = (SIDE, SIDE, 4)
    obs_dtype = np.uint8
    masked = False
    stack = 4
    reseed_every = 10  # of runs from before the presets said it
    slow_resets = True  # a seed loads the game anew: some 90 ms of a core

    def __init__(
        self,
        game: str,
        sticky: float = 0.0,
        life_loss: bool = True,
        release: bool = False,
        *,
        threads: int = 0,
        max_frames: int = MAX_FRAMES,
    ):
        if not 0 <= sticky <= 1:
            raise IdrlError(f"atari/{game}?sticky={sticky:g}: a probability is from 0 to 1.")
        self.name = f"atari/{game}"
        self.game, self.sticky, self.life_loss = game, sticky, life_loss
        self.release = self.repeat_first = self.timeout_terminates = release
        self.threads, self.max_frames = threads, max_frames
        self.colour = self.grouped = False
        self.num_actions = _num_actions(game)

    def for_evaluation(self) -> AtariEnv:
        return self._but(life_loss=False, grouped=True)

    def drawn(self) -> AtariEnv:
        return self._but(colour=True)

    def _but(self, **changes: Any) -> AtariEnv:
        other = copy.copy(self)
        vars(other).update(changes)
        return other

    def processes(self, count: int, cores: int) -> int:
        """To make a game takes a tenth of a second, in which a process does nothing else."""
        return min(cores, count // _FEWEST) if cores >= _MANY_CORES else 1

    def part(self, first: int, cores: int) -> AtariEnv:
        other = super().part(first, cores)
        # Two at least, also on one core: while a game begins anew with up to 30 no-ops, its
        # neighbours go on, on cores of processes that have done their part.
        other.threads = self.threads or max(2, cores)
        return other

    def make(self, count: int, timeout_s: float = 0.0) -> Vector:
        from idrl.envs.families.atari.groups import AtariGroups
        from idrl.envs.families.atari.release import ReleaseVector
        from idrl.envs.families.atari.vector import AtariVector

        games = AtariGroups if self.grouped else AtariVector
        return (ReleaseVector if self.release else games)(self, count, timeout_s)


def emulator() -> Any:
    """ale-py, which need not be installed, told to keep its banner to itself."""
    try:
        import ale_py
    except ImportError:
        raise IdrlError(
            "Atari games need a package that is not installed: pip install 'idrl[atari]'."
        ) from None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py


def open_game(game: str, seed: int, sticky: float) -> Any:
    """The emulator of one game, before its first frame."""
    ale_py = emulator()
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", seed)
    ale.setFloat("repeat_action_probability", sticky)
    ale.loadROM(ale_py.roms.get_rom_path(game))
    return ale


@functools.cache
def _num_actions(game: str) -> int:
    return len(open_game(game, 0, 0.0).getMinimalActionSet())

"""Random play in MinAtar's reference package, which tests compare ours with.

    python benchmarks/minatar_reference.py > tests/data/minatar_reference.csv

Needs the reference (`pip install minatar`) and numpy, not idrl. Episodes are played to their end or
1,000 frames, or for 1,000 frames through every end: that gets to the last levels. A row has the
mean over episodes of something that is counted in each, and its standard error.
"""

from __future__ import annotations

import sys

import numpy as np
from minatar import Environment

GAMES = ("asterix", "seaquest")
EPISODES, FRAMES = {"ends": 4_000, "goes_on": 400}, 1_000


def episode(world: Environment, actions: list[int], goes_on: bool) -> np.ndarray:
    """Its length and return, then how often cells of each channel were on."""
    world.reset()
    world.last_action = 0  # the reference keeps it over the end of an episode, ours does not
    sums = np.zeros(2 + world.n_channels)
    for _ in range(FRAMES):
        world.env.terminal = False
        reward, ended = world.act(actions[world.random.randint(len(actions))])
        sums += [1, reward, *world.state().sum((0, 1))]
        if ended and not goes_on:
            break
    return sums


def main() -> int:
    print("game,play,counted,mean,error,episodes")
    for game in GAMES:
        world = Environment(game)  # sticky actions, as it comes
        world.seed(0)
        actions = world.minimal_action_set()
        names = ["frames", "reward", *sorted(world.env.channels, key=world.env.channels.get)]
        for play, episodes in EPISODES.items():
            runs = np.array([episode(world, actions, play == "goes_on") for _ in range(episodes)])
            errors = runs.std(0, ddof=1) / episodes**0.5
            for name, mean, error in zip(names, runs.mean(0), errors, strict=True):
                print(f"{game},{play},{name},{mean:.6g},{error:.4g},{episodes}")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

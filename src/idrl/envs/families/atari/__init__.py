"""Atari 2600: the family, its named presets and the frames that its runs are counted in.

What concerns the game is in the environment's name, so that it says by itself what was played; the
rest are ordinary settings. `docs/atari.md` has all of it in one table.
"""

from __future__ import annotations

from typing import Any

from idrl.envs.declaring import Unit, family
from idrl.envs.families.atari.env import GAMES, SIDE, SKIP, AtariEnv
from idrl.envs.families.atari.presets import preset
from idrl.envs.host import HostEnv


class AnyGame(HostEnv):
    """What a game shows, without the game: it need not be installed to be planned."""

    name = "atari"
    obs_shape = (SIDE, SIDE, 4)
    obs_dtype: Any = "uint8"
    num_actions = 18
    stack = 4


family(
    "atari/GAME",
    options={"sticky": 0.0, "life_loss": True, "release": False},
    summary="Atari 2600 (idrl[atari]); ?sticky=0.25, ?life_loss=0, ?release=1",
    arguments=GAMES,
    noun="Atari game",
    preset=preset,
    named={
        "paper": {},
        "short": {},
        "release": {"release": "1"},
        "sticky": {"sticky": "0.25", "life_loss": "0"},
    },
    unit=Unit("frames", SKIP),
    host=True,
    stand_in=AnyGame(),
)(AtariEnv)

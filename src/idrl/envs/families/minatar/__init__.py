"""MinAtar (Young & Tian 2019): five small games on a 10×10 board, two of them with code of ours.

gymnax's asterix and seaquest deviate from the reference's rules (docs/minatar.md) and are slow on a
GPU; its other games are the reference's, board for board.
"""

from __future__ import annotations

import math

from idrl.envs.base import Env
from idrl.envs.declaring import family
from idrl.envs.families.minatar.asterix import Asterix
from idrl.envs.families.minatar.boards import NONE, BoardGame, GameRules
from idrl.envs.families.minatar.by_gymnax import GAMES, GymnaxGame
from idrl.envs.families.minatar.presets import preset
from idrl.envs.families.minatar.seaquest import Seaquest
from idrl.errors import IdrlError

OURS: dict[str, type[GameRules]] = {"asterix": Asterix, "seaquest": Seaquest}
RULES = ("minatar", "gymnax")


def _line(game: str) -> str:
    return f"10×10 board{'' if game in OURS else f' (gymnax {GAMES[game]})'}"


@family(
    "minatar/GAME",
    options={"sticky": 0.1, "limit": 0, "rules": "minatar"},
    arguments={game: f"{_line(game)}; ?sticky=0, ?limit=1000" for game in GAMES},
    noun="MinAtar game",
    preset=preset,
    host=False,
)
def minatar(game: str, sticky: float = 0.1, limit: int = 0, rules: str = "minatar") -> Env:
    """A game with its smallest set of actions. `sticky`: the probability that the last action is
    repeated instead of the one chosen; 0.1 is the reference package's, gymnax has none. Without it
    breakout is deterministic but for its first frame, and an agent can settle in one short loop.
    `limit`: frames after which an episode is truncated, 0 for none, as in the reference. `rules`:
    `gymnax` for asterix and seaquest as gymnax has them, which older runs were made with.

    The limit is a part of the task, which is a part of a run's state: a checkpoint keeps its own.
    """
    if not (math.isfinite(sticky) and 0 <= sticky < 1):
        raise IdrlError(f"minatar sticky={sticky}: a probability from 0 to below 1.")
    if not 0 <= limit < NONE:
        raise IdrlError(f"minatar limit={limit}: a number of frames, or 0 for none.")
    if rules not in RULES:
        raise IdrlError(f"minatar rules={rules}: the rules are minatar or gymnax.")
    if game in OURS and rules == "minatar":
        return BoardGame(f"minatar/{game}", OURS[game](), sticky, limit)
    if game not in OURS and rules == "gymnax":
        raise IdrlError(
            f"minatar/{game} has no rules=gymnax: gymnax's game follows MinAtar's rules; omit the "
            "option."
        )
    return GymnaxGame(game, sticky, limit)

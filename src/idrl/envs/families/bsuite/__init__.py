"""The games of bsuite's noise and exploration experiments that are not DeepSea."""

from idrl.envs.families.bsuite.games import GAMES, BsuiteGame, game_of, make_bsuite

__all__ = ["GAMES", "BsuiteGame", "game_of", "make_bsuite"]

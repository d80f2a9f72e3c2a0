"""The games of bsuite's noise and exploration experiments that are not DeepSea."""

from idrl.envs.bsuite.games import GAMES, Game, game_of, make_bsuite

__all__ = ["GAMES", "Game", "game_of", "make_bsuite"]

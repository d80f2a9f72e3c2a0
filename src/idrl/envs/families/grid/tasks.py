"""The tasks of `grid/NAME`, written as rules.

Maps are read from the top left: `S` start, `G` goal, `#` wall, and what a task says besides.
Actions 0 to 3 go north, east, south and west; a move into a wall or over the edge stays in place.
Observations are one-hot: of the cell as a map `[rows, columns]` where the cell is all there is to a
state, else of the parts of the state, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from idrl.envs.families.grid.outcomes import Consequence, Rules

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
Cell = tuple[int, int]

TRAPS = (
    "S.......",
    "........",
    "..T..T..",
    "........",
    "...T....",
    ".T....T.",
    ".......G",
)
CLIFF = (
    "............",
    "............",
    "............",
    "STTTTTTTTTTG",
)
ROOMS = (  # Sutton, Precup & Singh 1999
    "S....#.....",
    ".....#.....",
    "...........",
    ".....#.....",
    ".....#.....",
    "#.####.....",
    ".....###.##",
    ".....#.....",
    ".....#.....",
    "...........",
    ".....#....G",
)
LAKE = (  # Gymnasium's 8×8
    "S.......",
    "........",
    "...H....",
    ".....H..",
    "...H....",
    ".HH...H.",
    ".H..H.H.",
    "...H...G",
)
KEYS = (  # a opens A, b opens B
    "S...#....#...",
    "....#....#...",
    "....#....#...",
    "....#....#..G",
    "....A....#...",
    "....#....B...",
    "....#....#...",
    "....#...b#...",
    "a...#....#...",
)
HARVEST = (  # digits: what lies there, once
    "S..1..3",
    ".......",
    "..#.#..",
    "..#5#..",
    "2..X...",
)
TAXI = ((0, 0), (0, 4), (4, 0), (4, 3))  # red, green, yellow, blue
TAXI_WALLS = {(0, 1), (1, 1), (3, 0), (4, 0), (3, 2), (4, 2)}  # east of these cells
RIVER = 50
RIVER_FORWARD, RIVER_BACK = 0.6, 0.05


def _cells(plan: tuple[str, ...], mark: str) -> list[Cell]:
    return [(r, c) for r, row in enumerate(plan) for c, x in enumerate(row) if x == mark]


def _go(plan: tuple[str, ...], cell: Cell, action: int, closed: str = "#") -> Cell:
    row, column = cell[0] + MOVES[action][0], cell[1] + MOVES[action][1]
    inside = 0 <= row < len(plan) and 0 <= column < len(plan[0])
    return (row, column) if inside and plan[row][column] not in closed else cell


def _map(rows: int, columns: int) -> Callable[[Any], np.ndarray]:
    def see(cell: Cell) -> np.ndarray:
        seen = np.zeros((rows, columns))
        seen[cell] = 1
        return seen

    return see


def _parts(*sizes: int) -> Callable[..., np.ndarray]:
    """One-hot codes of numbers below `sizes`, one after the other."""

    def see(*values: int) -> np.ndarray:
        return np.concatenate([np.eye(n)[int(v)] for n, v in zip(sizes, values, strict=True)])

    return see


def _walk(plan: tuple[str, ...], line: str) -> Rules:
    """A step costs 1; a trap costs 100 and leads back to the start; the goal ends the episode."""
    start = _cells(plan, "S")

    def follow(cell: Any, action: int) -> list[Consequence]:
        there = _go(plan, cell, action)
        mark = plan[there[0]][there[1]]
        if mark == "T":
            return [Consequence(start[0], -100.0)]
        return [Consequence(there, -1.0, mark == "G")]

    see = _map(len(plan), len(plan[0]))
    return Rules(line, 4, start, follow, see, limit=0, steps=60_000)


def traps() -> Rules:
    return _walk(TRAPS, "7×8 cells, a step costs 1, a trap 100 and the way; no time limit")


def cliff() -> Rules:
    line = "4×12 cells along a cliff: a step costs 1, a fall 100 and the way; no time limit"
    return _walk(CLIFF, line)


def rooms() -> Rules:
    def follow(cell: Any, action: int) -> list[Consequence]:
        there = _go(ROOMS, cell, action)
        found = ROOMS[there[0]][there[1]] == "G"
        return [Consequence(there, float(found), found)]

    line = "four rooms, 104 cells, 1 at the goal"
    see = _map(len(ROOMS), len(ROOMS[0]))
    return Rules(line, 4, _cells(ROOMS, "S"), follow, see, limit=200, steps=100_000, sparse=True)


def lake() -> Rules:
    def follow(cell: Any, action: int) -> list[Consequence]:
        slid = [_go(LAKE, cell, (action + turn) % 4) for turn in (-1, 0, 1)]
        marks = [LAKE[r][c] for r, c in slid]
        return [
            Consequence(there, float(mark == "G"), mark in "GH", 1 / 3)
            for there, mark in zip(slid, marks, strict=True)
        ]

    line = "8×8 cells of ice with holes: a step goes astray two times in three, 1 at the goal"
    return Rules(
        line, 4, _cells(LAKE, "S"), follow, _map(8, 8), limit=200, steps=150_000, sparse=True
    )


def river() -> Rules:
    """RiverSwim (Strehl & Littman 2008), longer and with a weaker current."""
    end = RIVER - 1

    def follow(where: Any, action: int) -> list[Consequence]:
        if action == 0:
            return [Consequence(max(where - 1, 0), 0.005 if where == 0 else 0.0)]
        paid, back = float(where == end), max(where - 1, 0)
        stays = 1 - RIVER_FORWARD - RIVER_BACK
        return [
            Consequence(min(where + 1, end), paid, chance=RIVER_FORWARD),
            Consequence(where, paid, chance=stays),
            Consequence(back, paid, chance=RIVER_BACK),
        ]

    line = "50 places against the current, 0.005 at the near end, 1 at the far one"
    return Rules(line, 2, [0], follow, _parts(RIVER), limit=200, steps=100_000, sparse=True)


def taxi() -> Rules:
    """Gymnasium's (Dietterich 2000): south, north, east, west, pick up, drop off."""
    moves = ((1, 0), (-1, 0), (0, 1), (0, -1))
    aboard, places = len(TAXI), range(len(TAXI))

    def follow(state: Any, action: int) -> list[Consequence]:
        row, column, passenger, goal = state
        here = (row, column)
        if action < len(moves):
            down, right = moves[action]
            wall = (row, column + min(right, 0)) in TAXI_WALLS and right != 0
            column = column if wall else min(max(column + right, 0), 4)
            return [Consequence((min(max(row + down, 0), 4), column, passenger, goal), -1.0)]
        if action == 4:
            if passenger < aboard and TAXI[passenger] == here:
                return [Consequence((row, column, aboard, goal), -1.0)]
            return [Consequence(state, -10.0)]
        if passenger == aboard and here in TAXI:
            place = TAXI.index(here)
            done = place == goal
            return [Consequence((row, column, place, goal), 20.0 if done else -1.0, done)]
        return [Consequence(state, -10.0)]

    starts = [
        (row, column, passenger, goal)
        for row in range(5) for column in range(5) for passenger in places for goal in places
        if passenger != goal
    ]  # fmt: skip
    code = _parts(5, 5, 5, 4)
    line = "Gymnasium's Taxi: a step costs 1, the wrong place 10, a fare brings 20"
    return Rules(line, 6, starts, follow, lambda s: code(*s), limit=200, steps=150_000)


def keys() -> Rules:
    def follow(state: Any, action: int) -> list[Consequence]:
        cell, held = state
        closed = "#" + "".join(door for door in "AB" if door.lower() not in held)
        there = _go(KEYS, cell, action, closed)
        mark = KEYS[there[0]][there[1]]
        held = "".join(sorted(set(held) | ({mark} if mark in "ab" else set())))
        return [Consequence((there, held), float(mark == "G"), mark == "G")]

    rows, columns = len(KEYS), len(KEYS[0])
    code = _parts(rows, columns, 2, 2)
    starts = [(cell, "") for cell in _cells(KEYS, "S")]
    line = "three rooms, two doors, a key for each, 1 at the goal"
    return Rules(
        line, 4, starts, follow, lambda s: code(*s[0], "a" in s[1], "b" in s[1]),
        limit=300, steps=150_000, sparse=True,
    )  # fmt: skip


def harvest() -> Rules:
    fruits = [cell for digit in "1235" for cell in _cells(HARVEST, digit)]

    def follow(state: Any, action: int) -> list[Consequence]:
        cell, left = state
        there = _go(HARVEST, cell, action)
        mark = HARVEST[there[0]][there[1]]
        paid = -0.1
        if there in left:
            paid, left = paid + float(mark), tuple(f for f in left if f != there)
        return [Consequence((there, left), paid, mark == "X")]

    code = _parts(5, 7, *[2] * len(fruits))
    starts = [(cell, tuple(fruits)) for cell in _cells(HARVEST, "S")]
    line = "5×7 cells with fruits worth 1, 2, 3 and 5, a step costs 0.1, the gate ends it"
    return Rules(
        line, 4, starts, follow, lambda s: code(*s[0], *(fruit in s[1] for fruit in fruits)),
        limit=100, steps=60_000,
    )  # fmt: skip


TASKS: dict[str, Rules] = {
    make.__name__: make()
    for make in (traps, cliff, rooms, lake, river, taxi, keys, harvest)
}  # fmt: skip

"""Resolved configs of every built-in agent on every built-in family, pinned by a hash each.

`python tests/test_resolved.py` writes `data/resolved.csv` anew; a cell that changes there is a
setting that changes for everybody, and belongs into the changelog.
"""

import csv
import hashlib
import json
from pathlib import Path

from idrl.agents import agent_names
from idrl.agents.registry import is_built_in
from idrl.config import resolve
from idrl.schema import flat, to_dict

TABLE = Path(__file__).parent / "data" / "resolved.csv"
ENVS = [
    "deep_sea/10", "deep_sea/20?slip=0.05", "deep_sea/40", "maze/4", "maze/5?mask=0",
    "noisy_push/6", "noisy_chain/10", "noisy_chain/6?noise=0.5", "hetero/reward",
    "minatar/breakout", "minatar/asterix?limit=1000", "cartpole", "acrobot", "mountain_car",
    "pendulum", "mountain_car_continuous", "bsuite/catch", "bsuite/bandit?noise=1.0",
    "bsuite/cartpole", "bsuite/cartpole_swingup", "bsuite/mountain_car", "atari/pong",
    "atari/pong?sticky=0.25&life_loss=0", "gymnax/Catch-bsuite", "brax/ant", "gym/CartPole-v1",
    "gym/Acrobot-v1", "gym/MountainCar-v0", "gym/Pendulum-v1", "gym/MountainCarContinuous-v0",
    "gym/FrozenLake-v1",
]  # fmt: skip
PRESETS = ("paper", "release", "sticky")
COLUMNS = [(env, None) for env in ENVS] + [("atari/pong", preset) for preset in PRESETS]


def table() -> list[dict[str, str]]:
    """A row an agent, a column an environment."""
    rows = []
    for agent in filter(is_built_in, agent_names()):
        row = {"agent": agent}
        for env, preset in COLUMNS:
            settings = flat(to_dict(resolve(agent, env, named=preset)))
            text = json.dumps(settings, sort_keys=True)
            name = env if preset is None else f"{env} {preset}"
            row[name] = hashlib.sha256(text.encode()).hexdigest()[:12]
        rows.append(row)
    return rows


def test_resolved_configs_are_those_of_before():
    with open(TABLE, encoding="utf-8", newline="") as file:
        pinned = list(csv.DictReader(file))
    found = table()
    assert [row["agent"] for row in found] == [row["agent"] for row in pinned]
    different = [
        f"{new['agent']} on {env}"
        for new, old in zip(found, pinned, strict=True)
        for env in new
        if new[env] != old[env]
    ]
    assert different == []


if __name__ == "__main__":
    rows = table()
    with open(TABLE, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)

"""Our side of `benchmarks.minatar_dqn`: all seeds of one game, trained as `idrl train` does."""

from __future__ import annotations

import json
import sys
import time

from benchmarks import minatar_world as world
from idrl import load, train
from idrl.config import resolve
from idrl.schema import to_dict
from idrl.storage.records import read_table


def check(config: dict, settings: dict) -> None:
    """Refuse a comparison of two agents that differ in more than who wrote them."""
    learning, explore = config["learning"], config["explore"]
    ours = {
        "lr": config["optimiser"]["lr"], "decay": config["optimiser"]["decay"],
        "replay": learning["replay_capacity"], "starts": learning["learning_starts_steps"],
        "batch": learning["batch_size"], "gamma": learning["gamma"],
        "target_every": learning["target_every_steps"],
        "eps_end": explore["end"], "eps_steps": explore["decay_steps"],
    }  # fmt: skip
    wrong = {name: value for name, value in ours.items() if settings.get(name, value) != value}
    if wrong or learning["update_every_steps"] != 1 or config["training"]["envs"] != 1:
        raise SystemExit(f"ours has {wrong}, the other side {settings}")


def main() -> None:
    job = json.loads(sys.argv[1])
    seeds = range(job["seed"], job["seed"] + job["seeds"])
    change = job["change"] | {"evaluation": {"every_steps": job["look_every"]}}
    config = to_dict(resolve("dqn", job["env"], changes=[change]))
    check(config, job["settings"])
    print(f"{job['env']}: {config['optimiser']}, trunk {config['trunk']}", flush=True)
    began = time.perf_counter()
    run = train(
        "dqn", job["env"], steps=job["steps"], seeds=len(seeds), seed=job["seed"],
        settings=change, out=job["run"],
    )  # fmt: skip
    seconds = time.perf_counter() - began
    told = {seed: world.Told(job["out"], "idrl", job["game"], seed) for seed in seeds}
    for row in read_table(run.path / "episodes.csv"):
        told[int(row["seed"])].episode(int(row["steps"]), float(row["return"]), int(row["length"]))
    judge = world.Judge(job["env"], job["episodes"])
    for seed in seeds:
        policy = load(run, seed=seed, weights="latest")
        told[seed].score(job["steps"], judge.play(policy.predict, seed), seconds)


if __name__ == "__main__":
    main()

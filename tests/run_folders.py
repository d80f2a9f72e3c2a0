"""Run folders made up for tests of what reads them."""

import csv
import json

import numpy as np
import tomli_w

from idrl.storage.folder import FORMAT


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def made_up_run(
    path, agent="dqn", env="deep_sea/10", *, seeds=3, seed=0, level=1.0, steps=1000, every=100,
    done=None, lam=0.1, distributions=False,
):  # fmt: skip
    """Evaluations that rise to about `level`; `done`: the last step that was evaluated."""
    path.mkdir(parents=True)
    config = {
        "agent": agent, "env": env, "seed": seed, "seeds": seeds, "explore": {"lam": lam},
        "training": {"steps": steps, "log_every_steps": every},
        "evaluation": {"every_steps": every, "steps": 50, "envs": 1},
    }  # fmt: skip
    (path / "config.toml").write_text(tomli_w.dumps(config))
    (path / "run.json").write_text(json.dumps({"format": FORMAT}))
    rng = np.random.default_rng(seed + 100)
    rows, bands = [], []
    for one in range(seed, seed + seeds):
        top = level * (1 + 0.1 * rng.standard_normal())
        for step in range(every, (done or steps) + 1, every):
            rows.append({"seed": one, "steps": step, "return_mean": top * step / steps, "best": 0})
            for quantity in ("rho2", "sigma2"):
                value = {"mean": 1.0} | {
                    f"p{p}": (1 + p) / step for p in (0, 5, 25, 50, 75, 95, 100)
                }
                bands.append({"seed": one, "steps": step, "quantity": quantity, **value})
    write_csv(path / "evaluations.csv", rows)
    if distributions:
        write_csv(path / "distributions.csv", bands)
    return path


def freeze(path, seed, step):
    """As if the numbers of a seed had stopped being finite: it has no rows since."""
    for name in ("evaluations.csv", "distributions.csv"):
        if (path / name).exists():
            with open(path / name, newline="") as file:
                rows = list(csv.DictReader(file))
            write_csv(path / name, [
                row for row in rows if int(row["seed"]) != seed or int(row["steps"]) <= step
            ])  # fmt: skip
    with open(path / "frozen.csv", "a") as file:
        if file.tell() == 0:
            file.write("seed,steps,what,operation\n")
        file.write(f"{seed},{step},the loss of head q,\n")

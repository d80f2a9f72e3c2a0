"""Small tables from run folders: when seeds solved a task, and what their best weights score.

python results/summarise.py solved RUN... > results/deep_sea/solved.csv
python results/summarise.py best RUN... > results/cartpole/best.csv
"""

import csv
import sys

from idrl.report.statistics import solved_episode
from idrl.runs.api import open_run


def rows(what: str, path: str):
    run = open_run(path)
    name = {"agent": run.config.agent, "env": run.config.env}
    for seed in run.seeds:
        played, judged = run.episodes.where(seed=seed), run.evaluations.where(seed=seed)
        row = {**name, "seed": seed, "episodes": len(played), "steps": judged[-1]["steps"]}
        if what == "solved":
            row["solved_at_episode"] = solved_episode(played["bad"].tolist()) or "not"
        row["last_evaluation"] = round(judged[-1]["return_mean"], 4)
        row["best_evaluation"] = round(judged[-1]["best"], 4)
        yield row


def main() -> None:
    what, *paths = sys.argv[1:]
    found = [row for path in paths for row in rows(what, path)]
    writer = csv.DictWriter(sys.stdout, list(found[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)


if __name__ == "__main__":
    main()

"""What the agents believe of every state of noisy_chain, from a study's values.csv.

    cd results/noisy_chain; python figure.py values.csv 6 ../../docs/images/noisy_chain.png

Medians over seeds of σ², ρ² and the learned variance of the return, at the end of training, for the
three meanings of an action; the dotted lines are the true variances of the return.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from idrl.report.style import figure

ROWS = {"sigma2": "σ²", "return_variance": "learned Var Z", "rho2": "ρ²"}
TINTS = {"forward": "#0072B2", "back": "#56B4E9", "gamble": "#D55E00"}


def main() -> None:
    values, size, target = sys.argv[1:]
    with open(values, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["size"] == size]
    agents = list(dict.fromkeys(row["agent"] for row in rows))
    fig, axes = figure(len(ROWS), len(agents), figsize=(3.2 * len(agents), 6.4), squeeze=False)
    for column, agent in enumerate(agents):
        for line, (name, label) in enumerate(ROWS.items()):
            axis = axes[line, column]
            for action, tint in TINTS.items():
                mine = [r for r in rows if (r["agent"], r["action"]) == (agent, action)]
                states = sorted({int(r["state"]) for r in mine})

                def median(what, mine=mine, states=states):
                    return [
                        np.nanmedian(
                            [float(r[what] or "nan") for r in mine if int(r["state"]) == s]
                        )
                        for s in states
                    ]

                if name == "return_variance" and all(r[name] in ("", "nan") for r in mine):
                    continue
                axis.plot(states, median(name), "o-", ms=3, color=tint, label=action)
                if name == "return_variance":
                    axis.plot(states, median("var_z"), ":", color=tint)
            axis.set_visible(bool(axis.get_lines()))
            axis.set_ylim(bottom=0)
            axis.set_ylabel(label)
            if not line:
                axis.set_title(agent, fontsize="medium")
        axes[-1, column].set_xlabel("state")
    axes[0, 0].legend(frameon=False, fontsize="small")
    fig.savefig(Path(target), dpi=110)


if __name__ == "__main__":
    main()

"""Two agents, eight seeds each, and a report with intervals.

python examples/many_seeds_and_report.py
"""

import idrl

runs = [
    idrl.train(
        agent, "deep_sea/8", seeds=8, seed=100, steps=1_600, out=f"runs/{agent}",
        settings=["evaluation.every_steps=200", "evaluation.steps=80"],
    )
    for agent in ("dqn-ids", "dqn")
]  # fmt: skip

idrl.report(runs, "report")  # tables and figures; report/index.html is an interactive page
print(idrl.compare(*(run.path for run in runs)).verdict)

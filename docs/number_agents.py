"""Writes the table of optimiser, targets and ε into every page of an agent with discrete actions.

    python docs/number_agents.py      # rewrites the part "Its numbers" of docs/agents/NAME.md

Values come from the declarations and the presets, sources from the table below; a test compares
the committed pages with what this makes, so they cannot go stale.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from idrl.agents import agent_names
from idrl.config import resolve
from idrl.schema import to_dict

PAGES = Path(__file__).parent / "agents"

# Where the numbers of an agent are from: its optimiser, its target's period, its ε.
_MNIH = "Mnih et al. 2015 and dqn_zoo: ε = 0.01 over gradients summed over 32, so 0.01/32² here"
_PERIOD = "dqn_zoo (4e4 frames), Dopamine and rltf; Mnih et al.'s 10,000 is in these steps"
_TUNED = "tuned Double DQN (van Hasselt et al. 2016); dqn_zoo (1.2e5 frames)"
_PRIORITISED = "Schaul et al. 2016: a quarter of DQN's rate; dqn_zoo scales ε by 1/4² with it"
_TABLE_2 = "Nikolov et al. 2019, Table 2"
_RLTF = "rltf, the authors' code of IDS"
SOURCES = {
    "dqn": (_MNIH, _PERIOD, "Mnih et al. 2015"),
    "ddqn": (_MNIH, _TUNED, "van Hasselt et al. 2016 (tuned); dqn_zoo evaluates with 0.01"),
    "dueling": (
        "Wang et al. 2016 (rate of the prioritised agent, clipping); ε not stated there, so DQN's",
        _TUNED, "as tuned Double DQN",
    ),
    "noisynet-dqn": ("Fortunato et al. 2018: as DQN", "as DQN", "Fortunato et al. 2018: no ε"),
    "noisynet-dueling": ("as `dueling`", "as `dueling`", "Fortunato et al. 2018: no ε"),
    "prioritized": (_PRIORITISED, _TUNED, "as tuned Double DQN"),
    "prioritized-dueling": (
        "Wang et al. 2016 (rate, clipping); ε as `prioritized`", _TUNED, "as tuned Double DQN"
    ),
    "c51": ("Bellemare et al. 2017; dqn_zoo clips to a norm of 10 besides", _PERIOD,
            "Bellemare et al. 2017; dqn_zoo"),
    "qr-dqn": ("Dabney et al. 2018; dqn_zoo clips to a norm of 10 besides", _PERIOD,
               "Dabney et al. 2018; dqn_zoo"),
    "iqn": ("Dabney et al. 2018; dqn_zoo", _PERIOD, "Dabney et al. 2018; dqn_zoo"),
    "rainbow": ("Hessel et al. 2018; dqn_zoo has ε = 0.005/32, which is the same, and the clipping",
                "Hessel et al. 2018 (32K frames)", "Hessel et al. 2018: no ε"),
    "bootstrapped-dqn": ("Osband et al. 2016: as DQN", _PERIOD,
                         "Osband et al. 2016: no ε; rltf has one (preset `release`)"),
    "bootstrapped-ucb": (f"{_RLTF}: as Bootstrapped DQN, centred as Mnih et al. have it", _RLTF,
                         "no ε; rltf has one (preset `release`)"),
    "ensemble-vote": (f"{_RLTF}: as Bootstrapped DQN, centred as Mnih et al. have it", _RLTF,
                      "no ε; rltf has one (preset `release`)"),
    "bdqn": ("Azizzadenesheli et al. 2018: as Double DQN; rltf has Adam (preset `release`)",
             "the authors' notebook and rltf", "no ε: the posterior explores"),
    "dqn-ids": (_TABLE_2, _TABLE_2, "Nikolov et al. 2019: no ε"),
    "c51-ids": (_TABLE_2, _TABLE_2, "Nikolov et al. 2019: no ε"),
    "qrdqn-ids": (_TABLE_2, _TABLE_2, "Nikolov et al. 2019: no ε"),
    "iqn-ids": ("as the other IDS agents", "as the other IDS agents", "as the other IDS agents"),
    "c51-thompson": ("as `c51-ids`, so that the rule alone differs", "as `c51-ids`",
                     "none: the draws explore"),
}  # fmt: skip


def table(name: str) -> str:
    """The part "Its numbers" of the page of `name`."""
    atari, minatar = (to_dict(resolve(name, env)) for env in ("atari/pong", "minatar/breakout"))
    optimiser, target, epsilon = SOURCES[name]
    rows = [
        ("optimiser", _optimiser(atari["optimiser"]), optimiser),
        ("target copied every", f"{atari['learning']['target_every_steps']:,} agent steps", target),
        ("ε of acting", _epsilon(atari["explore"]), epsilon),
        ("ε of evaluation", _epsilon(atari["evaluate"]), "on Atari; elsewhere none"),
        ("on MinAtar", f"{_optimiser(minatar['optimiser'])}; target every "
         f"{minatar['learning']['target_every_steps']:,}; ε {_epsilon(minatar['explore'])}",
         "Young & Tian 2019; [why](../minatar.md#the-games-and-their-preset)"),
    ]  # fmt: skip
    lines = [f"| {what} | {value} | {source} |" for what, value, source in rows]
    return "\n".join(
        [
            "## Its numbers", "",
            "As declared, for Atari. Gradients are averaged over the batch, RMSProp's ε is inside "
            "the root, Adam's", "outside; an agent step is four frames and a quarter of an update.",
            "", "| what | value | source |", "|---|---|---|", *lines, "", "",
        ]
    )  # fmt: skip


def _optimiser(settings: dict[str, Any]) -> str:
    clipped = settings["max_grad_norm"]
    tail = f", gradients clipped to a norm of {clipped:g}" if clipped else ""
    if settings["kind"] == "adam":
        betas = f"β {settings['b1']:g}, {settings['b2']:g}"
        return f"Adam, {_short(settings['lr'])}, {betas}, ε {_short(settings['eps'])}{tail}"
    form = "centred" if settings["centered"] else "uncentred"
    return (
        f"RMSProp, {form}, {_short(settings['lr'])}, decay {settings['decay']:g}, "
        f"ε {_short(settings['eps'])}{tail}"
    )


def _epsilon(rule: dict[str, Any]) -> str:
    if rule["kind"] != "epsilon_greedy":
        return "none"
    if rule["start"] == rule["end"]:
        return f"{rule['end']:g}"
    return f"{rule['start']:g} → {rule['end']:g} over {rule['decay_steps']:,} agent steps"


def _short(value: float) -> str:
    return f"{value:.3g}".replace("e-0", "e-")


def page(name: str, text: str) -> str:
    """`text` of a page with its table as it is now, before "Where it differs"."""
    text = re.sub(r"## Its numbers\n.*?(?=## Where it differs)", "", text, flags=re.DOTALL)
    return text.replace("## Where it differs", table(name) + "## Where it differs", 1)


def main() -> None:
    for name in agent_names(continuous=False):
        path = PAGES / f"{name}.md"
        path.write_text(page(name, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Which of a decision's numbers mean something for an agent, by what its parts are."""

from __future__ import annotations

from idrl.agents.spec import AgentSpec

_COMPARED = ("rho2", "regret", "info_gain", "ratio")


def told(spec: AgentSpec) -> tuple[str, ...]:
    """Fields of a `Decision` that may be shown: σ is a spread over several Q-functions, and what
    follows from it and from the noise is what rules that minimise their ratio decide by. A
    `Decision` has all of them for every agent, so that rules can be compared in code."""
    several = max(head.members for head in spec.values.values()) > 1
    sigma = ("sigma",) if several else ()
    return ("mu", *sigma, *(_COMPARED if several and spec.explore.minimises_ratio else ()))

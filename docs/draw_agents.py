"""Draws every agent's declaration as an SVG: trunk, heads, gradient shares, rules, learning.

    python docs/draw_agents.py        # writes docs/images/agents/NAME.svg

The pictures are made from the declarations alone, and a test compares the committed ones with what
this makes: they cannot go stale.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from idrl.agents import AgentSpec, agent_names, declared
from idrl.agents.actor_rules import GaussianNoise, OuNoise, Sample
from idrl.agents.choosing import EpsilonGreedy, Ids, ReturnThompson, Thompson, Ucb, Vote
from idrl.agents.optimisers import Adam, RmsProp
from idrl.agents.rule_base import Rule
from idrl.agents.spec import Learning
from idrl.networks.heads import (
    Actor,
    Bayesian,
    Categorical,
    Ensemble,
    GaussianActor,
    Head,
    Implicit,
    MlpHead,
    Quantile,
)
from idrl.networks.trunks import MinAtarCnn, Mlp, Trunk

FOLDER = Path(__file__).parent / "images" / "agents"

WIDTH, LINE, PAD = 820, 17, 10
TRUNK_X, TRUNK_W = 16, 150
HEAD_X, HEAD_W = 300, 236
RULE_X, RULE_W = 624, 180
INK, SOFT, GRADIENT, DATA = "#222222", "#777777", "#D55E00", "#0072B2"


def draw(name: str, spec: AgentSpec) -> str:
    """The picture of one declaration, as the text of an SVG file."""
    boxes = {
        key: [f"{key}: {head.kind}", *head_says(head, spec)] for key, head in spec.heads.items()
    }
    rules = {
        "explore": [f"explore: {spec.explore.kind}", *rule_says(spec.explore)],
        "evaluate": [f"evaluate: {spec.evaluate.kind}", *rule_says(spec.evaluate)],
    }
    top, gap = 40, 24
    heads_height = sum(map(_height, boxes.values())) + gap * (len(boxes) - 1)
    rules_height = sum(map(_height, rules.values())) + gap
    body = max(heads_height, rules_height)
    trunk = [f"trunk: {spec.trunk.kind}", *trunk_says(spec.trunk)]
    parts, labels = [_text(TRUNK_X, 22, name, size=15, weight="bold")], []
    middle = top + body / 2
    parts.append(_box(TRUNK_X, middle - _height(trunk) / 2, TRUNK_W, trunk))

    y, head_at = top + (body - heads_height) / 2, {}
    for key, lines in boxes.items():
        head = spec.heads[key]
        if head.members > 1:  # the others of the ensemble, behind it
            parts += [_frame(HEAD_X + d, y - d, HEAD_W, _height(lines)) for d in (8, 4)]
        parts.append(_box(HEAD_X, y, HEAD_W, lines))
        head_at[key] = y + _height(lines) / 2
        parts += _trunk_to_head(middle, head_at[key], head)
        y += _height(lines) + gap

    y = top + (body - rules_height) / 2
    for key, lines in rules.items():
        parts.append(_box(RULE_X, y, RULE_W, lines))
        rule_at = y + _height(lines) / 2
        for number, (source, says) in enumerate(told(spec, getattr(spec, key)).items()):
            start = head_at[source] + (-8 if key == "explore" else 8)
            ends = (HEAD_X + HEAD_W + 10, start, RULE_X - 4, rule_at + 14 * number - 4)
            parts += _arrow(*ends, DATA)
            labels.append(_label(*ends, 0.3, says, DATA))
        y += _height(lines) + gap

    y = top + body + 26
    for line in learning_says(spec):
        parts.append(_text(TRUNK_X, y, line, SOFT))
        y += LINE
    height = y + 2
    frame = (
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:g}" rx="6" '
        'fill="white" stroke="#dddddd"/>'
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
        f'width="{WIDTH}" height="{height:g}" font-family="Helvetica, Arial, sans-serif" '
        f'font-size="12">\n<title>The declaration of {escape(name)}</title>'
    )
    return "\n".join([head, frame, *parts, *labels, "</svg>", ""])


# -- what the parts say of themselves ------------------------------------------------------------


def trunk_says(trunk: Trunk) -> list[str]:
    if isinstance(trunk, Mlp):
        if not trunk.hidden:
            return ["no layers"]
        return ["dense " + ", ".join(map(str, trunk.hidden)), f"init {trunk.init}"]
    if isinstance(trunk, MinAtarCnn):
        return [f"{trunk.channels} filters 3×3", f"init {trunk.init}"]
    return ["32×8×8/4, 64×4×4/2,", "64×3×3/1", f"init {trunk.init}"]


def head_says(head: Head, spec: AgentSpec) -> list[str]:
    hidden = ", ".join(map(str, head.hidden))
    if isinstance(head, (Actor, GaussianActor)):
        return actor_says(head, hidden)
    noun = "Q-function" if head.members == 1 else "Q-functions"
    if isinstance(head, Ensemble):
        lines = [f"{head.k} {noun}, {hidden} hidden units"]
        lines.append(f"{_target(head, spec)}, {head.error} loss")
        if head.mask_prob < 1:
            lines.append(f"each head sees {head.mask_prob:g} of the data")
        if head.prior_scale > 0:
            lines.append(f"randomized priors, scale {head.prior_scale:g}")
    elif isinstance(head, Bayesian):
        lines = [
            f"regression on {hidden} hidden units",
            f"{head.k} weights drawn from its posterior",
            f"prior sd {head.prior_std:g}, noise sd {head.noise_std:g}",
            f"fitted to {head.fit_batch:,} transitions",
            f"{_target(head, spec)}, {head.error} loss",
        ]
    else:
        lines = [f"{_shape(head)}, {hidden} hidden units", _target(head, spec)]
    if head.dueling:
        lines.append("dueling: value + advantage")
    if head.noisy > 0:
        lines.append(f"noisy weights, σ₀ = {head.noisy:g}")
    return lines


def _shape(head: Categorical | Quantile | Implicit) -> str:
    if isinstance(head, Categorical):
        return f"{head.atoms} atoms on [{head.v_min:g}, {head.v_max:g}]"
    if isinstance(head, Quantile):
        return f"{head.quantiles} quantiles, κ = {head.kappa:g}"
    return f"N = {head.samples}, K = {head.act_samples}, κ = {head.kappa:g}"


def actor_says(head: Actor | GaussianActor, hidden: str) -> list[str]:
    climbs = {"mean": "the mean of the critics", "first": "the first critic"}
    lines = [f"an action, {hidden} hidden units"]
    lines.append(f"climbs {climbs.get(head.climbs, 'the smallest critic')}")
    if head.delay > 1:
        lines.append(f"every {head.delay} updates")
    if isinstance(head, GaussianActor):
        lines.append(f"entropy {head.entropy:g} a number")
    elif head.smoothing:
        lines.append(f"smoothed by {head.smoothing:g}, at most {head.smoothing_clip:g}")
    return lines


def _target(head: MlpHead, spec: AgentSpec) -> str:
    if spec.actor is not None:
        actor = spec.heads[spec.actor]
        assert isinstance(actor, (Actor, GaussianActor))
        alone = head.members == 1 or actor.targets == "own"
        return "its own target" if alone else "smallest target"
    return "double targets" if head.double else "targets by their own max"


def rule_says(rule: Rule) -> list[str]:
    if isinstance(rule, GaussianNoise):
        return [f"+ {rule.scale:g}·N(0, 1)"]
    if isinstance(rule, OuNoise):
        return ["+ x, a process with", f"θ = {rule.theta:g}, scale {rule.scale:g}"]
    if rule.follows_actor:
        return ["a draw"] if isinstance(rule, Sample) else ["the actor’s action"]
    if isinstance(rule, Ids):
        noise = f"ρ² = {rule.rho2:g}" if rule.noise == "constant" else f"noise {rule.noise}"
        floor = [f"ρ² ≥ {rule.rho2_floor:g}"] if rule.noise == "normalized" else []
        gain = f"{rule.regret} regret, {rule.info_gain} gain"
        return [f"λ = {rule.lam:g}, {noise}", *floor, gain, rule.policy]
    if isinstance(rule, EpsilonGreedy):
        return [f"ε {rule.start:g} → {rule.end:g}", f"in {rule.decay_steps:,} steps"]
    if isinstance(rule, Ucb):
        return [f"max of μ + {rule.lam:g}·σ"]
    if isinstance(rule, ReturnThompson):
        return ["a head per episode,", "a return per step"]
    if isinstance(rule, Thompson):
        return ["a head per episode"]
    return ["of the heads’ best actions"] if isinstance(rule, Vote) else ["max of the mean"]


def told(spec: AgentSpec, rule: Rule) -> dict[str, str]:
    """Which heads a rule listens to, and for what."""
    q = max(spec.heads, key=lambda key: spec.heads[key].members)
    z = next((key for key, head in spec.heads.items() if head.knows_variance), None)
    if rule.follows_actor:
        assert spec.actor is not None
        return {spec.actor: "a"}
    if spec.actor is not None:
        names = {"ids": "μ, σ", "ucb": "μ, σ", "thompson": "Qₖ"}
        noise = {z: "ρ²"} if z is not None and isinstance(rule, Ids) else {}
        return {q: names.get(rule.kind, "mean")} | noise | {spec.actor: "candidates"}
    if isinstance(rule, Ids):
        with_noise = z is not None and rule.noise != "constant"
        return {q: "μ, σ"} | ({z: "ρ²"} if with_noise and z is not None else {})
    if isinstance(rule, ReturnThompson) and z is not None:
        return {q: "Qₖ", z: "Z − E Z"}
    if isinstance(rule, Ucb):
        return {q: "μ, σ"}
    return {q: "Qₖ" if isinstance(rule, (Thompson, Vote)) else "mean"}


def learning_says(spec: AgentSpec) -> list[str]:
    learning = spec.learning
    return [
        f"replay of {learning.replay_capacity:,} steps, {_drawn(learning)}; "
        f"batch {learning.batch_size}, {learning.n_step}-step targets, γ = {learning.gamma:g}",
        _optimiser(spec.optimiser),
        f"an update every {learning.update_every_steps} steps, {_renewed(learning)}, "
        f"from step {learning.learning_starts_steps:,} on",
    ]


def _renewed(learning: Learning) -> str:
    every = learning.target_every_steps
    if learning.tau == 1:
        return f"target copied every {every:,}"
    return f"target moved by {learning.tau:g} every {every:,}"


def _drawn(learning: Learning) -> str:
    if not learning.priority:
        return "drawn uniformly"
    return f"drawn by TD error, α = {learning.priority:g}, β {learning.importance:g} → 1"


def _optimiser(optimiser: Adam | RmsProp) -> str:
    if isinstance(optimiser, Adam):
        says = f"Adam, lr {optimiser.lr:g}, β₂ {optimiser.b2:g}, ε {optimiser.eps:.3g}"
    else:
        says = f"centred RMSProp, lr {optimiser.lr:g}, decay {optimiser.decay:g}"
        says += f", ε {optimiser.eps:g}"
    clip = optimiser.max_grad_norm
    return says + (f", gradient norm ≤ {clip:g}" if clip else "")


# -- shapes ---------------------------------------------------------------------------------------


def _trunk_to_head(middle: float, head_y: float, head: Head) -> list[str]:
    """Features forward, and the share of the gradient that comes back."""
    right, left = TRUNK_X + TRUNK_W, HEAD_X - 4
    back = (left, head_y + 6, right + 6, middle + 6)
    share = head.trunk_share
    parts = _arrow(right + 2, middle - 6, left, head_y - 6, INK)
    if share:
        parts += _arrow(*back, GRADIENT, dashed=True)
        parts.append(_label(*back, 0.42, f"gradient × {share:.3g}", GRADIENT))
    else:
        parts.append(_label(*back, 0.42, "no gradient", SOFT))
    return parts


def _height(lines: list[str]) -> float:
    return 2 * PAD + LINE * len(lines) - 4


def _frame(x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" '
        f'fill="#f6f6f6" stroke="{INK}"/>'
    )


def _box(x: float, y: float, width: float, lines: list[str]) -> str:
    rows = [_text(x + PAD, y + PAD + 9, lines[0], weight="bold")]
    rows += [_text(x + PAD, y + PAD + 9 + LINE * n, s) for n, s in enumerate(lines[1:], 1)]
    return "\n".join([_frame(x, y, width, _height(lines)), *rows])


def _text(x, y, text, fill=INK, anchor="start", size=12, weight="normal") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" fill="{fill}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )


def _label(x1, y1, x2, y2, along: float, text: str, fill: str) -> str:
    """Text on an arrow, with a white rim that keeps it readable."""
    x, y = x1 + along * (x2 - x1), y1 + along * (y2 - y1) + 4
    rim = 'paint-order="stroke" stroke="white" stroke-width="5" '
    return _text(x, y, text, fill, anchor="middle").replace("<text ", "<text " + rim)


def _arrow(x1, y1, x2, y2, tint, dashed=False) -> list[str]:
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    tip = [(x2, y2), (x2 - 7 * ux - 3.5 * uy, y2 - 7 * uy + 3.5 * ux),
           (x2 - 7 * ux + 3.5 * uy, y2 - 7 * uy - 3.5 * ux)]  # fmt: skip
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in tip)
    line = f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{tint}"{dash}/>'
    return [line, f'<polygon points="{points}" fill="{tint}"/>']


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in agent_names():
        (FOLDER / f"{name}.svg").write_text(draw(name, declared(name)), encoding="utf-8")


if __name__ == "__main__":
    main()

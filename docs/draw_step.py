"""Draws the path of an observation, an action and an update through the rooms of the house.

python docs/draw_step.py        # writes docs/images/step.svg
"""

from __future__ import annotations

from html import escape
from pathlib import Path

FILE = Path(__file__).parent / "images" / "step.svg"
WIDTH, HEIGHT = 860, 575
INK, SOFT, ACT, LEARN, OUT = "#222222", "#777777", "#0072B2", "#D55E00", "#009E73"

# name: x, y, width, height, room, what it does
BOXES = {
    "env": (30, 70, 150, 84, "envs/", ["reset, step", "allowed actions"]),
    "trunk": (250, 70, 130, 84, "networks/trunks", ["observation", "→ features"]),
    "heads": (430, 70, 150, 84, "networks/heads", ["features → Q [K, A],", "returns"]),
    "rule": (640, 70, 190, 84, "agents/ + ids/, rules.py", ["beliefs, context", "→ Decision"]),
    "add": (30, 250, 150, 84, "replay/ring", ["add: every observation", "is stored once"]),
    "sample": (250, 250, 130, 84, "replay/", ["sample: uniform,", "or by sum_tree"]),
    "loss": (430, 250, 150, 84, "losses.py, by heads", ["targets, TD errors,", "a loss per head"]),
    "update": (640, 250, 190, 84, "agents/ + Optax", ["gradients by head,", "optimiser"]),
    "loop": (30, 430, 350, 60, "training/loop", ["drives blocks, evaluates, yields Progress"]),
    "session": (430, 430, 150, 60, "runs/session", ["feeds what follows"]),
    "storage": (640, 410, 190, 48, "storage/", ["tables, checkpoints, sinks"]),
    "shown": (640, 476, 190, 48, "runs/", ["display, callbacks"]),
}  # fmt: skip


def box(x: int, y: int, w: int, h: int, room: str, lines: list[str], colour: str) -> str:
    texts = [f'<text x="{x + 10}" y="{y + 20}" font-weight="bold">{escape(room)}</text>']
    for i, line in enumerate(lines):
        texts.append(f'<text x="{x + 10}" y="{y + 39 + 17 * i}">{escape(line)}</text>')
    frame = (
        f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="6" fill="white" stroke="{colour}"/>'
    )
    return frame + "".join(texts)


def arrow(points: list[tuple[int, int]], colour: str, label: str = "", at=(0, 0)) -> str:
    path = " ".join(f"{'M' if i == 0 else 'L'}{x},{y}" for i, (x, y) in enumerate(points))
    marker = {ACT: "act", LEARN: "learn", OUT: "out"}[colour]
    style = f'fill="none" stroke="{colour}" stroke-width="2" marker-end="url(#{marker})"'
    line = f'<path d="{path}" {style}/>'
    text = f'<text x="{at[0]}" y="{at[1]}" fill="{colour}" font-size="12">{escape(label)}</text>'
    return line + (text if label else "")


def draw() -> str:
    parts = []
    for i, facts in enumerate(BOXES.values()):
        parts.append(box(*facts, (ACT, LEARN, OUT)[i // 4]))
    parts += [
        arrow([(180, 100), (250, 100)], ACT, "s", (208, 93)),
        arrow([(380, 112), (430, 112)], ACT),
        arrow([(580, 112), (640, 112)], ACT, "beliefs", (586, 104)),
        arrow([(735, 70), (735, 36), (105, 36), (105, 70)], ACT, "action", (400, 29)),
        arrow([(105, 154), (105, 250)], LEARN, "s, a, r, end, allowed", (113, 206)),
        arrow([(180, 292), (250, 292)], LEARN),
        arrow([(380, 292), (430, 292)], LEARN, "batch", (388, 285)),
        arrow([(580, 292), (640, 292)], LEARN),
        arrow([(735, 250), (735, 206), (505, 206), (505, 154)], LEARN, "new weights", (585, 199)),
        arrow([(505, 206), (315, 206), (315, 154)], LEARN),
        arrow([(470, 250), (470, 226), (330, 226), (330, 250)], LEARN, "TD priorities", (362, 242)),
        arrow([(380, 460), (430, 460)], OUT),
        arrow([(580, 450), (610, 450), (610, 434), (640, 434)], OUT),
        arrow([(580, 470), (610, 470), (610, 500), (640, 500)], OUT),
    ]
    heads = "".join(
        f'<marker id="{name}" markerWidth="9" markerHeight="9" '
        f'markerUnits="userSpaceOnUse" refX="8" refY="4.5" orient="auto">'
        f'<path d="M0,0 L9,4.5 L0,9 z" fill="{colour}"/></marker>'
        for name, colour in (("act", ACT), ("learn", LEARN), ("out", OUT))
    )
    frame = (
        f'<rect x="12" y="8" width="836" height="366" rx="10" fill="#f7f7f7" stroke="{SOFT}"'
        ' stroke-dasharray="5 4"/>'
        f'<text x="30" y="364" fill="{SOFT}">training/compiled: all of this is one jitted program; '
        "training/hosted: the same, with environments on the host</text>"
        f'<text x="30" y="560" fill="{SOFT}">TrainState (weights, target, optimiser, replay, '
        "environments, keys) goes in and comes out: one pytree, saved as it is.</text>"
    )
    down = arrow([(205, 374), (205, 430)], OUT, "episodes, metrics, scores", (215, 408))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="13" fill="{INK}">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/><defs>{heads}</defs>'
        f"{frame}{''.join(parts)}{down}</svg>\n"
    )


if __name__ == "__main__":
    FILE.write_text(draw(), encoding="utf-8")

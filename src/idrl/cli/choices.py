"""Which weights of a run play, and by which of its rules: options that several commands have."""

from __future__ import annotations

from typing import Any

_RULES = {"evaluate": "the one it is evaluated with", "explore": "the one it explores with"}


def add_weights(command: Any) -> None:
    command.add_argument(
        "--weights", choices=("best", "latest"), default="best",
        help="which weights of a run (default: best)",
    )  # fmt: skip


def add_act(command: Any, default: str) -> None:
    (other,) = set(_RULES) - {default}
    command.add_argument(
        "--act", choices=(default, other), default=default,
        help=f"by which rule to act: {_RULES[default]} (default), or {_RULES[other]}",
    )  # fmt: skip

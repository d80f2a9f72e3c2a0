"""Counts on the command line."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """A whole number; 10k, 1e6 and 2M are understood."""
    scale = {"k": 10**3, "m": 10**6}.get(text[-1:].lower(), 1)
    try:
        value = float(text[:-1] if scale > 1 else text) * scale
        if value != int(value):
            raise ValueError
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return int(value)

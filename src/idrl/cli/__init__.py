"""The command line: parse, call, print."""

from idrl.cli.app import main

__all__ = ["main"]

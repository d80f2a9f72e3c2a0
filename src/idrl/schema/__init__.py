"""Frozen dataclasses ↔ plain dictionaries, strictly: unknown keys and wrong types are refused.

A field typed as a category of parts (`Part`) is told apart by their `kind`. Nothing here evaluates
text or imports what a file names: a config picks only among the kinds that code has registered.
"""

from idrl.schema.building import build, to_dict
from idrl.schema.parts import Part, first_paragraph, same_place
from idrl.schema.tables import current_names, flat, merge, nested, parse_assignment

__all__ = [
    "Part",
    "build",
    "current_names",
    "first_paragraph",
    "flat",
    "merge",
    "nested",
    "parse_assignment",
    "same_place",
    "to_dict",
]

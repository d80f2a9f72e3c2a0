"""The whole configuration of a run: declaration, preset, file, command line."""

from idrl.config.resolving import (
    RunConfig,
    assignments,
    changes_of,
    in_frames,
    read_config,
    resolve,
    table_of,
)

__all__ = [
    "RunConfig",
    "assignments",
    "changes_of",
    "in_frames",
    "read_config",
    "resolve",
    "table_of",
]

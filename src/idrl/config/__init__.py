"""The whole configuration of a run: declaration, preset, file, command line."""

from idrl.config.resolving import RunConfig, assignments, in_frames, read_config, resolve

__all__ = ["RunConfig", "assignments", "in_frames", "read_config", "resolve"]

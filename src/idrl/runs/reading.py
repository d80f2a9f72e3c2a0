"""The config of a run that is on the disk, with the plugins that it takes to read it."""

from __future__ import annotations

from idrl.config import RunConfig
from idrl.envs import find
from idrl.schema import build
from idrl.storage.folder import RunFolder
from idrl.system import plugins


def read_run(folder: RunFolder) -> RunConfig:
    """Refuses a run whose plugins are not there; see `plugins.need`."""
    plugins.need(folder.read_about().get("plugins", []), f"the run {str(folder.path)!r}")
    return build(RunConfig, folder.read_config())


def modules_of(config: RunConfig) -> list[str]:
    """Of the parts that a run is made of, and of the family of its environment."""
    rules = (config.explore, config.evaluate)
    parts = [config.trunk, *config.heads.values(), *rules, config.optimiser]
    family = find(config.env)
    return [type(part).__module__ for part in parts] + ([family.module] if family else [])

"""The config of a run that is on the disk, with the plugins that it takes to read it."""

from __future__ import annotations

from idrl.config import RunConfig
from idrl.envs import find
from idrl.errors import IdrlError
from idrl.schema import build
from idrl.storage.folder import RunFolder
from idrl.system import plugins


def read_run(folder: RunFolder) -> RunConfig:
    """Refuses a run whose plugins are not there; see `plugins.need`."""
    wanted = folder.read_about().get("plugins", [])
    plugins.need(wanted, f"the run {str(folder.path)!r}")
    try:
        return build(RunConfig, folder.read_config())
    except IdrlError as error:
        if not any(one["name"] == "__main__" for one in wanted):
            raise
        raise IdrlError(
            f"{error} The run was made by a script with parts of its own: name a file that "
            "registers them with --plugin."
        ) from None


def modules_of(config: RunConfig) -> list[str]:
    """Of the parts that a run is made of, and of the family of its environment."""
    rules = (config.explore, config.evaluate)
    parts = [config.trunk, *config.heads.values(), *rules, config.optimiser]
    family = find(config.env)
    return [type(part).__module__ for part in parts] + ([family.module] if family else [])

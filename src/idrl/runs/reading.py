"""The config of a run that is on the disk, with the plugins that it takes to read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from idrl.config import RunConfig
from idrl.envs import find
from idrl.errors import IdrlError
from idrl.schema import build
from idrl.storage import sinks
from idrl.storage.folder import RunFolder
from idrl.system import plugins
from idrl.system.devices import prepare


def read_run(folder: RunFolder) -> RunConfig:
    """Refuses a run whose plugins are not there; see `plugins.need`."""
    about = folder.read_about()
    what = f"the run {str(folder.path)!r}"
    if about.get("baseline"):
        raise IdrlError(
            f"{str(folder.path)!r} holds the scores of a baseline and no agent; idrl report and "
            "idrl compare read it."
        )
    return build_config(
        folder.read_config(), about.get("plugins", []), what, bool(about.get("deterministic"))
    )


def build_config(
    data: dict[str, Any], wanted: list[dict[str, str]], what: str, deterministic: bool = False
) -> RunConfig:
    """Of `what` somebody saved, which was made with the plugins `wanted`."""
    if wanted:
        prepare(deterministic)  # an import may be the first to use JAX
    plugins.need(wanted, what)
    try:
        return build(RunConfig, data)
    except IdrlError as error:
        raise IdrlError(f"{error}{_of_a_script(wanted)}") from None


def _of_a_script(wanted: list[dict[str, str]]) -> str:
    if not any(one["name"] == "__main__" for one in wanted):
        return ""
    return (
        " It was made by a script with parts of its own: name a file that registers them with "
        "--plugin."
    )


def modules_of(config: RunConfig, kinds: Iterable[str] = ()) -> list[str]:
    """Of the parts that a run is made of, of the family of its environment, and of the `kinds` of
    sinks that it has."""
    rules = (config.explore, config.evaluate)
    parts = [config.trunk, *config.heads.values(), *rules, config.optimiser]
    family = find(config.env)
    told = [sinks.KINDS[kind].__module__ for kind in kinds]
    return [type(part).__module__ for part in parts] + ([family.module] if family else []) + told

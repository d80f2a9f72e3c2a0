"""What a run folder of an older format says, in the words of this one."""

from __future__ import annotations

from typing import Any

from idrl.schema import current_names

# Until format 2 MinAtar's games had gymnax's time limits, and their names did not say so.
_MINATAR_LIMIT = {"freeway": 2_500}
_LIMIT = 1_000
# Until format 3 these games had gymnax's rules.
_GYMNAX_RULES = ("asterix", "seaquest")


def in_todays_words(config: dict[str, Any], version: Any) -> dict[str, Any]:
    """A config as it was written in a folder of format `version`."""
    config = current_names(config)
    env = config.get("env")
    if version not in (1, 2) or not isinstance(env, str) or not env.startswith("minatar/"):
        return config
    path, mark, query = env.partition("?")
    options = query.split("&") if mark else []
    said = {option.partition("=")[0] for option in options}  # what is there, was resumed since
    game = path.removeprefix("minatar/")
    if version == 1 and "limit" not in said:
        options.append(f"limit={_MINATAR_LIMIT.get(game, _LIMIT)}")
    if game in _GYMNAX_RULES and "rules" not in said:
        options.append("rules=gymnax")
    return config | {"env": f"{path}?{'&'.join(options)}" if options else path}

"""What a run folder of an older format says, in the words of this one."""

from __future__ import annotations

from typing import Any

from idrl.schema import current_names

# Until format 2 MinAtar's games had gymnax's time limits, and their names did not say so.
_MINATAR_LIMIT = {"freeway": 2_500}
_LIMIT = 1_000


def in_todays_words(config: dict[str, Any], version: Any) -> dict[str, Any]:
    """A config as it was written in a folder of format `version`."""
    config = current_names(config)
    env = config.get("env")
    if version != 1 or not isinstance(env, str) or not env.startswith("minatar/"):
        return config
    path, mark, options = env.partition("?")
    if any(option.startswith("limit=") for option in options.split("&")):
        return config  # resumed since
    limit = _MINATAR_LIMIT.get(path.removeprefix("minatar/"), _LIMIT)
    return config | {"env": f"{path}?{options}{'&' if mark else ''}limit={limit}"}

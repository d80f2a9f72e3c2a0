"""A run that is over in seconds. Who trains the same one finds its programs compiled."""

import idrl

SETTINGS = {
    "trunk": {"hidden": [8]},
    "heads": {"q": {"hidden": [8], "k": 3}},
    "learning": {"learning_starts_steps": 20, "replay_capacity": 500},
    "training": {"log_every_steps": 100, "distributions_every_steps": 200},
    "evaluation": {"every_steps": 100, "steps": 40, "envs": 2},
}


def train(out, **changes):
    options = {"steps": 400, "seeds": 2, "seed": 5, "settings": SETTINGS} | changes
    return idrl.train("dqn-ids", "deep_sea/4", out=out, **options)

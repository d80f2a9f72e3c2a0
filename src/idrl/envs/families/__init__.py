"""The families that come with the package, one file each, which declares all there is to it.

They are declared as one's own are; whoever looks for an example finds one here.
"""

import importlib

DEFAULT = "deep_sea/10"  # the task of who names none

for _name in (
    "deep_sea", "grid", "maze", "noisy_push", "noisy_chain", "heteroscedastic", "minatar",
    "cartpole", "acrobot", "mountain_car", "pendulum", "mountain_car_continuous", "reacher",
    "bsuite", "atari", "gymnax", "brax", "gym",
):  # fmt: skip
    importlib.import_module(f"{__name__}.{_name}")

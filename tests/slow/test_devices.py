"""Seeds over several devices: a seed draws the same numbers on any of them, the same number of
devices repeats every bit, and another number rounds sums differently."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import idrl
from idrl.runs.run import newest_checkpoint

HERE = Path(__file__).parent
COUNTS = (1, 2, 4)
TABLES = ("metrics.csv", "evaluations.csv", "episodes.csv", "distributions.csv")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The same four seeds on one, two and four devices of the CPU, a process each."""
    folders = {}
    for count in COUNTS:
        folders[count] = tmp_path_factory.mktemp(f"devices-{count}")
        flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={count}"
        env = os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join(sys.path)}
        script = [sys.executable, str(HERE / "devices.py"), str(folders[count])]
        done = subprocess.run(script, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folders


def test_a_seed_draws_the_same_numbers_on_any_device(trained):
    """Weights, random transitions and the batch of the first update, bit for bit."""
    one, *others = (np.load(trained[count] / "first.npz") for count in COUNTS)
    assert sum("replay" in name for name in one) >= 2
    for other in others:
        assert one.files == other.files
        assert [n for n in one.files if one[n].tobytes() != other[n].tobytes()] == []


@pytest.mark.parametrize("count", COUNTS)
def test_as_many_devices_repeat_every_bit(trained, count):
    runs = [idrl.open_run(trained[count] / name) for name in ("compiled", "again")]
    for table in TABLES:
        assert len({(run.path / table).read_bytes() for run in runs}) == 1
    states = [(newest_checkpoint(run) / "state.safetensors").read_bytes() for run in runs]
    assert states[0] == states[1]


@pytest.mark.parametrize("loop", ["compiled", "hosted"])
@pytest.mark.parametrize("count", COUNTS[1:])
def test_another_number_of_devices_differs_by_rounding_alone(trained, loop, count):
    """Over these few hundred steps; actions are the same, so episodes and scores are."""
    one, other = (trained[n] / loop for n in (1, count))
    for table in ("evaluations.csv", "episodes.csv"):
        assert (one / table).read_bytes() == (other / table).read_bytes()
    ours, theirs = (idrl.open_run(run).metrics for run in (one, other))
    for name in ours.columns:
        assert ours[name] == pytest.approx(theirs[name], rel=1e-3, abs=1e-5, nan_ok=True), name

"""`benchmarks.killed` on made-up run folders: what it finds equal."""

import numpy as np
import pytest
from benchmarks import killed
from safetensors.numpy import save_file


@pytest.fixture
def runs(tmp_path):
    found = tmp_path / "whole", tmp_path / "killed"
    for run in found:
        place = run / "checkpoints" / "step-000000001512"
        place.mkdir(parents=True)
        save_file({"q": np.arange(3.0), "t": np.int32([7])}, place / "state.safetensors")
        (run / "evaluations.csv").write_text("seed,steps\n0,500\n")
    return found


def test_runs_in_which_no_episode_ended_can_be_equal(runs):
    assert killed.differences(*runs) == (2, [])


def test_a_table_that_one_of_them_lacks_differs(runs):
    (runs[1] / "episodes.csv").write_text("seed,episode\n")
    assert killed.differences(*runs) == (2, ["episodes.csv"])


def test_a_run_that_was_stopped_without_a_checkpoint_ends_it(tmp_path, monkeypatch):
    """Begun again it would be equal, and nothing would have been resumed."""

    class Process:
        def poll(self):
            return None

        def kill(self):
            pass

        def send_signal(self, how):
            pass

        def wait(self):
            return 130

    def started(out, *arguments):
        out.mkdir()
        (out / "config.toml").write_text("training.steps = 90")
        (out / "metrics.csv").write_text("seed,steps\n0,40\n")
        return Process()

    monkeypatch.setattr(killed, "started", started)
    monkeypatch.setattr("sys.argv", ["killed", "--out", str(tmp_path / "out"), "dqn", "deep_sea/4"])
    with pytest.raises(SystemExit, match="SIGTERM made no checkpoint"):
        killed.main()

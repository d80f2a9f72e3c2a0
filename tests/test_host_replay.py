"""A replay in the host's memory learns what one on the device does."""

import jax
import numpy as np
import pytest
from displays import Dies
from films import Film
from safetensors.numpy import load

import idrl
from idrl.config import resolve
from idrl.errors import IdrlError
from idrl.replay import ring
from idrl.replay.host import HostObservations
from idrl.runs import saving
from idrl.runs.session import make_program
from idrl.storage import checkpoint, segments
from idrl.training.loop import train

SETTINGS = {
    "seeds": 2,
    "learning": {
        "learning_starts_steps": 40, "replay_capacity": 100, "target_every_steps": 50,
        "batch_size": 4, "update_every_steps": 2,
    },
    "training": {"steps": 400, "envs": 2, "log_every_steps": 100, "distributions_every_steps": 100},
    "evaluation": {"every_steps": 100, "steps": 30, "envs": 3},
}  # fmt: skip
HOST = {"learning": {"replay_place": "host"}}


def trained(agent, out, *more, **how):
    changes = {"learning": {}}
    for change in (SETTINGS, *more):
        changes = idrl.schema.merge(changes, change)
    return idrl.train(agent, Film, settings=changes, out=out, **how).path


def weights(path):
    place = checkpoint.listed(path / "checkpoints")[-1]
    return (place / checkpoint.ARRAYS).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "more"), [
    ("dqn-ids", {"heads": {"q": {"hidden": [8]}}}),
    ("rainbow", {"heads": {"z": {"hidden": [8]}}}),  # priorities, n-step returns
    ("qr-dqn", {"heads": {"z": {"hidden": [8]}}, "learning": {"unit": "measured"}}),
])  # fmt: skip
def test_the_place_of_the_replay_changes_nothing(agent, more, tmp_path):
    device = trained(agent, tmp_path / "device", more)
    host = trained(agent, tmp_path / "host", more, HOST)
    # The same transitions are drawn; other programs learn from them, which may round otherwise.
    assert (device / "episodes.csv").read_bytes() == (host / "episodes.csv").read_bytes()
    ours, theirs = (load(weights(path)) for path in (host, device))
    for name in ours:
        if name.startswith(("agent/", "replay/facts")):
            np.testing.assert_allclose(ours[name], theirs[name], 1e-3, 1e-5, err_msg=name)


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "CHECKPOINT_SECONDS", 0)
    monkeypatch.setattr(segments, "PIECE_BYTES", 20 * 4 * 64)
    whole = trained("dqn", tmp_path / "whole", HOST)
    path = tmp_path / "killed"
    with pytest.raises(MemoryError):
        trained("dqn", path, HOST, display=Dies(320))
    idrl.train(resume=path, env=Film)
    assert weights(path) == weights(whole)
    for name in ("evaluations.csv", "episodes.csv", "metrics.csv"):
        assert (path / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.parametrize("stack", [ring.WHOLE, ring.Stack(3), ring.Stack(3, repeat_first=True)])
def test_the_host_finds_what_the_device_would(stack):
    rng, rows, envs, batch = np.random.default_rng(0), 20, 2, 64
    replay = None
    for t in range(33):  # the ring is written over
        row = ring.Row(
            rng.normal(size=(envs, 4)).astype(np.float32), np.zeros(envs, np.int32),
            np.zeros(envs), np.zeros(envs, bool), rng.random(envs) < 0.8,
        )  # fmt: skip
        replay = ring.empty(row, rows) if replay is None else replay
        replay = ring.add(replay, row, t)
    key = jax.random.key(0)
    wanted = ring.sample(replay, key, 33, batch, 0.9, 2, stack=stack)
    drawn = ring.sample(replay._replace(obs=None), key, 33, batch, 0.9, 2, stack=stack)
    kept = HostObservations(np.asarray(replay.obs)[None], np.zeros((1, envs, 4)))
    first = jax.tree.map(lambda x: x[None], drawn)  # of one seed
    for found, address, name in zip(kept.read(first), (drawn.s_tm1, drawn.s_t), ("s_tm1", "s_t"),
                                    strict=True):  # fmt: skip
        found = ring.stacked(found[0], address.there, stack)
        assert np.array_equal(found, getattr(wanted, name)), name
    kept.close()


@pytest.mark.slow
def test_nothing_of_the_frames_is_on_the_device():
    config = resolve("dqn", "film", changes=[SETTINGS, HOST], obs_shape=Film.obs_shape)
    program = make_program(config, Film())
    progress = next(iter(train(program, None, 0, program.seed_keys(0))))
    obs = progress.state.replay.obs
    assert type(obs) is np.ndarray
    assert obs.shape == (2, 50, 2, 8, 8)
    assert obs.any()
    assert not [x.shape for x in jax.live_arrays() if x.shape[-4:] == obs.shape[1:]]
    program.close()


def test_where_it_cannot_be_it_is_refused(tmp_path):
    with pytest.raises(IdrlError, match="runs on the device, and its replay is there too: omit it"):
        idrl.train("dqn", "cartpole", settings=HOST, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(IdrlError, match="set learning.replay_place=device"):
        idrl.train("bdqn", Film, settings=HOST, out=tmp_path / "run")

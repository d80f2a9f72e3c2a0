"""`learning.precision=auto`: what a run on this machine records, and on a GPU."""

from types import SimpleNamespace

import pytest

import idrl
from idrl.config import resolve
from idrl.runs import api
from idrl.schema import flat, to_dict


@pytest.fixture
def recorded(monkeypatch):
    """The precision that `idrl.train` would record on a device of some kind."""

    def call(kind, agent="dqn", env="minatar/breakout", capability="9.0", **settings):
        found = []

        def stop(spec, config, world):
            found.append(config.learning.precision)
            raise idrl.IdrlError("enough.")

        monkeypatch.setattr(api, "_check_here", stop)
        monkeypatch.setattr(api.jax, "default_backend", lambda: kind)
        if kind == "gpu":
            device = SimpleNamespace(compute_capability=capability, device_kind="a GPU")
            monkeypatch.setattr(api.jax, "local_devices", lambda: [device])
        with pytest.raises(idrl.IdrlError, match="enough"):
            idrl.train(agent, env, settings=settings)
        return found[0]

    return call


@pytest.mark.parametrize(("kind", "precision"), [("gpu", "mixed"), ("cpu", "full")])
def test_a_run_records_what_it_computes_in(recorded, kind, precision):
    assert recorded(kind, **{"learning.precision": "auto"}) == precision
    assert recorded(kind, **{"learning.precision": "mixed"}) == "mixed"
    assert recorded(kind) == "full"  # small networks are not worth it


@pytest.mark.parametrize(
    ("capability", "precision"),
    [("8.0", "mixed"), ("12.0", "mixed"), ("7.5", "full"), ("gfx90a", "full"), ("", "full")],
)
def test_only_where_the_gpu_has_bfloat16(recorded, capability, precision):
    auto = {"learning.precision": "auto"}
    assert recorded("gpu", capability=capability, **auto) == precision


def test_continuous_actions_are_in_full(recorded):
    assert recorded("gpu", "td3", "pendulum", **{"learning.precision": "auto"}) == "full"


def test_a_run_on_a_cpu_can_be_resumed_anywhere(tmp_path):
    small = {"learning.precision": "auto", "learning.learning_starts_steps": 32}
    run = idrl.train("dqn", "deep_sea/4", steps=64, settings=small, out=tmp_path / "run")
    assert run.config.learning.precision == "full"
    assert 'precision = "full"' in (tmp_path / "run/config.toml").read_text()
    assert idrl.train(resume=run, steps=128, settings=small).steps == 128  # "auto" is what it was


def test_atari_asks_for_it():
    def precision(agent="c51-ids", env="atari/pong", **how):
        return flat(to_dict(resolve(agent, env, **how)))["learning.precision"]

    assert {precision(named=name) for name in (None, "paper", "sticky", "short")} == {"auto"}
    assert precision(named="release") == precision(env="minatar/breakout") == "full"
    # a run of before keeps what it had
    assert precision(None, None, file=to_dict(resolve("dqn", "atari/pong", named="release"))) == (
        "full"
    )

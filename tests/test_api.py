"""The Python interface: environments of one's own, names for them, resume, damaged checkpoints."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import idrl
from idrl.envs.probes import probes

SMALL = {
    "trunk": {"hidden": [8]},
    "heads": {"q": {"hidden": [8]}},
    "learning": {"learning_starts_steps": 20, "replay_capacity": 500},
    "training": {"envs": 2, "log_every_steps": 100},
    "evaluation": {"every_steps": 100, "steps": 40, "envs": 2},
}


class Corridor:
    """Walk right to the end: an environment as a user would write it."""

    num_actions, obs_shape = 2, (1,)

    def task(self, key):
        return ()

    def reset(self, task, key):
        return jnp.int32(0), jnp.zeros(1)

    def step(self, task, state, action, key):
        state = jnp.maximum(state + 2 * action - 1, 0)
        done = state >= 3
        obs = jnp.ones(1) * state
        return state, idrl.Step(obs, jnp.where(done, 1.0, 0.0), done, jnp.bool_(False))


def test_an_object_a_factory_and_a_name_train_alike(tmp_path):
    idrl.register_env("corridor", Corridor)
    runs = [
        idrl.train("dqn", env, steps=200, settings=SMALL, out=tmp_path / str(i))
        for i, env in enumerate((Corridor(), Corridor, "corridor"))
    ]
    tables = {(run.path / "evaluations.csv").read_bytes() for run in runs}
    assert len(tables) == 1
    assert len(runs[0].evaluations) == 2
    with pytest.raises(idrl.IdrlError, match="exists already"):
        idrl.register_env("corridor", Corridor)
    with pytest.raises(idrl.IdrlError, match="environment object"):
        idrl.train(resume=runs[0].path)
    again = idrl.train(resume=runs[0].path, env=Corridor())  # finished: nothing left to do
    assert len(again.evaluations) == 2
    cut = idrl.evaluate(runs[2], episodes=3, limit_steps=2)  # the goal is three steps away
    assert (cut.episodes.tolist(), cut.length_mean.tolist()) == ([3], [2.0])
    assert cut.return_mean.tolist() == [0.0]


def test_what_is_no_environment_is_refused(tmp_path):
    with pytest.raises(idrl.IdrlError, match="lacks"):
        idrl.train("dqn", object(), out=tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_gymnax_object_trains(tmp_path):
    import gymnax

    env, _ = gymnax.make("Catch-bsuite")
    run = idrl.train("dqn", env, steps=100, settings=SMALL, out=tmp_path / "run")
    assert idrl.load(run).predict(np.zeros((10, 5))).shape == ()


def test_a_registered_agent_trains(tmp_path):
    from idrl.agents import declared

    idrl.register_agent("my-agent", lambda: declared("dqn-ids"), presets="all")
    settings = SMALL | {"heads": {"q": {"hidden": [8], "k": 4}}}
    run = idrl.train("my-agent", probes(), steps=100, settings=settings, out=tmp_path / "run")
    assert run.config.agent == "my-agent"
    with pytest.raises(idrl.IdrlError, match="registered already"):
        idrl.register_agent("my-agent", lambda: declared("dqn"))


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    whole = idrl.train("dqn", Corridor(), steps=300, settings=SMALL, out=tmp_path / "run")
    expected = (whole.path / "evaluations.csv").read_bytes()
    newest = sorted((whole.path / "checkpoints").iterdir())[-1] / "state.safetensors"
    intact = newest.read_bytes()
    middle = len(intact) // 2
    newest.write_bytes(intact[:middle] + bytes([intact[middle] ^ 1]) + intact[middle + 1 :])
    idrl.train(resume=whole.path, env=Corridor())  # from the one before, to the same end
    assert newest.read_bytes() == intact
    assert (whole.path / "evaluations.csv").read_bytes() == expected


def test_one_process_at_a_time(tmp_path):
    run = idrl.train("dqn", Corridor(), steps=100, settings=SMALL, out=tmp_path / "run")
    from idrl.storage.folder import RunFolder

    holder = RunFolder.open(run.path)
    holder.lock()
    with pytest.raises(idrl.IdrlError, match="in use"):
        idrl.train(resume=run.path, env=Corridor())
    holder.unlock()


def test_numbers_gone_wrong_stop_the_run(tmp_path):
    from idrl.errors import TrainingDiverged

    class Broken(Corridor):
        def step(self, task, state, action, key):
            state, step = super().step(task, state, action, key)
            return state, step._replace(reward=jnp.float32(jnp.nan))

    with pytest.raises(TrainingDiverged, match="At step 22 the loss of head q of seed 0"):
        idrl.train("dqn", Broken(), steps=200, settings=SMALL, out=tmp_path / "run")


def test_importing_idrl_is_lazy():
    import subprocess
    import sys

    code = (
        "import sys, idrl; assert 'jax' not in sys.modules; idrl.ids; assert 'jax' in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert jax.devices()

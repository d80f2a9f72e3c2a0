"""The Python interface: environments of one's own, names for them, resume, damaged checkpoints,
loaded agents, records as columns, what the commands are as functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small import SETTINGS, train

import idrl
from idrl.config import resolve
from idrl.envs.probes import probes
from idrl.runs.run import Run
from idrl.storage import checkpoint

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


@pytest.mark.slow
def test_an_object_a_factory_and_a_name_train_alike(tmp_path):
    idrl.register_env("corridor", Corridor)
    runs = [
        idrl.train("dqn", env, steps=200, settings=SMALL, out=tmp_path / str(i))
        for i, env in enumerate((Corridor(), Corridor, "corridor"))
    ]
    tables = {(run.path / "evaluations.csv").read_bytes() for run in runs}
    assert len(tables) == 1
    assert len(runs[0].evaluations) == 2
    episode = idrl.play(runs[0], Corridor())
    assert (episode.title, len(episode.sigma)) == (
        "dqn on Corridor, seed 0, best weights",
        len(episode.action),
    )
    assert idrl.explain(runs[0], Corridor(), step=1).decision.mu.shape == (2,)
    agent = idrl.load(runs[0])
    for call in (idrl.play, idrl.explain, idrl.evaluate):
        for source in (runs[0], agent, agent.save(tmp_path / "agent.safetensors")):
            with pytest.raises(idrl.IdrlError, match="environment object"):
                call(source)
    assert idrl.evaluate(agent, Corridor(), episodes=2).episodes == 2
    name = runs[0].config.env  # which says nothing until something is called so
    idrl.register_env(name, Corridor)
    assert idrl.compare(agent, runs[2], env=name, episodes=2).chance.value == 0.5
    idrl.register_env("corridor", Corridor)  # the same again, as by a notebook's cell
    with pytest.raises(idrl.IdrlError, match="exists already"):
        idrl.register_env("corridor", lambda: Corridor())
    with pytest.raises(idrl.IdrlError, match="environment object"):
        idrl.train(resume=runs[0].path)
    again = idrl.train(resume=runs[0].path, env=Corridor())  # finished: nothing left to do
    assert len(again.evaluations) == 2
    cut = idrl.evaluate(runs[2], episodes=3, limit_steps=2)  # the goal is three steps away
    assert (cut.episodes.tolist(), cut.length_mean.tolist()) == ([3], [2.0])
    assert cut.truncated.tolist() == [3]
    assert cut.return_mean.tolist() == [0.0]


def test_what_is_no_environment_is_refused(tmp_path):
    with pytest.raises(idrl.IdrlError, match="lacks"):
        idrl.train("dqn", object(), out=tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_a_gymnax_object_trains(tmp_path):
    import gymnax

    env, _ = gymnax.make("Catch-bsuite")
    run = idrl.train("dqn", env, steps=100, settings=SMALL, out=tmp_path / "run")
    assert idrl.load(run).predict(np.zeros((10, 5))).shape == ()


@pytest.mark.slow
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


@pytest.mark.parametrize("pending", [False, True])
def test_whether_a_run_is_finished_says_the_manifest_alone(pending, tmp_path):
    """It is asked in loops, and the arrays may be gigabytes."""
    config = resolve("dqn", "cartpole", changes=[{"training": {"steps": 300}}])
    arrays, meta = {"x": np.zeros(3)}, {"pending": pending}
    place = checkpoint.save(tmp_path / "checkpoints", 300, arrays, meta)
    (place / checkpoint.ARRAYS).write_bytes(b"not read")
    assert Run(tmp_path, config).finished == (not pending)


@pytest.mark.slow
def test_a_run_that_was_begun_with_too_small_a_replay_goes_on(tmp_path, monkeypatch):
    """It had the least, which a new run has to ask for."""

    def tables(path, size):
        settings = SETTINGS | {"learning": {"learning_starts_steps": 20, "replay_capacity": size}}
        run = train(path, steps=200, settings=settings)
        monkeypatch.undo()
        run = idrl.train(resume=path, steps=400)
        assert idrl.load(run).config.learning.replay_capacity == size
        return [(path / name).read_bytes() for name in ("metrics.csv", "evaluations.csv")]

    with pytest.raises(idrl.IdrlError, match="replay_capacity is 1; .* it must be at least 3"):
        tables(tmp_path / "refused", 1)
    assert not (tmp_path / "refused").exists()
    monkeypatch.setattr("idrl.runs.api.check_replay", lambda config, env: None)
    assert tables(tmp_path / "before", 1) == tables(tmp_path / "now", 3)


def test_one_process_at_a_time(tmp_path):
    run = idrl.train("dqn", Corridor(), steps=100, settings=SMALL, out=tmp_path / "run")
    from idrl.storage.folder import RunFolder

    holder = RunFolder.open(run.path)
    holder.lock()
    with pytest.raises(idrl.IdrlError, match="in use"):
        idrl.train(resume=run.path, env=Corridor())
    holder.unlock()


@pytest.mark.slow
def test_numbers_gone_wrong_stop_the_run(tmp_path):
    from idrl.errors import TrainingDiverged

    class Broken(Corridor):
        def step(self, task, state, action, key):
            state, step = super().step(task, state, action, key)
            return state, step._replace(reward=jnp.float32(jnp.nan))

    with pytest.raises(TrainingDiverged, match="At step 22 the loss of head q of seed 0"):
        idrl.train("dqn", Broken(), steps=200, settings=SMALL, out=tmp_path / "run")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tmp_path_factory.mktemp("api") / "run", steps=200, seed=0)


@pytest.fixture(scope="module")
def drawing(tmp_path_factory):
    """Two seeds on a task whose draws differ, and which is drawn differently for each."""
    out = tmp_path_factory.mktemp("api") / "drawing"
    settings = SMALL | {"heads": {"q": {"hidden": [8], "k": 3}}}
    return idrl.train(
        "bootstrapped-dqn", "deep_sea/4", seeds=2, steps=200, settings=settings, out=out
    )


@pytest.mark.slow
def test_a_loaded_agent_scores_as_in_its_run(drawing, tmp_path):
    whole = idrl.evaluate(drawing, episodes=5)
    assert whole.return_mean.shape == (2,)
    for seed in drawing.seeds:
        policy = idrl.load(idrl.load(drawing, seed).save(tmp_path / "model.safetensors"))
        alone = idrl.evaluate(policy, episodes=5)
        assert [x.shape for x in alone[:4]] == [()] * 4
        assert float(alone.return_mean) == whole.return_mean[seed]
        assert alone.info["bad"] == whole.info["bad"][seed]
    assert repr(alone).startswith("Score(return_mean=")
    assert repr(policy) == (
        "Policy(bootstrapped-dqn on deep_sea/4, seed 1, observations (4, 4), 2 discrete actions)"
    )
    # elsewhere: by name, where the draw of a task is still the seed's own
    slippery = idrl.evaluate(policy, "deep_sea/4?slip=0.4", episodes=40)
    again, other = (
        idrl.evaluate(policy, "deep_sea/4?slip=0.4", episodes=40, seed=seed) for seed in (1, 2)
    )
    assert float(again.return_mean) == float(slippery.return_mean) != float(other.return_mean)
    assert idrl.evaluate(drawing, "deep_sea/4", episodes=5).return_mean.tolist() == (
        whole.return_mean.tolist()
    )
    for agent in (policy, drawing):
        with pytest.raises(idrl.IdrlError, match=r"shape \(4, 4\) and 2 discrete .* cartpole has"):
            idrl.evaluate(agent, "cartpole")
    with pytest.raises(idrl.IdrlError, match="seed is -1"):
        idrl.evaluate(policy, seed=-1)


@pytest.mark.slow
def test_predict_explores_where_asked_to(drawing):
    policy, obs = idrl.load(drawing, 0), np.eye(4)[0][:, None] * np.eye(4)
    batch = np.stack([obs] * 64)
    assert len(set(policy.predict(batch).tolist())) == 1
    drawn = [policy.predict(batch, deterministic=False) for _ in range(2)]
    assert drawn[0].tolist() == policy.explain(batch, seed=0).action.tolist()
    assert drawn[1].tolist() == policy.explain(batch, seed=1).action.tolist()
    again = policy.predict(batch, deterministic=False, seed=1)  # it does not move the others on
    assert again.tolist() == drawn[1].tolist()
    third = policy.predict(batch, deterministic=False)
    assert third.tolist() == policy.explain(batch, seed=2).action.tolist()
    heads = {policy.explain(obs, seed=seed).action.item() for seed in range(20)}
    assert {*drawn[0].tolist(), *drawn[1].tolist()} <= heads
    only = np.arange(2) == 1
    assert policy.predict(obs, only, deterministic=False) == 1


def test_records_are_columns_of_numbers(run):
    table = run.evaluations
    assert table["steps"].dtype == np.int64
    assert table["return_mean"].dtype == np.float64
    assert (len(table), table["steps"].tolist()) == (4, [100, 100, 200, 200])
    assert table.where(seed=1)["steps"].tolist() == [100, 200]
    assert table[-1] == list(table)[-1] == dict(zip(table.columns, table[-1].values(), strict=True))
    assert len(table[1:3]) == 2
    assert dict(table)["best"] is table["best"]
    assert "regret" in table
    assert repr(table).splitlines()[0] == "evaluations: 4 rows"
    assert len(repr(run.episodes).splitlines()) == 1 + 1 + 5 + 1 + 5
    # an empty cell is NaN: no episode ended since the last row
    assert np.isnan(idrl.RecordTable.of_rows([{"x": "1"}, {"x": ""}])["x"]).tolist() == [
        False,
        True,
    ]
    assert run.metrics["loss_q"].shape == (4,)
    assert {*run.distributions["quantity"]} >= {"sigma2"}
    assert len(run.frozen) == len(run.frozen.where(seed=0)) == 0
    with pytest.raises(idrl.IdrlError, match="unknown column of evaluations 'step'; did you mean"):
        table["step"]
    with pytest.raises(idrl.IdrlError, match="frozen has no rows yet"):
        run.frozen["seed"]
    with pytest.raises(IndexError, match="4 rows"):
        table[4]
    pandas = pytest.importorskip("pandas")
    shown = table._repr_html_()
    assert (shown.count("<tr>"), shown.count("<th>return_mean</th>")) == (1 + len(table), 1)
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["return_mean"].tolist() == table["return_mean"].tolist()


def test_commands_are_functions_too(run, tmp_path):
    assert repr(run) == (
        f"Run(dqn-ids on deep_sea/4, seeds 0 to 1, 200 of 200 steps, {str(run.path)!r})"
    )
    written = idrl.report(run, tmp_path / "report")
    assert (written.path / "index.html").is_file()
    assert repr(written).startswith("Report(deep_sea")
    assert idrl.report.writing  # the package of that name
    with pytest.raises(idrl.IdrlError, match="bands is 'both'"):
        idrl.report([run], tmp_path / "other", bands="both")
    found = idrl.compare(run, run.path)
    assert found.chance.value == 0.5
    assert repr(found) == f"AgentComparison({found.verdict})"
    page = tmp_path / "play.html"
    episode = idrl.play(run, seed=1, acting="evaluate", page=page)
    assert page.stat().st_size > 1000
    assert episode.save_page(tmp_path / "same.html").read_bytes() == page.read_bytes()
    loaded = idrl.play(idrl.load(run, 1), acting="evaluate")
    assert loaded.action.tolist() == episode.action.tolist()
    assert repr(loaded).startswith("Episode(dqn-ids on deep_sea/4, seed 1, return ")
    odd = ({"video": tmp_path / "x.avi"}, {"page": tmp_path}, {"acting": "greedy"}, {"episode": -1})
    for wrong in odd:
        with pytest.raises(idrl.IdrlError):
            idrl.play(run, **wrong)
    why = idrl.explain(run, step=2)
    assert repr(why).startswith(f"Explained({why.title}: Decision(action=")
    assert [line.count("│") for line in str(why).splitlines()].count(9) == 2
    assert why._repr_html_().count("<tr>") == 3
    assert "<th>regret Δ̂</th>" in why._repr_html_()


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        (idrl.evaluate, {"episodes": 2.5}),
        (idrl.evaluate, {"episodes": "3"}),
        (idrl.evaluate, {"episodes": 0}),
        (idrl.evaluate, {"episodes": 10**12}),
        (idrl.evaluate, {"limit_steps": 0}),
        (idrl.evaluate, {"seed": 1.5}),
        (idrl.play, {"episode": 1.5}),
        (idrl.play, {"episode": True}),
        (idrl.play, {"max_steps": 0}),
        (idrl.play, {"fps": 0, "video": "x.gif"}),
        (idrl.explain, {"step": 0.5}),
    ],
)
def test_counts_are_whole_numbers(call, wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = next(iter(wrong))
    with pytest.raises(idrl.IdrlError, match=f"^{name} is .*; it must be a whole number from "):
        call("nowhere", **wrong)
    assert list(tmp_path.iterdir()) == []


def test_settings_may_have_dotted_names(tmp_path):
    """Which are as wrong as they would be in a table."""
    for settings in ({"learning.gama": 0.9}, {"learning": {"gama": 0.9}}):
        with pytest.raises(idrl.IdrlError, match=r"'learning\.gama'; did you mean 'gamma'"):
            idrl.train("dqn", "deep_sea/4", settings=settings, out=tmp_path / "run")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"settings": {"training": 5}}, "^training must be a table of settings, not 5"),
        ({"settings": ["training=5"], "steps": 40}, "^training must be a table of settings, not 5"),
        ({"settings": ["explore=ids", "explore.lam=1"]}, "^explore must .* `kind`, not 'ids'"),
        ({"settings": {"heads": {"q": 5}, "heads.q.k": 2}}, r"^heads\.q is 5; it cannot be the "),
        ({"settings": ["training.steps.x=5"]}, r"^training\.steps is 4000; it cannot be the "),
        ({"settings": 5}, "^settings is of type int; it must be a dictionary"),
        ({"settings": [{"seeds": 2}]}, r"^settings holds {'seeds': 2}; a list .* holds strings"),
        ({"config": 5}, "^config is of type int; it must be a dictionary"),
    ],
)
def test_settings_of_the_wrong_kind(wrong, says, tmp_path):
    """A number in place of a table was replaced by the next table, and the preset's with it."""
    with pytest.raises(idrl.IdrlError, match=says):
        idrl.train("dqn", "deep_sea/4", out=tmp_path / "run", **wrong)
    assert not (tmp_path / "run").exists()


def test_a_report_is_of_some_runs(tmp_path):
    with pytest.raises(idrl.IdrlError, match="no runs are named"):
        idrl.report([], tmp_path / "report")
    assert list(tmp_path.iterdir()) == []


def test_importing_idrl_is_lazy():
    import subprocess
    import sys

    code = (
        "import sys, idrl; assert 'jax' not in sys.modules; idrl.ids; assert 'jax' in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert jax.devices()

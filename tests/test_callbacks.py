"""Callbacks: what they are told, that they stop a run, and that they neither change nor lose it."""

import contextlib
import os
import signal

import numpy as np
import pytest
from small import train

import idrl

TABLES = ("metrics", "evaluations", "episodes", "distributions")


def contents(run):
    return {name: (run.path / f"{name}.csv").read_bytes() for name in TABLES}


def newest(run):
    return sorted(run.path.glob("checkpoints/step-*/state.safetensors"))[-1]


class Keeps(idrl.Callback):
    """Keeps everything, and spoils what it was shown."""

    def __init__(self):
        self.told, self.progress, self.evaluations = [], [], []

    def on_start(self, run):
        self.told.append(("start", run.steps, run.path.is_dir()))

    def on_progress(self, progress):
        self.progress.append(
            (progress.steps, dict(progress.metrics), progress.episodes, progress.distributions)
        )
        np.random.default_rng(0).shuffle(progress.seeds)
        progress.alive[:] = False

    def on_evaluation(self, evaluation):
        score = evaluation.score.return_mean.copy()
        self.evaluations.append((evaluation.steps, score, evaluation.best.copy()))
        evaluation.best[:] = np.nan
        evaluation.improved[:] = True
        return True

    def on_end(self, run):
        self.told.append(("end", run.steps, run.finished))


class Stops(idrl.Callback):
    def __init__(self, at):
        self.at = at

    def on_evaluation(self, evaluation):
        return False if evaluation.steps >= self.at else None


class Raises(idrl.Callback):
    """In one method, from a step on."""

    def __init__(self, method, at=0, error=KeyError):
        self.at, self.error = at, error
        setattr(self, method, self._raise)
        self.ended = 0

    def _raise(self, about):
        if about.steps >= self.at:
            raise self.error("no such\nthing")

    def on_end(self, run):
        self.ended += 1


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return train(tmp_path_factory.mktemp("alone") / "run")


def test_they_see_what_is_recorded_and_change_nothing(alone, tmp_path):
    callback = Keeps()
    run = train(tmp_path / "run", callbacks=[callback, idrl.Callback()])
    assert contents(run) == contents(alone)
    assert newest(run).read_bytes() == newest(alone).read_bytes()
    assert callback.told == [("start", 0, True), ("end", 400, True)]
    steps = [steps for steps, *_ in callback.progress]
    assert steps == sorted(steps)
    assert steps[-1] == 400
    # episodes: every row once, the numbers of the table
    found = [row for _, _, episodes, _ in callback.progress for row in episodes]
    assert found == list(run.episodes)
    # metrics and what the rule sees, of each seed
    _, metrics, _, distributions = callback.progress[-1]
    last = run.metrics[run.metrics["steps"] == 400]
    for name in ("loss_q", "sigma_max", "rho2_min"):
        assert metrics[name].tolist() == last[name].tolist()
    assert distributions["sigma2"].shape[:1] == (2,)
    assert callback.progress[0][1] == {}  # the random steps
    # evaluations, kept beyond the block whose memory they were in
    steps, scores, best = zip(*callback.evaluations, strict=True)
    assert steps == (100, 200, 300, 400)
    assert np.concatenate(scores).tolist() == run.evaluations["return_mean"].tolist()
    assert np.concatenate(best).tolist() == run.evaluations["best"].tolist()


@pytest.mark.slow
def test_false_stops_a_run_that_can_go_on(alone, tmp_path):
    keeps = Keeps()
    run = train(tmp_path / "run", callbacks=[Stops(200), keeps])
    assert (run.steps, run.finished) == (200, False)
    assert run.evaluations["steps"].tolist() == [100, 100, 200, 200]
    assert keeps.told[-1] == ("end", 200, False)
    assert "200 of 400 steps" in repr(run)
    again = Keeps()
    run = idrl.train(resume=run, callbacks=[again])
    assert again.told == [("start", 200, True), ("end", 400, True)]
    assert contents(run) == contents(alone)


@pytest.mark.slow
def test_a_signal_is_no_error_that_a_program_goes_on_after(alone, tmp_path):
    class Signals(Keeps):
        def on_evaluation(self, evaluation):
            if evaluation.steps == 200:
                os.kill(os.getpid(), signal.SIGTERM)

    def program():
        with contextlib.suppress(Exception):  # and on with the next run
            train(tmp_path / "run", callbacks=[keeps])

    keeps = Signals()
    with pytest.raises(idrl.Interrupted, match="Stopped at step .*; nothing is lost") as caught:
        program()
    assert keeps.told[-1][0] == "end"
    assert contents(idrl.train(resume=caught.value.path)) == contents(alone)


@pytest.mark.parametrize(
    ("answer", "goes_on"), [(None, True), (0, True), (True, True), (np.bool_(False), False)]
)
def test_nothing_else_stops_it(answer, goes_on):
    from idrl.runs.callbacks import Watchers

    class Answers(idrl.Callback):
        def on_progress(self, progress):
            return answer

    watchers = Watchers([Answers()], _Run())
    watchers._progress = lambda *told: None
    assert watchers.tell(_Told(), []) == goes_on


class _Run:
    seeds = range(1)


class _Told:
    iteration, metrics, score = 0, None, None


@pytest.mark.parametrize(
    "method", ["on_progress", pytest.param("on_evaluation", marks=pytest.mark.slow)]
)
def test_one_that_raises_loses_nothing(method, alone, tmp_path):
    callback = Raises(method, at=150)
    says = rf"Raises\.{method} raised KeyError: 'no such\\nthing'\. The run is saved at step "
    with pytest.raises(idrl.RunFailed, match=says) as caught:
        train(tmp_path / "run", callbacks=[callback])
    assert isinstance(caught.value.__cause__, KeyError)
    assert "\n" not in str(caught.value)
    assert callback.ended == 1
    stopped = idrl.open_run(tmp_path / "run")
    assert 150 <= stopped.steps < 400
    assert f"saved at step {stopped.steps}; continue it with" in str(caught.value)
    run = idrl.train(resume=tmp_path / "run")
    assert contents(run) == contents(alone)
    assert newest(run).read_bytes() == newest(alone).read_bytes()


def test_one_that_raises_at_the_start_leaves_no_folder(tmp_path):
    first, second = Keeps(), Raises("on_start", error=SystemExit)
    with pytest.raises(idrl.RunFailed, match=r"on_start raised SystemExit: .* Nothing was trained"):
        train(tmp_path / "run", callbacks=[first, second])
    assert not (tmp_path / "run").exists()
    assert [what for what, *_ in first.told] == ["start", "end"]
    assert second.ended == 0


def test_one_that_raises_at_the_end_is_told_of_a_run_that_is_whole(alone):
    class Ends(idrl.Callback):
        def on_end(self, run):
            raise ValueError("done")

    last = Keeps()
    says = r"Ends\.on_end raised ValueError: done\. The run itself is saved\."
    with pytest.raises(idrl.RunFailed, match=says):
        idrl.train(resume=alone, callbacks=[Ends(), last])
    assert last.told == [("start", 400, True), ("end", 400, True)]
    assert idrl.open_run(alone.path).finished


@pytest.mark.parametrize(
    ("callbacks", "says"),
    [
        (Keeps(), "callbacks is of type Keeps; it must be a list"),
        ([Keeps], r"the class Keeps; make one: Keeps\(\)"),
        ([print], "callbacks holds one of type builtin_function_or_method"),
        (3, "callbacks is of type int; it must be a list"),
    ],
)
def test_what_is_no_callback_is_refused(callbacks, says, tmp_path):
    with pytest.raises(idrl.IdrlError, match=says):
        train(tmp_path / "run", callbacks=callbacks)
    assert not (tmp_path / "run").exists()


def test_progress_is_the_command_lines_bar(alone, tmp_path, capsys):
    train(tmp_path / "run", steps=200, progress=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "compiling …"
    assert [line.split()[:2] for line in lines[1:]] == [["100", "steps"], ["200", "steps"]]
    with pytest.raises(idrl.IdrlError, match="omit one"):
        train(tmp_path / "other", progress=True, display=object())


def test_a_notebook_without_widgets_gets_lines(monkeypatch, recwarn):
    import io

    from idrl.runs import display
    from idrl.system.printing import Printer

    for widgets in (False, True):
        monkeypatch.setattr(display, "_has_widgets", lambda widgets=widgets: widgets)
        console = Printer(force_jupyter=True, file=io.StringIO())
        assert display.LiveDisplay(console).moves == widgets
        assert not display.LiveDisplay(Printer(file=io.StringIO())).moves
    assert not recwarn.list


@pytest.mark.parametrize(
    ("is_terminal", "told", "moves"),
    [(True, {}, True), (False, {"FORCE_COLOR": "1"}, False), (True, {"TERM": "dumb"}, False)],
)
def test_only_a_terminal_is_drawn_over(is_terminal, told, moves, monkeypatch):
    """A notebook's %%bash and CI ask for colours."""
    import io

    from idrl.runs.display import LiveDisplay
    from idrl.system.printing import Printer

    for name in ("TERM", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    file = io.StringIO()
    file.isatty = lambda: is_terminal
    assert LiveDisplay(Printer(file=file)).moves is moves

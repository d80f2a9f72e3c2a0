"""A search of settings by Optuna: a trial is one run of all seeds, scored by its evaluations.

Optuna's journal is a file in the study's folder; trials that were running when the driver died go
on from their checkpoints.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from idrl.config import RunConfig
from idrl.envs import on_host
from idrl.errors import IdrlError
from idrl.schema import flat, to_dict
from idrl.storage.files import open_plain
from idrl.sweep.engines import INSTALL
from idrl.sweep.folder import Outcome, StudyFolder, write_outcome
from idrl.sweep.job import Capacity, Job, lowered
from idrl.sweep.jobs import Combination, configure, name_of, pack
from idrl.sweep.planning import costs
from idrl.sweep.study import Search, StudyGroup
from idrl.sweep.work import check_replays
from idrl.system import words

JOURNAL = "optuna.log"
REFUSED = "refused"  # a trial's attribute: why its settings are no config
RETRIED = "retried"  # another: the number of the trial whose run it goes on with


def optuna() -> Any:
    try:
        import optuna as library
    except ImportError:
        raise IdrlError(f"a search needs Optuna: {INSTALL}.") from None
    library.logging.set_verbosity(library.logging.ERROR)
    # Lists, such as widths of layers, come back from its journal as they were.
    warnings.filterwarnings("ignore", "Choices for a categorical distribution", UserWarning)
    return library


def check(search: Search, groups: tuple[StudyGroup, ...]) -> list[RunConfig]:
    """Refuse a space with points that are no config, before anything starts: every choice and
    both ends of every range are tried, one setting at a time. Returns the configs of these. Plans
    are checked without Optuna."""
    if len(groups) != 1 or len(groups[0].agents) != 1 or len(groups[0].envs) != 1:
        raise IdrlError("a search is about one agent on one environment; make a study for each.")
    seeds = groups[0].seeds
    if seeds != tuple(range(seeds[0], seeds[0] + len(seeds))):
        raise IdrlError("a search trains its seeds side by side: give them in a row.")
    first, configs = _first(search), []
    for name, axis in search.space.items():
        for value in axis.get("choices") or (axis["low"], axis["high"]):
            config = _combination(groups[0], first | {name: value}).config
            built = flat(to_dict(config)).get(name)
            if "low" in axis and not _is_whole(axis) and type(built) is int:
                raise IdrlError(
                    f"search.space.{name} is a range of fractions, and {name} is a whole number: "
                    "write both low and high without a decimal point."
                )
            configs.append(config)
    check_replays(configs)
    return configs


def _first(search: Search) -> dict[str, Any]:
    """A point of the space."""
    return {name: (axis.get("choices") or [axis["low"]])[0] for name, axis in search.space.items()}


def _is_whole(axis: dict[str, Any]) -> bool:
    return all(isinstance(axis[end], int) for end in ("low", "high"))


def _number(trial: Any) -> int:
    """Of its run: a trial that is retried goes on with the one that it had."""
    retried = trial.user_attrs.get(RETRIED)
    earlier = type(retried) is int and 0 <= retried < trial.number  # a journal may say anything
    return retried if earlier else trial.number


def _run_of(trial: Any) -> str:
    return f"trial-{_number(trial):04d}"


def _combination(group: StudyGroup, params: dict[str, Any]) -> Combination:
    config = configure(group, group.agents[0], group.envs[0], params)
    return Combination(name_of(config, {}), config, group.seeds, params, not on_host(config.env))


class Trials:
    """The source of a search's runs."""

    def __init__(self, folder: StudyFolder, capacity: Capacity, machine: Any):
        self.folder, self.capacity, self.machine = folder, capacity, machine
        self.group = folder.study.groups[0]
        assert folder.study.search is not None
        self.search: Search = folder.study.search
        self.journal = Path(folder.store.local) / JOURNAL
        if folder.remote:
            kept = folder.store.read(JOURNAL)
            self.journal.write_text(kept or "", encoding="utf-8")
        optuna()  # refuses where it is not installed
        try:
            self.study = self._open()
            self.study.get_trials(deepcopy=False)
        except Exception as error:  # whatever its reader makes of a file that may be anything
            raise IdrlError(
                f"{str(self.journal)!r} cannot be read: {words.value(str(error))}."
            ) from None
        self.trials: dict[str, Any] = {}  # by the name of their run, those that are not over
        self.told: dict[str, int] = {}

    def _open(self) -> Any:
        lib = optuna()
        backend = lib.storages.journal.JournalFileBackend(str(self.journal))
        pruners = {
            "none": lib.pruners.NopPruner,
            "median": lib.pruners.MedianPruner,
            "asha": lib.pruners.SuccessiveHalvingPruner,
        }
        done = self._count_lines()
        return lib.create_study(
            storage=lib.storages.JournalStorage(backend), study_name=self.folder.name,
            # the same draws again after a restart would be the same trials again
            sampler=lib.samplers.TPESampler(seed=self.search.seed + done),
            pruner=pruners[self.search.stop](), direction="maximize", load_if_exists=True,
        )  # fmt: skip

    def _count_lines(self) -> int:
        if not self.journal.exists():
            return 0
        with open_plain(self.journal) as file:
            return sum(1 for _ in file)

    def begin(self) -> list[Job]:
        """Trials that were running, and new ones for the other places."""
        lib = optuna()
        # refused as a whole, say for a package that is missing here, is no fault of a trial
        _combination(self.group, _first(self.search))
        self._reopen()
        jobs = []
        for frozen in self.study.get_trials(states=(lib.trial.TrialState.RUNNING,)):
            trial = lib.trial.Trial(self.study, frozen._trial_id)
            if set(frozen.params) != set(self.search.space):
                trial = self._suggest(trial)  # died between asking and suggesting
            if job := self._made(trial):
                self.told[job.name] = max(frozen.intermediate_values, default=-1)
                jobs += self._known(job)
        while len(self.trials) < self._places(jobs) and (more := self._ask()):
            jobs += more
        self._add(jobs)
        return [job for job in jobs if not self.folder.outcome(job.name).over]

    def _reopen(self) -> None:
        """A new trial with the same parameters for every run that is retried: Optuna was told that
        its trial failed, and a trial ends once."""
        lib, states = optuna(), optuna().trial.TrialState
        last = {_run_of(trial): trial for trial in self.study.get_trials(deepcopy=False)}
        for name, outcome in self.folder.outcomes().items():
            if outcome.over or name not in last or last[name].state != states.FAIL:
                continue
            before = last[name]
            self.study.add_trial(
                lib.trial.create_trial(
                    state=states.RUNNING, params=before.params,
                    distributions=before.distributions, user_attrs={RETRIED: _number(before)},
                )
            )  # fmt: skip
        self._save()

    def _places(self, jobs: list[Job]) -> int:
        """Trials at once: one that is asked for early knows less of the others."""
        if not jobs:
            return 1
        if jobs[0].gpus:
            return max(1, int(self.capacity.gpus / jobs[0].gpus))
        return max(1, self.capacity.cpus // jobs[0].cpus)

    def _known(self, job: Job) -> list[Job]:
        """A run that ended while nobody was there to tell Optuna."""
        outcome = self.folder.outcome(job.name)
        if outcome.over:
            self._add([job])
            return self.after(job, outcome)
        return [job]

    def _ask(self) -> list[Job]:
        job = None
        while job is None and self._asked() < self.search.trials:
            job = self._made(self._suggest(self.study.ask()))
            self._save()
        return [job] if job else []

    def _asked(self) -> int:
        """How many trials there are; one that is retried counts once."""
        return len({_number(trial) for trial in self.study.get_trials(deepcopy=False)})

    def _made(self, trial: Any) -> Job | None:
        """None where settings that can be had one by one cannot together: Optuna is told, and the
        search goes on, since a trial that is left open would end it at every resume."""
        name = _run_of(trial)
        try:
            job = self._job(name, trial.params)
        except IdrlError as error:
            trial.set_user_attr(REFUSED, str(error))
            self.study.tell(trial, state=optuna().trial.TrialState.FAIL)
            if name in self.folder.jobs:  # an earlier version took them
                known = self.folder.outcome(name)
                refused = known._replace(status="aside", error=str(error))
                write_outcome(self.folder.store, name, refused)
            return None
        self.trials[job.name] = trial
        self.told[job.name] = -1
        return job

    def _suggest(self, trial: Any) -> Any:
        for name, axis in self.search.space.items():
            if "choices" in axis:
                trial.suggest_categorical(name, axis["choices"])
                continue
            suggest = trial.suggest_int if _is_whole(axis) else trial.suggest_float
            suggest(name, axis["low"], axis["high"], log=bool(axis.get("log", False)))
        return trial

    def _job(self, name: str, params: dict[str, Any]) -> Job:
        found = _combination(self.group, params)
        (job,) = pack([found], self.folder.study.resources, self._one_of_many(), whole=True)
        cost = costs(self.machine)(found.config, len(found.seeds))
        return replace(job, name=name, cost_s=cost)

    def _one_of_many(self) -> Capacity:
        """Trials run side by side: one is not to get all cores."""
        nodes = tuple(
            n._replace(cpus=max(1, n.cpus // min(self.search.trials, n.cpus or 1)))
            for n in self.capacity.nodes
        )
        return self.capacity if self.capacity.gpus else self.capacity._replace(nodes=nodes)

    def _add(self, jobs: list[Job]) -> None:
        known = self.folder.jobs
        new = [job for job in jobs if job.name not in known]
        if new:
            self.folder.save_jobs([*known.values(), *new])

    def watch(self) -> None:
        """Tell Optuna the evaluations of what runs, and end what it gives up."""
        if self.search.stop == "none":
            return
        for name, trial in self.trials.items():
            self._report(name, trial)
            if self.told[name] >= 0 and trial.should_prune():
                self.folder.store.write(f"stop/run-{name}", self.folder.session)

    def instead(self, job: Job) -> list[Job]:
        """A larger share of a GPU; a trial is one run, so its seeds stay together."""
        return [less for less in lowered(job) if less.name == job.name]

    def _report(self, name: str, trial: Any) -> None:
        best = -math.inf
        for step, score in self.folder.progress(name).get("evaluations", []):
            best = max(best, score)
            if step > self.told[name]:
                trial.report(best if self.search.score == "best" else score, step)
                self.told[name] = step

    def after(self, job: Job, outcome: Outcome) -> list[Job]:
        trial = self.trials.pop(job.name, None)
        if trial is None:
            return []
        states = optuna().trial.TrialState
        self._report(job.name, trial)
        scores = [score for _, score in self.folder.progress(job.name).get("evaluations", [])]
        if outcome.status == "done" and scores:
            value = max(scores) if self.search.score == "best" else scores[-1]
            self.study.tell(trial, value)
        else:
            pruned = outcome.status == "pruned"
            self.study.tell(trial, state=states.PRUNED if pruned else states.FAIL)
        more = self._ask()
        self._add(more)
        self._save()
        return more

    def _save(self) -> None:
        if self.folder.remote:
            self.folder.store.write(JOURNAL, self.journal.read_text("utf-8"))

    def best(self) -> str:
        """What was found, in a sentence or two."""
        refused = [t.user_attrs[REFUSED] for t in self.study.trials if REFUSED in t.user_attrs]
        if not refused:
            return self._found()
        return f"{self._found()}\nTrials that were no config: {len(refused)}, one: {refused[-1]}"

    def _found(self) -> str:
        done = [t for t in self.study.trials if t.value is not None]
        if not done:
            return "No trial of the search has finished."
        trial = max(done, key=lambda t: t.value)
        shown = " ".join(f"{name}={value}" for name, value in trial.params.items())
        best = f"{trial.value:.4g}, trial {_number(trial)}"
        return f"Best of {len(done)} finished trials: {best}: {shown}"

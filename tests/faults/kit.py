"""A finished run, a study and a model, small, for tests that forge them."""

import shutil
from pathlib import Path

import idrl
from idrl.schema import to_dict
from idrl.storage.folder import RunFolder
from idrl.sweep.folder import Outcome, StudyFolder, write_outcome
from idrl.sweep.job import Capacity, Node
from idrl.sweep.jobs import combinations, pack
from idrl.sweep.study import parse

STUDY = {
    "name": "small", "agents": ["dqn-ids"], "envs": ["deep_sea/4"], "seeds": [0, 2], "steps": 300,
    "settings": {
        "trunk": {"hidden": [8]}, "heads": {"q": {"hidden": [8], "k": 3}},
        "learning": {"learning_starts_steps": 20, "replay_capacity": 200},
        "training": {"log_every_steps": 50, "distributions_every_steps": 100},
        "evaluation": {"every_steps": 100, "steps": 20},
    },
}  # fmt: skip


def make_kit(kit: Path) -> Path:
    run = idrl.train(
        "dqn-ids", "deep_sea/4", steps=300, settings=STUDY["settings"], out=kit / "run"
    ).path
    (run / ".lock").unlink()
    for picture in run.glob("*.png"):  # nobody reads them
        picture.unlink()
    idrl.load(run).save(kit / "model.safetensors")
    jobs = pack(combinations(parse(STUDY)), parse(STUDY).resources, Capacity((Node(2),)))
    folder = StudyFolder.create(str(kit / "study"), STUDY, "small", jobs)
    for job, status in zip(jobs, ("done", "running"), strict=True):
        path = folder.store.run(job.name)
        shutil.copytree(run, path, ignore=shutil.ignore_patterns("checkpoints"))
        RunFolder(path).write_config(job.config)
        assert to_dict(idrl.open_run(path).config) == job.config
        write_outcome(folder.store, job.name, Outcome(status, 1, wall_s=3.0, node="here"))
        told = '{"steps": 100, "of": 300, "rate": 9.5, "at": 1.0, "evaluations": [[100, 0.5]]}'
        folder.store.write(f"progress/{job.name}.json", told)
    return kit

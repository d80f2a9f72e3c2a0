"""Runs whose frames are in files of their own: no single damaged file of them ends a run."""

import random
import shutil

import driver
import pytest
from displays import Dies
from films import SIDE, Film

import idrl
from idrl.runs import saving
from idrl.runs.resuming import find
from idrl.storage import checkpoint, segments
from idrl.storage.folder import RunFolder

SETTINGS = {
    "heads": {"q": {"hidden": [8]}},
    "learning": {
        "learning_starts_steps": 20, "replay_capacity": 100, "target_every_steps": 50,
        "batch_size": 4, "update_every_steps": 2,
    },
    "training": {"steps": 400, "envs": 2, "log_every_steps": 100},
    "evaluation": {"every_steps": 100, "steps": 30, "envs": 3},
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """An undisturbed run, and the same killed where its replay has been full for long."""
    folder = tmp_path_factory.mktemp("frames")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saving, "CHECKPOINT_SECONDS", 0)
        patch.setattr(segments, "PIECE_BYTES", 20 * 2 * SIDE * SIDE)
        whole = idrl.train("dqn", Film, settings=SETTINGS, out=folder / "whole").path
        with pytest.raises(MemoryError):
            idrl.train("dqn", Film, settings=SETTINGS, out=folder / "killed", display=Dies(320))
        yield whole, folder / "killed"


def damages(file, chance):
    data = file.read_bytes()
    flipped = bytearray(data)
    flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return {"missing": None, "truncated": data[: len(data) // 2], "flipped": bytes(flipped)}


def damage(file, data):
    file.unlink() if data is None else file.write_bytes(data)


@pytest.mark.filterwarnings("ignore:step-.* is damaged")
def test_no_single_damaged_file_ends_a_run(runs, tmp_path, tally):
    whole, killed = runs
    folders = ("replay", "checkpoints")
    files = sorted(p for name in folders for p in (killed / name).rglob("*") if p.is_file())
    assert sum(p.parent.name == "replay" for p in files) >= 8
    assert sum(p.parent.name.startswith("step-") for p in files) == 4
    config = idrl.open_run(killed).config
    place = driver.newest(killed)
    named = segments.parse(checkpoint.read_meta(place)["segments"])
    used = {name for s in named for name in (s.name, s.copy)}
    chance = random.Random("frames")
    tries = survived = lost = bits = 0
    for number, file in enumerate(files):
        data = file.read_bytes()
        kinds = damages(file, chance)
        for each in kinds.values():
            damage(file, each)
            tries += 1
            survived += find(RunFolder.open(killed), config).place is not None
            file.write_bytes(data)
        copy = tmp_path / str(number)
        shutil.copytree(killed, copy)
        here = copy / file.relative_to(killed)
        damage(here, list(kinds.values())[number % 3])
        if file.name in used:
            says = rf"replay/{file.name} (is missing|does not match).*rebuilt from the other copy"
            with pytest.warns(UserWarning, match=says):
                idrl.train(resume=copy, env=Film)
        else:  # of a checkpoint; or named by the older one alone, and not looked at
            idrl.train(resume=copy, env=Film)
        driver.check_valid(copy)
        found = driver.difference(copy, whole)
        lost, bits = lost + found.lost, bits + found.bits
        shutil.rmtree(copy)
    tally("a damaged file of frames or of a checkpoint", tries, survived, lost, bits)

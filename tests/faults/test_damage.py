"""Damaged checkpoints: found by their checksums, named, passed over; nothing is deleted."""

import json
import random
import re
import shutil

import jax
import numpy as np
import pytest
from displays import Dies
from films import Film
from safetensors.numpy import load_file, save_file

import idrl
from idrl.runs import saving
from idrl.runs.resuming import differences
from idrl.storage import checkpoint
from idrl.storage.arrays import read_metadata, write_arrays
from idrl.storage.folder import FORMAT


def places(run):
    return checkpoint.listed(run / "checkpoints")


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_every_byte_of_every_file_counts(copy, tally, cases):
    """Truncated anywhere, a bit flipped anywhere, gone: the one before is used."""
    before, newest = places(copy)
    chance = random.Random("bytes")
    tries = survived = 0
    for file in sorted(newest.iterdir()):
        whole = file.read_bytes()
        damages = [None, b"", whole + b"\0"]
        damages += [whole[: chance.randrange(len(whole))] for _ in range(cases // 2)]
        for _ in range(cases):
            flipped = bytearray(whole)
            flipped[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
            damages.append(bytes(flipped))
        for damage in damages:
            file.unlink() if damage is None else file.write_bytes(damage)
            place, damaged = checkpoint.newest(copy / "checkpoints")
            tries += 1
            found = place == before and file.name in damaged[newest.name]
            survived += found or means_the_same(file.name, damage, whole)
            file.write_bytes(whole)
    assert checkpoint.newest(copy / "checkpoints") == (newest, {})
    tally("damaged checkpoint, found", tries, survived)


def means_the_same(name, damage, whole) -> bool:
    """A bit turns 1e-05 into 1E-05."""
    try:
        return name == checkpoint.MANIFEST and json.loads(damage) == json.loads(whole)
    except ValueError:
        return False


@pytest.mark.parametrize("kind", ["truncated", "flipped", "missing", "no manifest"])
def test_a_run_goes_on_from_the_one_before(copy, run, tally, kind):
    file = places(copy)[-1] / (checkpoint.MANIFEST if kind == "no manifest" else checkpoint.ARRAYS)
    whole = file.read_bytes()
    if kind in ("missing", "no manifest"):
        file.unlink()
    else:
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :]
        file.write_bytes(whole[:middle] if kind == "truncated" else flipped)
    left = contents(places(copy)[-1])
    with pytest.warns(UserWarning, match=f"step-000000000300 is damaged: {file.name}.*000200"):
        idrl.train(resume=copy)
    lost = sum(
        (copy / name).read_bytes() != (run / name).read_bytes()
        for name in ("metrics.csv", "evaluations.csv", "episodes.csv")
    )
    ours, theirs = (
        np.frombuffer((places(r)[-1] / checkpoint.ARRAYS).read_bytes(), np.uint8)
        for r in (copy, run)
    )
    tally("damaged checkpoint, resumed", 1, 1, lost, int((ours != theirs).sum()))
    assert contents(copy / "checkpoints" / "damaged-step-000000000300-1") == left


def test_no_intact_checkpoint_is_refused_and_nothing_is_touched(copy):
    for place in places(copy):
        (place / checkpoint.ARRAYS).write_bytes(b"")
    before = contents(copy)
    with pytest.raises(idrl.IdrlError, match=r"000300 is damaged.*000200 is damaged.*--config"):
        idrl.train(resume=copy)
    before.setdefault((copy / ".lock").relative_to(copy), b"")
    assert contents(copy) == before
    with pytest.raises(idrl.IdrlError, match="no weights to load: step-000000000300 is damaged"):
        idrl.load(copy)


def test_records_shorter_than_a_checkpoint_says(copy, run):
    """A power cut may lose what a disk promised: the checkpoint before is used."""
    size = checkpoint.read_meta(places(copy)[0])["sizes"]["metrics"]
    whole = (copy / "metrics.csv").read_bytes()
    (copy / "metrics.csv").write_bytes(whole[: size + 5])
    with pytest.warns(UserWarning, match="metrics.csv is shorter"):
        idrl.train(resume=copy)
    assert (copy / "metrics.csv").read_bytes() == whole


def test_a_checkpoint_of_the_first_form_is_read(copy, run):
    """Without a checksum of its own, without what is frozen, without its config."""
    for place in places(copy):
        manifest = checkpoint.read_manifest(place)
        like = jax.tree.map(np.asarray, load_file(place / checkpoint.ARRAYS))
        like.pop("failed")
        write_arrays(place / checkpoint.ARRAYS, like)
        old = {"sha256": checkpoint._digest(place / checkpoint.ARRAYS), "steps": manifest["steps"]}
        keys = ("iteration", "sizes", "episodes", "regret")
        old["meta"] = {key: manifest["meta"][key] for key in keys}
        (place / checkpoint.MANIFEST).write_text(checkpoint.json.dumps(old))
    shutil.rmtree(places(copy)[-1])
    idrl.train(resume=copy)
    assert (copy / "metrics.csv").read_bytes() == (run / "metrics.csv").read_bytes()
    newest = places(copy)[-1], places(run)[-1]
    assert len({(place / checkpoint.ARRAYS).read_bytes() for place in newest}) == 1


@pytest.mark.parametrize("version", [0, FORMAT + 1, "9", True, None])
def test_another_format_is_refused_with_the_version_that_reads_it(copy, version):
    about = (copy / "run.json").read_text()
    shown = "null" if version is None else checkpoint.json.dumps(version)
    about = about.replace(f'"format": {FORMAT}', f'"format": {shown}')
    (copy / "run.json").write_text(about.replace('"idrl": "0.1.0"', '"idrl": "7.3.1"'))
    for call in (idrl.load, idrl.evaluate, lambda p: idrl.train(resume=p)):
        with pytest.raises(idrl.IdrlError, match=rf"run format {version!r}.*Use idrl 7\.3\.1"):
            call(copy)


def test_a_changed_config_is_refused_with_the_difference(copy):
    text = (copy / "config.toml").read_text()
    (copy / "config.toml").write_text(text.replace("gamma = 0.99", "gamma = 0.9"))
    before = contents(copy)
    says = r"was made with learning.gamma = 0.99, config.toml says 0.9\. Only training.steps"
    with pytest.raises(idrl.IdrlError, match=says):
        idrl.train(resume=copy)
    before.setdefault((copy / ".lock").relative_to(copy), b"")
    assert contents(copy) == before
    (copy / "config.toml").write_text(text)
    for change, says in (
        ({"settings": ["heads.q.k=2"]}, "heads.q.k = 1, not 2"),
        ({"seeds": 2}, "seeds = 1, not 2"),
        ({"agent": "ddqn"}, "agent = 'dqn', not 'ddqn'"),
        ({"env": "deep_sea/5"}, "env = 'deep_sea/4', not 'deep_sea/5'"),
        ({"steps": 200}, "has made 300 steps already"),
    ):
        with pytest.raises(idrl.IdrlError, match=says):
            idrl.train(resume=copy, **change)
    assert contents(copy) == before | {(copy / "config.toml").relative_to(copy): text.encode()}


def test_numbers_that_are_none_are_not_loaded(copy, tmp_path, tally):
    """Whoever wrote them, and though the checksum fits: they would make any action the best."""
    idrl.load(copy).save(tmp_path / "model.safetensors")
    metadata = read_metadata(tmp_path / "model.safetensors")
    place = places(copy)[-1]
    for file, kept in (
        (place / checkpoint.ARRAYS, None),
        (tmp_path / "model.safetensors", metadata),
    ):
        arrays = load_file(file)
        for name in arrays:
            if "params" in name and not name.startswith("agent/target"):
                arrays[name] = arrays[name] * np.float32("nan")
        save_file(arrays, file, kept)
    sign(place)
    says = r"the (best )?weights of .* cannot be used: .* not finite"
    for call in (
        lambda: idrl.load(copy), lambda: idrl.load(copy, weights="latest"),
        lambda: idrl.evaluate(copy, episodes=2), lambda: idrl.load(tmp_path / "model.safetensors"),
    ):  # fmt: skip
        with pytest.raises(idrl.IdrlError, match=says):
            call()
    tally("weights that are no numbers", 4, 4)


def sign(place) -> None:
    """A checksum for whatever is in a checkpoint."""
    manifest = json.loads((place / checkpoint.MANIFEST).read_text())
    manifest.pop("check")
    manifest["sha256"] = checkpoint._digest(place / checkpoint.ARRAYS)
    manifest["check"] = checkpoint._checksum(manifest)
    (place / checkpoint.MANIFEST).write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"device": "2 × cpu"}, None),  # one seed is on one device anyhow
        ({"device": "1 × NVIDIA H200"}, r"begun with 1 × NVIDIA H200 \(now 2 × cpu\)"),
        ({"versions": {"jax": "0.1.2"}}, r"begun with jax 0\.1\.2 \(now [0-9.]+\)"),
        ({"device": "\x1b[31m", "versions": {"jax": "\x1b]0;"}}, None),
        ({"device": 3, "versions": [1]}, None),
    ],
)
def test_another_device_or_version_is_said(copy, change, says, recwarn):
    about = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(about | change))
    idrl.train(resume=copy)
    told = [str(w.message) for w in recwarn if "begun with" in str(w.message)]
    assert len(told) == (says is not None), told
    assert says is None or re.search(says, told[0])


def test_seeds_laid_over_another_number_of_devices_are_said():
    about = {"device": "2 × cpu"}
    assert differences(about, "1 × cpu", seeds=4) == "2 × cpu (now 1 × cpu)"
    assert differences(about, "3 × cpu", seeds=4) == ""  # three cannot share four
    assert differences(about, "4 × cpu", seeds=4) == "2 × cpu (now 4 × cpu)"


def test_a_config_that_may_only_be_read(copy, run, tmp_path):
    """Nothing is written into a file of ours; a new one takes its place."""
    for name in ("config.toml", "run.json"):
        (copy / name).chmod(0o444)
    before = (copy / "config.toml").stat().st_ino
    idrl.train(resume=copy, steps=350)
    assert (copy / "config.toml").stat().st_ino != before
    assert idrl.open_run(copy).config.training.steps == 350


def test_an_evaluation_beside_training_is_of_a_step_that_was_made(tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "CHECKPOINT_SECONDS", 0)
    settings = {
        "trunk": {"kind": "mlp", "hidden": [4]},
        "learning": {
            "learning_starts_steps": 45, "replay_capacity": 120, "target_every_steps": 50,
            "batch_size": 2, "update_every_steps": 4,
        },
        "training": {"steps": 700, "envs": 2, "log_every_steps": 70},
        "evaluation": {"every_steps": 300, "steps": 400, "envs": 2, "beside": True},
    }  # fmt: skip
    with pytest.raises(MemoryError):
        idrl.train("dqn", Film, settings=settings, out=tmp_path / "run", display=Dies(600))
    (place,) = places(tmp_path / "run")[-1:]
    arrays = load_file(place / checkpoint.ARRAYS)
    for forged in (10_000, -1, 0):
        arrays["judged/iteration"][:] = forged
        save_file(arrays, place / checkpoint.ARRAYS)
        sign(place)
        with pytest.raises(idrl.IdrlError, match="is forged: it judges weights of a step"):
            idrl.train(resume=tmp_path / "run", env=Film)

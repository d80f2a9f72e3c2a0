"""Damaged checkpoints: found by their checksums, named, passed over; nothing is deleted."""

import random
import shutil

import jax
import numpy as np
import pytest
from driver import SETTINGS

import idrl
from idrl.runs import checkpoint
from idrl.runs.arrays import write_arrays


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
            survived += place == before and file.name in damaged[newest.name]
            file.write_bytes(whole)
    assert checkpoint.newest(copy / "checkpoints") == (newest, {})
    tally("damaged checkpoint, found", tries, survived)


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
        like = jax.tree.map(np.asarray, _arrays(place))
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


def _arrays(place):
    from safetensors.numpy import load_file

    return load_file(place / checkpoint.ARRAYS)


@pytest.mark.parametrize("version", [0, 2, "9", None])
def test_another_format_is_refused_with_the_version_that_reads_it(copy, version):
    about = (copy / "run.json").read_text()
    shown = "null" if version is None else checkpoint.json.dumps(version)
    about = about.replace('"format": 1', f'"format": {shown}')
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


def test_a_longer_run_equals_one_that_was_long_from_the_beginning(copy, tmp_path):
    long = idrl.train("dqn", "deep_sea/4", steps=500, settings=SETTINGS, out=tmp_path / "long").path
    idrl.train("dqn", "deep_sea/4", resume=copy, steps=500)
    for name in ("metrics.csv", "evaluations.csv", "episodes.csv", "config.toml"):
        assert (copy / name).read_bytes() == (long / name).read_bytes(), name
    newest = places(copy)[-1], places(long)[-1]
    assert len({(place / checkpoint.ARRAYS).read_bytes() for place in newest}) == 1

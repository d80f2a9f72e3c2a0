"""Run folders, checkpoints, models and configs of unknown origin: nothing runs, nothing is written
outside, nothing large is allocated."""

import contextlib
import hashlib
import json
import os
import pickle
import resource
import shutil
import struct

import numpy as np
import pytest

import idrl
from idrl.cli.app import main
from idrl.schema import to_dict
from idrl.storage import checkpoint


class Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, target):
        self.target = str(target)

    def __reduce__(self):
        return os.mkdir, (self.target,)


def sign(place) -> None:
    """What an attacker would do: checksums that fit."""
    manifest = json.loads((place / checkpoint.MANIFEST).read_text())
    manifest.pop("check", None)
    manifest["sha256"] = hashlib.sha256((place / checkpoint.ARRAYS).read_bytes()).hexdigest()
    rewrite(place, manifest)


def rewrite(place, manifest) -> None:
    manifest = manifest | {"check": checkpoint._checksum(manifest)}
    (place / checkpoint.MANIFEST).write_text(json.dumps(manifest))


def newest(run):
    return checkpoint.listed(run / "checkpoints")[-1]


def forged(shape, dtype="F32", size=8, name="best/score", metadata=None) -> bytes:
    """A safetensors file that claims an array of `shape` and has `size` bytes of it."""
    header = {name: {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}
    if metadata is not None:
        header["__metadata__"] = {"idrl": json.dumps(metadata)}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"\0" * size


def check_refused(tally, fault, calls, outside) -> None:
    """Each call ends in a sentence; nothing appears outside and memory stays."""
    before, peak = sorted(outside.parent.rglob("*")), _peak()
    survived = 0
    for call in calls:
        with pytest.raises(idrl.IdrlError) as told:
            call()
        survived += "\n" not in str(told.value) and not outside.exists()
    assert _peak() - peak < 300 * 2**20
    assert sorted(p for p in outside.parent.rglob("*") if p.name != ".lock") == [
        p for p in before if p.name != ".lock"
    ]
    tally(fault, len(calls), survived)


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def uses(path):
    return [
        lambda: idrl.load(path),
        lambda: idrl.evaluate(path),
        lambda: idrl.train(resume=path, steps=400),
    ]


def test_a_pickle_with_a_fitting_checksum(alone, tmp_path, tally):
    outside = tmp_path / "boom"
    bomb = pickle.dumps(Bomb(outside))
    (newest(alone) / checkpoint.ARRAYS).write_bytes(bomb)
    sign(newest(alone))
    model, zipped = tmp_path / "model.safetensors", tmp_path / "model.pt"
    model.write_bytes(bomb)
    with open(zipped, "wb") as file:
        np.savez(file, a=np.array([Bomb(outside)], dtype=object))
    calls = [*uses(alone), lambda: idrl.load(model), lambda: idrl.load(zipped)]
    check_refused(tally, "pickle in place of arrays", calls, outside)


@pytest.mark.parametrize("name", ["config.toml", "run.json"])
def test_a_pickle_for_a_config(alone, tmp_path, tally, name):
    (alone / name).write_bytes(pickle.dumps(Bomb(tmp_path / "boom")))
    check_refused(tally, "pickle in place of a config", uses(alone), tmp_path / "boom")


@pytest.mark.parametrize("size", [8, 4096])
def test_a_forged_shape(alone, run, tmp_path, tally, size):
    for shape in ([10**12], [10**6, 10**6], [2**62, 4], [1], [0], [-1]):
        (newest(alone) / checkpoint.ARRAYS).write_bytes(forged(shape, size=size))
        sign(newest(alone))
        model = tmp_path / "model.safetensors"
        about = {
            "format": 1, "seed": 0, "obs_shape": [4, 4], "num_actions": 2,
            "config": to_dict(idrl.open_run(run).config),
        }  # fmt: skip
        model.write_bytes(forged(shape, size=size, metadata=about))
        calls = [*uses(alone), lambda: idrl.load(tmp_path / "model.safetensors")]
        check_refused(tally, "forged shape", calls, tmp_path / "none")


def test_a_config_that_asks_for_too_much(alone, tmp_path, tally):
    """The checkpoint is small and honest; the config says that it should be huge."""
    text = (alone / "config.toml").read_text()
    for old, new in (
        ("replay_capacity = 200", "replay_capacity = 1000000000000"),
        ("batch_size = 32", "batch_size = 1000000000000"),
        ("k = 1\n", "k = 1000000000000\n"),
        ("seeds = 1\n", "seeds = 2000000000\n"),
    ):
        assert old in text
        (alone / "config.toml").write_text(text.replace(old, new))
        check_refused(tally, "config beyond memory", uses(alone)[1:], tmp_path / "none")
    (alone / "config.toml").write_text(text)
    about = json.loads((alone / "run.json").read_text())
    for change in (
        {"obs_shape": [10**6, 10**6]}, {"num_actions": 2**30}, {"obs_shape": ["a"]},
        {"obs_shape": [-4, 4]}, {"obs_shape": None}, {"num_actions": 2.5},
    ):  # fmt: skip
        (alone / "run.json").write_text(json.dumps(about | change))
        check_refused(tally, "forged run.json", uses(alone), tmp_path / "none")


@pytest.mark.parametrize(
    "change",
    [
        {"iteration": -1}, {"iteration": "1"}, {"iteration": 1e3}, {"iteration": 2**70},
        {"sizes": {"metrics": -5}}, {"sizes": []}, {"episodes": []}, {"episodes": [0, 0]},
        {"block": 0.5}, {"pending": 1}, {"config": "x"}, {"sizes": {"metrics": 10**12}},
    ],
)  # fmt: skip
def test_a_manifest_that_says_what_cannot_be(alone, tmp_path, tally, change):
    manifest = checkpoint.read_manifest(newest(alone))
    manifest["meta"] |= change
    rewrite(newest(alone), manifest)
    call = uses(alone)[2]
    check_refused(tally, "forged manifest", [call], tmp_path / "none")


def test_paths_that_lead_outside(alone, tmp_path, tally):
    """`..` in names that a file gives, and links in place of files."""
    outside = tmp_path / "outside.csv"
    outside.write_text("mine")
    manifest = checkpoint.read_manifest(newest(alone))
    manifest["meta"]["sizes"] |= {"../../outside": 0, "/etc/passwd": 0, str(outside): 0}
    rewrite(newest(alone), manifest)
    idrl.train(resume=alone, steps=400)
    assert outside.read_text() == "mine"
    for name in ("metrics.csv", "config.toml", ".lock", "checkpoints", "curve.png", "new.csv"):
        again = tmp_path / f"again-{name}"
        shutil.copytree(alone, again)
        place = again / name
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        place.symlink_to(tmp_path if name == "checkpoints" else outside)
        for call in uses(again):
            with pytest.raises(idrl.IdrlError, match="is a link"):
                call()
        assert outside.read_text() == "mine"
    tally("paths that lead outside", 7, 7)


def test_names_import_nothing(alone, tmp_path, tally, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'boom')!r}, 'w')")
    text = (alone / "config.toml").read_text()
    before = [p for p in sorted(tmp_path.rglob("*")) if p.name != ".lock"]
    names = ("evil:Env-v0", "gym/evil:Env-v0", "gymnax/evil", "__import__('evil')", "evil.Env")
    for name in names:
        (alone / "config.toml").write_text(text.replace('"deep_sea/4"', json.dumps(name)))
        for call in uses(alone)[1:]:
            with pytest.raises(idrl.IdrlError):
                call()
        assert main(["train", "dqn", name]) == 2
    (alone / "config.toml").write_text(text.replace('kind = "mlp"', 'kind = "evil.Mlp"'))
    for call in uses(alone):
        with pytest.raises(idrl.IdrlError, match=r"unknown trunk\.kind"):
            call()
    assert [p for p in sorted(tmp_path.rglob("*")) if p.name != ".lock"] == before
    tally("names of code", 6, 6)


def test_deep_nesting_and_size(alone, tmp_path, tally):
    deep = "[" * 100_000
    for name, text in (
        ("run.json", deep), ("config.toml", "a = " + deep), ("run.json", "[" * 3_000_000),
        ("config.toml", "# " + "x" * 3_000_000), ("run.json", '{"format": ' + "9" * 5000 + "}"),
    ):  # fmt: skip
        before = (alone / name).read_text()
        (alone / name).write_text(text)
        check_refused(tally, "nested or large files", uses(alone), tmp_path / "none")
        (alone / name).write_text(before)
    place = newest(alone)
    for text in (deep, "{}", "null", '{"meta": {}}', "x" * 20_000_000):
        (place / checkpoint.MANIFEST).write_text(text)
        check_refused(tally, "nested or large files", uses(alone)[2:], tmp_path / "none")


def test_weights_can_be_handed_around(run, tmp_path, tally):
    agent = idrl.load(run)
    path = agent.save(tmp_path / "model.safetensors")
    again = idrl.load(path)
    obs = np.eye(16).reshape(16, 4, 4)
    for ours, theirs in zip(agent.explain(obs), again.explain(obs), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert again.config == agent.config
    assert again.save(tmp_path / "twice.safetensors").read_bytes() == path.read_bytes()
    whole = path.read_bytes()
    chance = np.random.default_rng(0)
    for _ in range(50):  # damaged or forged: refused, or read as other numbers, never more
        damaged = bytearray(whole)
        damaged[chance.integers(min(2000, len(whole)))] ^= 1 << int(chance.integers(8))
        path.write_bytes(bytes(damaged))
        with contextlib.suppress(idrl.IdrlError):
            idrl.load(path)
    with pytest.raises(idrl.IdrlError, match="cannot be written"):
        agent.save(tmp_path / "nowhere" / "model.safetensors")
    with pytest.raises(idrl.IdrlError, match="holds one agent"):
        idrl.load(tmp_path / "twice.safetensors", seed=3)
    tally("weights as a file", 50, 50)

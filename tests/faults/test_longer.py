"""A run that is made longer equals one that was that long from the beginning, wherever it ended:
inside a block, or where a longer run is not evaluated."""

import warnings

import pytest
from driver import SETTINGS, SMALL, difference, newest

import idrl
from idrl.storage import checkpoint

TABLES = ("metrics.csv", "evaluations.csv", "episodes.csv", "config.toml")


def test_where_it_ends_does_not_matter(copy, tmp_path, tally):
    """At 300 steps a block ends and all is due, at 407 nothing is."""
    long = idrl.train("dqn", "deep_sea/4", steps=457, settings=SETTINGS, out=tmp_path / "long").path
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        idrl.train(resume=copy, steps=407)
        assert newest(copy).name == "step-000000000407"
        idrl.train(resume=copy)  # is finished
        idrl.train("dqn", "deep_sea/4", resume=copy, steps=457)
    lost = sum((copy / name).read_bytes() != (long / name).read_bytes() for name in TABLES)
    tally("run made longer", 2, 2, lost, difference(copy, long).bits)


def test_without_what_came_before_its_end_it_is_said(copy):
    idrl.train(resume=copy, steps=310)
    before, end = checkpoint.listed(copy / "checkpoints")
    assert (before.name, end.name) == ("step-000000000300", "step-000000000310")
    (before / checkpoint.ARRAYS).write_bytes(b"")
    with pytest.warns(
        UserWarning, match="will not equal one that has 320 .* before its last block"
    ):
        idrl.train(resume=copy, steps=320)


def test_a_folder_of_an_earlier_version_keeps_its_blocks_and_says_so(copy):
    for place in checkpoint.listed(copy / "checkpoints"):
        manifest = checkpoint.read_manifest(place)
        assert manifest["meta"].pop("cut") is False
        assert manifest["meta"]["block"] == 20
        manifest["meta"]["block"] = 40
        manifest["check"] = checkpoint._checksum(manifest)
        (place / checkpoint.MANIFEST).write_text(checkpoint.json.dumps(manifest))
    with pytest.warns(UserWarning, match="begun by an earlier version"):
        idrl.train(resume=copy, steps=360)
    assert checkpoint.read_meta(newest(copy))["block"] == 40


RUNS = {
    "compiled": ["c51-ids", "deep_sea/5", "--seeds", "2"],
    "hosted": ["dqn", "odd-plain", "--seeds", "2"],
    "frames": ["dqn", "odd-film"],
}


@pytest.mark.parametrize("loop", RUNS)
def test_in_every_loop(loop, nursery, tmp_path, tally):
    settings = [s for s in SMALL if loop != "frames" or not s.startswith("trunk")]
    settings += ["learning.batch_size=4"]
    for out, steps in (("long", "1090"), ("run", "530")):
        arguments = [*RUNS[loop], "--steps", steps, "--out", out, *settings]
        child = nursery.run("train", *arguments, folder=tmp_path)
        assert child.status == 0, child.err
    for steps in ("777", "1090"):
        child = nursery.run("train", "--resume", "run", "--steps", steps, folder=tmp_path)
        assert child.status == 0, child.err
        assert child.said == ""
    tally(f"run made longer, {loop}", 2, 2, *difference(tmp_path / "run", tmp_path / "long"))


def test_what_depends_on_the_length_is_said(nursery, tmp_path):
    arguments = ["prioritized", "deep_sea/4", "--steps", "200", "--out", "run", *SMALL]
    assert nursery.run("train", *arguments, folder=tmp_path).status == 0
    child = nursery.run("train", "--resume", "run", "--steps", "300", folder=tmp_path)
    assert child.status == 0, child.err
    assert "will not equal one that has 300 steps" in child.said
    assert "β of its prioritised replay" in child.said

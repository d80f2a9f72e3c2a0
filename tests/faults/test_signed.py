"""Forged files whose checksums fit, and files that are none: refused before they do any harm."""

import contextlib
import json
import os
import struct
import time

import pytest
from test_hostile import check_refused, newest, rewrite, sign, uses

import idrl
from idrl.storage import checkpoint


@pytest.mark.parametrize("name", ["timings.csv", "config.toml", ".lock", "curve.png"])
def test_hard_links(alone, tmp_path, tally, name):
    """What another name leads to is not cut, not written over, not read."""
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (alone / name).unlink(missing_ok=True)
    os.link(outside, alone / name)
    for call in uses(alone):
        with pytest.raises(idrl.IdrlError, match="it has another name elsewhere"):
            call()
    assert outside.read_text() == "mine"
    tally("hard links", 3, 3)


@pytest.mark.parametrize("kind", ["folder", "pipe", "bytes", "endless"])
def test_tables_that_are_none(alone, tmp_path, tally, kind):
    table = alone / "metrics.csv"
    table.unlink()
    if kind == "folder":
        table.mkdir()
    elif kind == "pipe":
        os.mkfifo(table)
    elif kind == "endless":
        table.symlink_to("/dev/zero")
    else:
        table.write_bytes(b"\xff\x00" * 100_000)
    calls = uses(alone)[2:] if kind == "bytes" else uses(alone)
    check_refused(tally, "tables that are none", calls, tmp_path / "none")


@pytest.mark.parametrize(
    "change", [{"block": 10**9}, {"block": 2**62}, {"regret": "x"}, {"regret": [None]},
               {"iteration": 2**31 - 1}, {"iteration": 3}, {"regret": [0.0, 0.0]}],
)  # fmt: skip
def test_signed_manifests_that_would_hang_or_crash(alone, tmp_path, tally, change):
    manifest = checkpoint.read_manifest(newest(alone))
    manifest["meta"] |= change
    rewrite(newest(alone), manifest)
    check_refused(tally, "forged manifest", [uses(alone)[2]], tmp_path / "none")


def test_a_manifest_of_another_step(alone, tmp_path, tally):
    manifest = checkpoint.read_manifest(newest(alone))
    rewrite(newest(alone), manifest | {"steps": 200})
    check_refused(tally, "forged manifest", uses(alone), tmp_path / "none")


@pytest.mark.parametrize(
    "change", [{"sinks": 5}, {"sinks": {"wandb": 3}}, {"sinks": ["wandb"]}, {"id": "../x"},
               {"id": [1]}, {"env_object": "no"}, {"deterministic": 3}],
)  # fmt: skip
def test_a_run_json_of_other_types(alone, tmp_path, tally, change):
    about = json.loads((alone / "run.json").read_text())
    (alone / "run.json").write_text(json.dumps(about | change))
    check_refused(tally, "forged run.json", [uses(alone)[2]], tmp_path / "none")


def test_a_folder_that_is_no_checkpoint(alone, tally):
    """It is nobody's, so it is left alone."""
    (alone / "checkpoints" / "step-zzz").mkdir()
    (alone / "checkpoints" / "step-999").mkdir()
    idrl.load(alone)
    assert idrl.train(resume=alone).path == alone
    assert (alone / "checkpoints" / "step-zzz").is_dir()
    tally("forged manifest", 2, 2)


def test_networks_that_would_compile_for_ever(alone, tmp_path, tally):
    """Refused by their number of layers, before one is built."""
    clock = time.monotonic()
    for change in ("trunk.hidden", "heads.q.hidden"):
        with pytest.raises(idrl.IdrlError, match="has 3,000 layers; at most 64"):
            idrl.train("dqn", "deep_sea/4", settings=[f"{change}=[{'1,' * 3000}]"])
    with pytest.raises(idrl.IdrlError, match="n_step is 5000"):
        idrl.train("dqn", "deep_sea/4", settings=["learning.n_step=5000"])
    heads = {f"z{i}": {"kind": "categorical"} for i in range(50)}
    with pytest.raises(idrl.IdrlError, match="8 kinds of heads at most"):
        idrl.train("dqn", "deep_sea/4", settings={"heads": heads})
    model = idrl.load(alone).save(tmp_path / "model.safetensors")
    data = model.read_bytes()
    old = b'\\"trunk\\": {\\"kind\\": \\"mlp\\", \\"hidden\\": [8]'
    assert old in data
    (size,) = struct.unpack("<Q", data[:8])
    text = data[8 : 8 + size].replace(old, old.replace(b"[8]", b"[" + b"1, " * 2999 + b"1]"))
    model.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])
    with pytest.raises(idrl.IdrlError, match="has 3,000 layers"):
        idrl.load(model)
    assert time.monotonic() - clock < 60  # by the clock of a busy machine; it was 336 s
    tally("networks without end", 5, 5)


@pytest.mark.parametrize("fill", [b"\xff", b"\x7f", b"\x80"])
def test_whole_numbers_out_of_range(alone, tally, fill):
    """The worst that comes of them is another run: nothing is read or written beyond an array."""
    place = newest(alone)
    data = (place / checkpoint.ARRAYS).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + size]), bytearray(data[8 + size :])
    whole = [h for h in header.values() if h.get("dtype", "F")[0] in "IU"]
    assert len(whole) > 3
    for first, end in (h["data_offsets"] for h in whole):
        body[first:end] = fill * (end - first)
    (place / checkpoint.ARRAYS).write_bytes(data[: 8 + size] + bytes(body))
    sign(place)
    with contextlib.suppress(idrl.IdrlError, idrl.RunFailed):
        idrl.train(resume=alone, steps=400)
    idrl.load(alone)
    tally("forged numbers", 1, 1)

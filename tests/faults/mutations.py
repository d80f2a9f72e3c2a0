"""Forgeries of a run folder, a study's folder and a model file: every field of every file, and the
files themselves. Which one a number stands for is decided by the number alone."""

import csv
import hashlib
import io
import json
import os
import random
import shutil
import socket
import struct
import tomllib
from pathlib import Path
from typing import NamedTuple

import tomli_w

from idrl.storage import checkpoint

# Of every type, at every edge, and what was seen to break somebody.
VALUES = (
    None, True, False, 0, 1, -1, 7, 2**31 - 1, 2**31, 2**53 + 1, 2**62, 2**63, 2**70, 10**4000,
    0.0, -0.0, 0.5, 1e-320, 1e19, 1e308, -1e308, float("nan"), float("inf"), -float("inf"),
    "", " ", "0", "1", "-1", "nan", "x", "é", "a\nb", "\0", "\x1b[31mred\x1b]0;title\x07", "\u202e",
    "\ud800", "\U0001f4a9" * 40, "a\u0301" * 2000, "../../../escaped", "/escaped", "..", ".", "-",
    "a" * 500_000, "[/red]", "[bold", ":pile_of_poo:", r"$\frac$", "$", "_hidden", "%s%n", "{0}",
    "<!--<script>", "</script><script>window.hit=1</script>", "'\"><img src=x onerror=hit()>",
    "=1+1", "__proto__", "constructor", "@TITLE@", "CON", "a" * 300,
    [], [None], [0] * 3, [1e308] * 2, ["x"], [[[[[]]]]], [1] * 100_000, {}, {"a": 1}, {"": None},
    {"kind": "mlp", "hidden": [1] * 3000}, {"kind": "ensemble", "k": 10**9}, ["../x", "y"],
)  # fmt: skip
CELLS = (
    "", "-1", "0", "1.5", "1e400", "-1e308", "1e308", "nan", "inf", "x", "9" * 5000, "1_0", "é",
    "٣",    "\x1b[2J", "a" * 200_000, "2147483648", "9223372036854775808", '"', "a,b", "\0", "=1+1",
)  # fmt: skip
BYTES = (
    b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\x80abc\n", b"[" * 100_000, b"{" * 5_000,
    b"\n" * 100,
    b"a,a\n1,2\n", b'"' + b"x" * 300_000, b"seed,steps\n" + b"1,1\n" * 50_000, b"\x1f\x8b\x08\0",
    b"null", b"[]", b"{}", b"0", b'"x"', b"a." * 5_000 + b"a = 1", b"\r\n\r\n", b"x" * 3_000_000,
)  # fmt: skip
PLACES = (
    "missing", "folder", "pipe", "socket", "link", "loop", "hard link", "endless", "sparse", "half",
    "twice", "flip", "longer",
)  # fmt: skip


OF_RUNS = ("evaluations.csv", "config.toml", "run.json")  # what a study reads of its runs


class Field(NamedTuple):
    file: str  # within the kit
    path: tuple  # of an entry in it, or how the whole is changed
    kind: str  # entry, cell, header, numbers, bytes or place


def fields(kit: Path) -> list[Field]:
    """All there is to forge, in an order that does not depend on the machine."""
    found = []
    for file in sorted(p for p in kit.rglob("*") if p.is_file() and p.suffix != ".png"):
        name = file.relative_to(kit).as_posix()
        if name.startswith("study/runs/") and file.name not in OF_RUNS:
            continue  # as those of the run beside it
        table = read(file)
        if table is not None:
            found += [Field(name, path, "entry") for path in _paths(table)]
        elif file.suffix == ".csv":
            head = file.read_text().splitlines()[0].split(",")
            found += [Field(name, (column,), "cell") for column in range(len(head))]
        if file.suffix == ".safetensors":
            found += _of_arrays(name, _split(file.read_bytes())[0])
        found += [Field(name, (place,), "place") for place in PLACES]
        found += [Field(name, (), "bytes")] * 3
    random.Random("order").shuffle(found)
    return found


def _of_arrays(name: str, header: dict) -> list[Field]:
    """Every array, all that is said of some, and the numbers in those of whole ones."""
    if "step-000000000200" in name:
        return []  # as those of the newest
    arrays = sorted(header)
    found = [Field(name, (array,), "header") for array in arrays]
    few = {array: header[array] for array in (*arrays[::8], "__metadata__") if array in header}
    found += [Field(name, path, "header") for path in _paths(few) if len(path) > 1]
    whole = [a for a in arrays if header[a].get("dtype", "F")[0] in "IUB"]
    return found + [Field(name, (array,), "numbers") for array in whole for _ in range(2)]


def read(file: Path):
    """The tables in a file; None where it has none."""
    if file.suffix == ".json":
        return json.loads(file.read_text())
    return tomllib.loads(file.read_text()) if file.suffix == ".toml" else None


def _paths(data, where=()) -> list[tuple]:
    inner = data.items() if isinstance(data, dict) else enumerate(data[:2])
    found = []
    for key, value in inner:
        found.append((*where, key))
        if isinstance(value, (dict, list)):
            found += _paths(value, (*where, key))
    return found


def forge(kit: Path, field: Field, chance: random.Random) -> str:
    """Change the kit; says what was done."""
    file = kit / field.file
    if field.kind == "entry":
        told = _entry(file, field.path, chance)
    elif field.kind == "cell":
        told = _cell(file, field.path[0], chance)
    elif field.kind == "header":
        told = _header(file, field.path, chance)
    elif field.kind == "numbers":
        told = _numbers(file, field.path[0], chance)
    elif field.kind == "bytes":
        data = chance.choice((*BYTES, chance.randbytes(300)))
        file.write_bytes(data)
        told = repr(data[:20])
    else:
        told = _place(file, field.path[0], kit / "outside", chance)
    if chance.random() < 0.9:
        sign(file)
    return f"{field.file} {'.'.join(map(str, field.path))}: {told}"


def _changed(data, path, chance):
    """The tables with the entry at `path` replaced, taken out or renamed."""
    *tables, last = path
    inner = data
    for key in tables:
        inner = inner[key]
    how = chance.random()
    if how < 0.08 and isinstance(inner, dict):
        del inner[last]
        return "taken out"
    if how < 0.12 and isinstance(inner, dict):
        inner[str(chance.choice(("x", "", "a" * 1000, "\x1b")))] = inner.pop(last)
        return "renamed"
    value, old = chance.choice(VALUES), inner[last]
    if how < 0.35 and isinstance(old, (int, float)):
        value = chance.choice((old + 1, old - 1, -old, old * 10**9, float(old), str(old), [old]))
    elif how < 0.35 and isinstance(old, str):
        value = chance.choice((old + "x", old[:-1], old * 1000, old.upper(), [old], {old: old}))
    elif how < 0.35 and isinstance(old, list):
        value = chance.choice((old * 2, old[:-1], [old], [*old, value], old * 5000))
    inner[last] = value
    return repr(value)[:60] if value != 10**4000 else "10**4000"


def _entry(file: Path, path, chance) -> str:
    data = read(file)
    told = _changed(data, path, chance)
    file.write_text(_written(file, data), errors="surrogatepass")
    return told


def _written(file: Path, data) -> str:
    try:
        return json.dumps(data) if file.suffix == ".json" else tomli_w.dumps(data)
    except (TypeError, ValueError, UnicodeEncodeError):
        return "x = " + ascii(data)[:2000]  # what TOML cannot say is not TOML


def _cell(file: Path, column: int, chance) -> str:
    rows = list(csv.reader(io.StringIO(file.read_text())))
    row = chance.choice((0, 1, len(rows) // 2, len(rows) - 1))
    value = chance.choice(CELLS)
    how = chance.random()
    if how < 0.7:
        rows[row][column] = value
    elif how < 0.8:  # in every row
        for cells in rows[1:]:
            cells[column] = value
    elif how < 0.9:
        del rows[row][column]
    else:
        rows[row].append(value)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    file.write_text(text.getvalue())
    return f"row {row}: {value[:20]!r}"


def _split(data: bytes):
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    if "idrl" in header.get("__metadata__", {}):
        header["__metadata__"]["idrl"] = json.loads(header["__metadata__"]["idrl"])
    return header, data[8 + size :]


def _header(file: Path, path, chance) -> str:
    header, body = _split(file.read_bytes())
    told = _changed(header, path, chance)
    about = header.get("__metadata__")
    if isinstance(about, dict) and not isinstance(about.get("idrl", ""), str):
        about["idrl"] = json.dumps(about["idrl"])
    text = json.dumps(header).encode()
    if chance.random() < 0.05:
        body = body[: len(body) // 2]
    size = chance.choice((len(text),) * 20 + (0, 2**40, len(text) + 9))
    file.write_bytes(struct.pack("<Q", size) + text + body)
    return told


def _numbers(file: Path, name: str, chance) -> str:
    """Bits of whole numbers: the largest, the smallest, any."""
    data = file.read_bytes()
    header, body = _split(data)
    first, end = header[name]["data_offsets"]
    fill = chance.choice((b"\xff", b"\x7f", b"\x80", b"\0", b"\x01", None))
    made = chance.randbytes(end - first) if fill is None else fill * (end - first)
    body = body[:first] + made + body[end:]
    file.write_bytes(data[: len(data) - len(body)] + body)
    return f"all {fill!r}"


def _place(file: Path, how: str, outside: Path, chance) -> str:
    """The file itself is something else."""
    data = file.read_bytes()
    if how in ("half", "twice", "flip", "longer"):
        flipped = bytearray(data or b"\0")
        flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        halves = {"half": data[: len(data) // 2], "twice": data * 2, "flip": bytes(flipped)}
        file.write_bytes(halves.get(how, data + b"\n" * 7))
        return how
    file.unlink()
    if how == "folder":
        (file / "inside").mkdir(parents=True)
    elif how == "pipe":
        os.mkfifo(file)
    elif how == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(_short(file))
    elif how in ("link", "hard link"):
        target = outside / "precious"
        target.write_bytes(data)
        file.symlink_to(target) if how == "link" else os.link(target, file)
    elif how == "loop":
        file.symlink_to(file)
    elif how == "endless":
        file.symlink_to("/dev/zero")
    elif how == "sparse":
        with open(file, "wb") as made:
            made.write(data)
            made.truncate(600 * 2**20)
    return how


def _short(file: Path) -> str:
    """A socket's name has at most 108 letters; relative it is short enough."""
    os.chdir(file.parent)
    return file.name


def sign(file: Path) -> None:
    """What an attacker would do: checksums that fit, where there is still something to sign."""
    place = file.parent
    manifest, arrays = place / checkpoint.MANIFEST, place / checkpoint.ARRAYS
    if not place.name.startswith("step-") or not (manifest.is_file() and arrays.is_file()):
        return
    try:
        said = json.loads(manifest.read_text())
        said.pop("check", None)
        if file.name == checkpoint.ARRAYS:
            said["sha256"] = hashlib.sha256(arrays.read_bytes()).hexdigest()
        manifest.write_text(json.dumps(said | {"check": checkpoint._checksum(said)}))
    except (ValueError, AttributeError, TypeError, RecursionError, KeyError):
        return


def alone(kit: Path) -> None:
    """With one checkpoint there is none before it to go on from."""
    shutil.rmtree(kit / "run" / "checkpoints" / "step-000000000200")


def fresh(kit: Path, box: Path) -> Path:
    """A copy to forge, with something beside it that must stay as it is."""
    shutil.rmtree(box, ignore_errors=True)
    shutil.copytree(kit, box / "kit")
    (box / "kit" / "outside").mkdir(exist_ok=True)
    (box / "kit" / "outside" / "precious").write_text("mine")
    return box / "kit"

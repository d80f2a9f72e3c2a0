"""What this machine has: cores, which each run holds some of, and GPUs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def some_cores(count: int) -> Iterator[str]:
    """So many cores that no other run of ours on this machine holds, as `0,3`. Where too few are
    free, others are shared: the number decides what a run computes with, so it is always kept."""
    if not hasattr(os, "sched_getaffinity"):
        yield "-"
        return
    mine = sorted(os.sched_getaffinity(0))
    folder = Path(tempfile.gettempdir()) / f"idrl-cores-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    held: dict[int, int] = {}
    try:
        for core in mine:
            if len(held) == count:
                break
            file = os.open(folder / str(core), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held[core] = file
            except OSError:
                os.close(file)
        spare = [core for core in mine if core not in held]
        yield ",".join(map(str, [*held, *spare][:count]))
    finally:
        for file in held.values():
            os.close(file)


def gpus() -> list[tuple[str, float]]:
    """Name and bytes of memory of each NVIDIA GPU that may be used."""
    asked = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [line.rpartition(",") for line in found.stdout.splitlines() if "," in line]
    all_of_them = [(name.strip(), float(size) * 2**20) for name, _, size in rows]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return all_of_them
    return all_of_them[: len([word for word in visible.split(",") if word.strip()])]


def cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return "unknown"

"""The peers' environments: python -m benchmarks.peers.install [NAME...]

Each is made in `.peers/NAME` from `pins/NAME.txt`. PyTorch's wheels for CPUs are much smaller than
those with CUDA; pip takes them where it is told of them (PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS).
"""

from __future__ import annotations

import subprocess
import sys
import venv

from benchmarks.peers.libraries import HOME, LIBRARIES, PINS, python_of


def install(name: str) -> bool:
    python, mark = python_of(name), HOME / name / "installed"
    pins = (PINS / f"{name}.txt").read_text()
    if mark.exists() and mark.read_text() == pins:
        return True
    if not python.exists():
        venv.create(HOME / name, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, "-r", str(PINS / f"{name}.txt")])
    if done.returncode == 0:
        mark.write_text(pins)
    return done.returncode == 0


def main() -> None:
    names = sys.argv[1:] or list(dict.fromkeys(each.environment for each in LIBRARIES.values()))
    for name in names:
        told = "ready" if install(name) else "not installed; its rows will be dashes"
        print(f"{name}: {told}", flush=True)


if __name__ == "__main__":
    main()

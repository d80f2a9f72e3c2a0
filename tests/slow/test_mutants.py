"""The tests see what they are there for: each of these mistakes, made on purpose, is found by
`make test`."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mutants import MUTANTS

import idrl

SOURCE = Path(idrl.__file__).parent
TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mistake_is_found(name, tmp_path, record_property):
    mutant = MUTANTS[name]
    copy = shutil.copytree(SOURCE, tmp_path / "idrl", ignore=shutil.ignore_patterns("__pycache__"))
    file = copy / mutant.file
    text = file.read_text(encoding="utf-8")
    assert text.count(mutant.right) == 1
    file.write_text(text.replace(mutant.right, mutant.wrong), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
         "--tier", "test", str(TESTS / mutant.caught_by)],
        env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip
    fell = re.findall(r"^FAILED tests/(\S+)", done.stdout, re.MULTILINE)
    record_property("mutant", (name, fell))
    assert done.returncode == 1, done.stdout[-2000:]
    assert fell, done.stdout[-2000:]

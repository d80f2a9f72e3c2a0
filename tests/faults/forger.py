"""A process that forges files and hands them to the command line, one case after the other.

Numbers of cases come as lines on the standard input, answers go out as lines of JSON. What takes
long and reads nothing (training itself, playing, most of the drawing) is left out, so that a case
takes a fraction of a second; what opens, reads, checks and writes files is all there.
"""

import contextlib
import functools
import inspect
import io
import json
import os
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import mutations
import numpy as np

import idrl
from idrl.cli import app as cli
from idrl.inspect.play import episode
from idrl.report import run_figures, writing
from idrl.runs import api, session
from idrl.sweep import driving, engines, probing, speeds
from idrl.training import compiled, learner
from idrl.training.evaluation import Score

CPU_S, MEMORY = 5.0, 2**30  # of one case


class Slow(BaseException):
    """A case used up its time."""


def replace(owner: Any, stand_in: Callable) -> None:
    """What has the stand-in's name in a module or a class, if it takes the same arguments: else
    every case that calls it would fail."""
    name = stand_in.__name__
    real, fake = (list(inspect.signature(f).parameters) for f in (getattr(owner, name), stand_in))
    assert real == fake, f"{owner.__name__}.{name} takes {real}, its stand-in {fake}"
    setattr(owner, name, stand_in)


def stand_ins() -> None:
    """In place of what takes long."""
    os.fsync = lambda number: None
    session.train = lambda *given, **how: iter(())
    learner.block_of_a_second = functools.cache(lambda agent, seeds: 100)

    def score_best(self, state, episodes, limit_steps):
        zeros = np.zeros(self.seeds, np.float32)
        return Score(*(zeros for _ in Score._fields[:-1]), {})

    replace(compiled.Compiled, score_best)
    one = np.zeros((1, 2), np.float32)
    step = np.zeros(1, np.int64)

    def _played(source, env, seed, weights, at, acting, number, max_steps):
        policy = api.load(source, seed, weights, at=at)
        seen = episode.view("x", episode.Rows([np.zeros((4, 4))]))
        return episode.Episode(
            "x", policy.seed, "ids", "explore", 0.1, True, step, step, step,
            step.astype(np.float32), one, one, one, one, one, one, None, seen, None,
            episode.read_sigma(Path(source), policy.seed),
        )  # fmt: skip

    replace(episode, _played)

    def drive(folder, engine, source, tell, show):
        folder.lock()
        try:
            source.begin()
            show()
        finally:
            folder.unlock()

    replace(driving, drive)

    def probe(configs):
        return speeds.KNOWN[-1]

    def has_ray():
        return False

    replace(probing, probe)
    replace(engines, has_ray)


def commands(name: str, box: Path, chance: random.Random) -> list[str]:
    """What somebody does with the file that was forged."""
    kit, out = box / "kit", str(box / "out")
    run, study = str(kit / "run"), str(kit / "study")
    if name.startswith("model"):
        return ["load"]
    if name == "study/study.toml":
        return ["sweep", "--plan", study + "/study.toml"]
    if name.startswith("study"):
        return chance.choice(
            (["sweep", "--status", study], ["sweep", "--resume", study, "--engine", "processes"],
             ["sweep", "--status", study, "--table", out + ".csv"])
        )  # fmt: skip
    lines = [
        ["report", run, "-o", out], ["compare", run, str(kit / "study" / "runs")],
        ["train", "--resume", run], ["play", run, "--page", out + ".html"],
    ]  # fmt: skip
    if not name.endswith(".csv"):
        lines += [["evaluate", run], ["load"], ["train", "--resume", run, "--steps", "400"]]
    return chance.choice(lines)


def answer(line: list[str], box: Path) -> tuple[str, str]:
    """How the command ended, and what it said."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            if line == ["load"]:
                for path in ("model.safetensors", "run"):
                    idrl.load(box / "kit" / path)
                status = 0
            else:
                status = cli.main(line)
    except idrl.IdrlError as error:
        return "sentence", str(error)[:300]
    except Slow:
        return "hang", traceback.format_exc()[-1500:]
    except BaseException:
        return "traceback", traceback.format_exc()[-1500:]
    told = err.getvalue()
    if "Traceback" in told or not all(x.startswith("idrl: ") for x in told.splitlines()):
        return "traceback", told[-1500:]
    if any(not (c.isprintable() or c in "\n\t") for c in out.getvalue() + told):
        return "traceback", "a control character was printed: " + ascii(out.getvalue() + told)[:500]
    if status == 0:
        return "accepted", ""
    ends = told.rstrip().endswith((".", "?", "…")) and bool(told.strip())
    return ("sentence" if status in (1, 2) and ends else "traceback"), told[-300:]


def peak() -> int:
    """Bytes of memory at most since `forget`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    raise AssertionError


def forget() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def untouched(box: Path) -> dict[str, bytes]:
    """All that is beside what was opened."""
    outside = box / "kit" / "outside"
    held = {str(p): p.read_bytes() for p in sorted(outside.rglob("*")) if p.is_file()}
    beside = sorted(p.name for p in (*box.parent.iterdir(), *box.parent.parent.iterdir()))
    return held | {name: b"" for name in beside}


def try_case(number: int, kit: Path, box: Path, found: list) -> dict:
    chance = random.Random(f"forged {number}")
    field = found[number % len(found)]
    mutations.fresh(kit, box)
    told = mutations.forge(box / "kit", field, chance)
    if "step-000000000300" in field.file and chance.random() < 0.8:
        mutations.alone(box / "kit")
    line = commands(field.file, box, chance)
    writing.write_figures = real_figures if chance.random() < 0.1 else lambda *a, **k: []
    run_figures.draw_figures = real_drawing if chance.random() < 0.15 else lambda *a: None
    before = untouched(box)
    forget()
    base, clock = peak(), time.process_time()
    signal.setitimer(signal.ITIMER_PROF, CPU_S)
    how, said = answer(line, box)
    signal.setitimer(signal.ITIMER_PROF, 0)
    if peak() - base > MEMORY:
        how = "growth"
    elif untouched(box) != before:
        how, said = "traceback", "something outside was changed"
    return {
        "case": number, "answer": how, "forged": told, "command": " ".join(line), "said": said,
        "seconds": round(time.process_time() - clock, 2),
    }  # fmt: skip


real_figures, real_drawing = writing.write_figures, run_figures.draw_figures


def main() -> None:
    kit, box = Path(sys.argv[1]), Path(sys.argv[2])
    answers = sys.stdout
    jax.config.update("jax_num_cpu_devices", 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def slow(number, frame):
        raise Slow

    signal.signal(signal.SIGPROF, slow)
    stand_ins()
    found = mutations.fields(kit)
    # What is loaded late, before memory and time are measured.
    for line in (["report", "out"], ["train", "--resume"], ["evaluate"], ["play"]):
        mutations.fresh(kit, box)
        run, out = str(box / "kit" / "run"), str(box / "out")
        words = ["report", run, "-o", out] if line[0] == "report" else [*line, run]
        assert answer(words, box)[0] == "accepted", answer(words, box)
    print(json.dumps({"fields": len(found)}), file=answers, flush=True)
    for text in sys.stdin:
        print(json.dumps(try_case(int(text), kit, box, found)), file=answers, flush=True)


if __name__ == "__main__":
    main()

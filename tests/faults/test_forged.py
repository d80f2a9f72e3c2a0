"""Files of unknown origin, every field of them forged: each is accepted, or refused in a sentence,
within seconds and a gigabyte, and nothing outside is touched."""

import json
import os
import selectors
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from kit import make_kit

ANSWERS = ("sentence", "accepted", "traceback", "hang", "growth")
WAITS_S = 30.0  # without any processor time: a case that waits for what never comes
MOST_CPU_S = 15.0  # of code that does not hear that its time is up
PARTS = 2


class Forger:
    """The process that tries cases; started again where one hangs."""

    def __init__(self, kit: Path, box: Path):
        self.command = [sys.executable, str(Path(__file__).with_name("forger.py")), kit, box]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            list(map(str, self.command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.fields = self._line(most_cpu_s=300)["fields"]

    def _cpu_s(self) -> float:
        text = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(text[11]) + int(text[12])) / os.sysconf("SC_CLK_TCK")

    def _line(self, most_cpu_s: float = MOST_CPU_S) -> dict:
        """The next answer. Whoever is given no processor, on a busy machine, is waited for."""
        begin = last = self._cpu_s()
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.process.stdout, selectors.EVENT_READ)
            while not waiting.select(WAITS_S):
                now = self._cpu_s()
                if now == last or now - begin > most_cpu_s:
                    raise TimeoutError
                last = now
        line = self.process.stdout.readline()
        if not line:
            raise EOFError
        return json.loads(line)

    def try_case(self, number: int) -> dict:
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()
        try:
            return self._line()
        except (TimeoutError, EOFError) as error:
            self.process.kill()
            self.process.wait()
            self.start()
            how = "hang" if isinstance(error, TimeoutError) else "growth"  # or it crashed
            return {"case": number, "answer": how, "forged": "", "command": "", "said": ""}

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)


@pytest.fixture(scope="session")
def kit(tmp_path_factory):
    return make_kit(tmp_path_factory.mktemp("kit"))


def try_all(kit: Path, box: Path, numbers) -> list[dict]:
    forger = Forger(kit, box)
    try:
        return [forger.try_case(number) for number in numbers]
    finally:
        forger.close()


@pytest.mark.parametrize("part", range(PARTS))
def test_every_field_of_every_file(kit, part, tmp_path, tally, request, record_property):
    count = request.config.getoption("--forged")
    numbers = range(part, count, PARTS)
    found = try_all(kit, tmp_path / "here" / "box", numbers)
    answers = Counter(one["answer"] for one in found)
    record_property("answers", json.dumps([answers[name] for name in ANSWERS]))
    wrong = [one for one in found if one["answer"] not in ("sentence", "accepted")]
    for one in wrong[:10]:
        print(json.dumps(one, indent=1), f"\nrepeat it: --forged-case {one['case']}")
    bad = {name: answers[name] for name in ("traceback", "hang", "growth")}
    tally("forged field", len(numbers), len(numbers) - len(wrong), tracebacks=bad["traceback"],
          hangs=bad["hang"])  # fmt: skip
    assert bad == {"traceback": 0, "hang": 0, "growth": 0}


def test_one_case(kit, tmp_path, request):
    """To look at a case of the test above again: --forged-case NUMBER."""
    number = request.config.getoption("--forged-case")
    if number is None:
        pytest.skip("no --forged-case")
    (one,) = try_all(kit, tmp_path / "here" / "box", [number])
    print(json.dumps(one, indent=1))
    assert one["answer"] in ("sentence", "accepted")

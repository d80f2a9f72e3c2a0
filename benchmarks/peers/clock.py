"""What a worker tells: a JSON line for each measurement. Needs the standard library alone.

With `turns` in its request it measures its job as often as `benchmarks.turns` asks.
"""

import json
import resource
import sys
import time
from collections.abc import Callable

from benchmarks.turns import serve


class Clock:
    """Started by the driver, just before it starts the process."""

    def __init__(self) -> None:
        self.request = json.loads(sys.argv[-1])

    def seconds(self) -> float:
        """Since the process was asked for."""
        return time.time() - self.request["began"]

    def tell(self, **facts: object) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(facts | {"peak_mib": round(peak)}), flush=True)

    def measure(
        self, job: dict, update_every: int, import_s: float, ready: Callable[[], Callable[[], int]]
    ) -> None:
        """Time stretches. `ready()` builds, compiles and makes the first updates; it returns the
        stretch, which trains on and says for how many environment steps of each seed."""
        started = time.perf_counter()
        stretch = ready()
        ready_s = time.perf_counter() - started

        def timed() -> dict:
            started, used = time.perf_counter(), time.process_time()
            steps = stretch() * job["seeds"]
            seconds, cpu_s = time.perf_counter() - started, time.process_time() - used
            return {
                **job, "import_s": import_s, "ready_s": ready_s, "seconds": seconds,
                "steps": steps, "steps_per_s": steps / seconds,
                "updates_per_s": steps / update_every / seconds, "steps_per_cpu_s": steps / cpu_s,
            }  # fmt: skip

        if self.request.get("turns"):
            serve(lambda: [timed()])
        else:
            self.tell(**timed())
